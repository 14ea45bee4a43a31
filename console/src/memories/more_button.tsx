import type { Pages } from "../pages";

/** Reads the next page. It stays focusable while it does, or the keyboard would lose its place. */
export function MoreButton({ pages }: { pages: Pick<Pages<unknown>, "hasMore" | "isLoading" | "more"> }) {
  if (!pages.hasMore) return null;
  return (
    <button type="button" aria-disabled={pages.isLoading} onClick={() => pages.isLoading || pages.more()}>
      {pages.isLoading ? "Loading…" : "Load more"}
    </button>
  );
}
