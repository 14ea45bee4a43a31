import type { Memory } from "../api";
import { clock, count, day, withoutName } from "../format";
import { useLoaded } from "../loading";
import { href } from "../route";
import { Pending } from "../ui/pending";
import { SessionsBeside } from "./sessions_beside";
import { allMemories, byTime } from "./store";

const MOST = 2_000;

interface Props {
  namespace: string;
  session: string;
}

/** A session shown as a chat. */
export function Session({ namespace, session }: Props) {
  const loaded = useLoaded(
    (signal) => allMemories(namespace, { session_id: [session] }, signal, MOST),
    [namespace, session],
  );
  const { data } = loaded;
  const turns = [...(data ?? [])].sort((a, b) => (a.position ?? Infinity) - (b.position ?? Infinity) || byTime(a, b));
  return (
    <div class="page session">
      <p class="row links">
        <a href={href(namespace, "memories")}>All memories</a>
        <a href={href(namespace, "memories", "", { in_session: session })}>View as list</a>
      </p>
      <h1>
        Session <bdi>{session}</bdi>
      </h1>
      <Pending of={loaded} />
      {data && turns.length === 0 && <p class="soft">No memories in this session.</p>}
      {turns.length >= MOST && <p class="hint">Only {count(turns.length)} memories are shown.</p>}
      <ol class="chat">
        {turns.map((turn, i) => (
          <Turn key={turn.id} namespace={namespace} turn={turn} before={turns[i - 1]} />
        ))}
      </ol>
      {turns.length > 0 && <SessionsBeside namespace={namespace} session={session} />}
    </div>
  );
}

function Turn({ namespace, turn, before }: { namespace: string; turn: Memory; before: Memory | undefined }) {
  const { id, speaker, text, created_at } = turn;
  const isSameDay = before !== undefined && day(before.created_at) === day(created_at);
  const isSameSpeaker = isSameDay && before.speaker === speaker;
  return (
    <li>
      {!isSameDay && <h2 class="chat-day">{day(created_at)}</h2>}
      {!isSameSpeaker && speaker && <p class="chat-speaker">{speaker}</p>}
      <p class="chat-turn">
        <span>{withoutName(text, speaker)}</span>
        <a class="hint" href={href(namespace, "memories", id)} aria-label={`${clock(created_at)}, open ${id}`}>
          {clock(created_at)}
        </a>
      </p>
    </li>
  );
}
