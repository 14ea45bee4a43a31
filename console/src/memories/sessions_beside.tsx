import type { Memory } from "../api";
import { useLoaded } from "../loading";
import { href } from "../route";
import { byTime, wholeNamespace } from "./store";

// The API does not list sessions: they are derived from the memories if these are few.
const MOST = 2_000;

/** The sessions in the order in which they began. */
function sessionsOf(memories: Memory[]): string[] {
  const ids = [...memories].sort(byTime).map(({ session_id }) => session_id);
  return [...new Set(ids.filter((id) => id !== null))];
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
