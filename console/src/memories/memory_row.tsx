import type { Memory } from "../api";
import { dayAndTime } from "../format";
import { href } from "../route";

/** A memory of the list, or a search result. */
export type Row = Pick<
  Memory,
  "id" | "text" | "speaker" | "created_at" | "tags" | "kind" | "session_id" | "document_id"
> &
  Partial<Memory>;

interface Props {
  namespace: string;
  memory: Row;
  isChosen: boolean;
  onChoose: (isChosen: boolean) => void;
}

/** One memory of the list. */
export function MemoryRow({ namespace, memory, isChosen, onChoose }: Props) {
  const { id, text, speaker, created_at, tags, kind, session_id, document_id } = memory;
  return (
    <li class="memory-row">
      <input
        type="checkbox"
        checked={isChosen}
        aria-label={`Select ${id}`}
        onChange={(event) => onChoose(event.currentTarget.checked)}
      />
      <div>
        <a class="memory-text" href={href(namespace, "memories", id)}>
          {text}
        </a>
        <p class="hint row">
          <span>
            {speaker && <bdi>{speaker}</bdi>}
            {speaker && " · "}
            {dayAndTime(created_at)} · {kind}
          </span>
          {session_id && <a href={href(namespace, "memories", "", { session: session_id })}>session {session_id}</a>}
          {document_id && (
            <a href={href(namespace, "memories", "", { document: document_id })}>document {document_id}</a>
          )}
          {tags.map((tag) => (
            <span key={tag} class="chip">
              {tag}
            </span>
          ))}
          <Marks memory={memory} />
        </p>
      </div>
    </li>
  );
}

/** Whether a memory is superseded or expired. */
export function Marks({ memory }: { memory: Partial<Memory> }) {
  const isExpired = memory.expires_at && new Date(memory.expires_at) < new Date();
  return (
    <>
      {memory.superseded_by?.length ? <span class="chip mark-old">superseded</span> : null}
      {isExpired ? <span class="chip mark-old">expired</span> : null}
    </>
  );
}
