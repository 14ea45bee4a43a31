/** What went wrong, and a way to try again. */
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
