interface Props {
  error: Error;
  /** Whether what could not be read is shown as it was before. */
  isOld?: boolean;
  onRetry?: () => void;
}

/** An error message with a button to retry. */
export function Failure({ error, isOld = false, onRetry }: Props) {
  return (
    <div class="failure" role="alert">
      <p>
        {error.message}
        {isOld && " What you see is from an earlier answer."}
      </p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
