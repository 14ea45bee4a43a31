import type { Memory } from "../api";
import { useLoaded } from "../loading";
import { href } from "../route";
import { wholeNamespace } from "./store";

// The API lists no sessions: they are told from the memories, where these are few.
const MOST = 2_000;

/** The sessions in the order in which they began. */
function sessionsOf(memories: Memory[]): string[] {
  const began = new Map<string, string>();
  for (const { session_id, created_at } of memories) {
    if (session_id && created_at < (began.get(session_id) ?? "~")) began.set(session_id, created_at);
  }
  return [...began].sort(([a, from], [b, to]) => from.localeCompare(to) || a.localeCompare(b)).map(([id]) => id);
}

/** The session before this one and the one after it. */
export function SessionsBeside({ namespace, session }: { namespace: string; session: string }) {
  const { data } = useLoaded((signal) => wholeNamespace(namespace, MOST, signal), [namespace]);
  if (!data) return null;
  const all = sessionsOf(data);
  const place = all.indexOf(session);
  const [before, after] = [all[place - 1], all[place + 1]];
  if (place < 0 || (!before && !after)) return null;
  return (
    <nav class="row spread beside" aria-label="Sessions">
      <span>{before && <a href={href(namespace, "memories", "", { session: before })}>Previous: {before}</a>}</span>
      <span>{after && <a href={href(namespace, "memories", "", { session: after })}>Next: {after}</a>}</span>
    </nav>
  );
}
