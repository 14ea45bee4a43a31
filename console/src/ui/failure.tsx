/** What went wrong, and a way to try again. */
export function Failure({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const message = error instanceof TypeError ? "The server cannot be reached." : error.message;
  return (
    <div class="failure" role="alert">
      <p>{message}</p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
