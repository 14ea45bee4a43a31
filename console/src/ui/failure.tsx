/** An error message with a button to retry. */
export function Failure({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <p>{error.message}</p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
