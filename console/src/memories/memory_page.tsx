import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { type Memory, within } from "../api";
import { dayAndTime } from "../format";
import { useLoaded } from "../loading";
import { go, href } from "../route";
import { Pending } from "../ui/pending";
import { attempt } from "../ui/toasts";
import { EntityLinks } from "./entity_links";
import { callExactly } from "./exact";
import { EditMemory } from "./memory_form";
import { Marks } from "./memory_row";
import { removeWithUndo } from "./store";

const LONGEST_QUESTION = 300;

interface Props {
  namespace: string;
  id: string;
  onChanged: () => void;
}

/** One memory with all its fields, and the turns before and after it. */
export function MemoryPage({ namespace, id, onChanged }: Props) {
  const [isEdited, setIsEdited] = useState(false);
  const loaded = useLoaded(
    (signal) => callExactly<{ memories: Memory[] }>(within(namespace, "memories", id, "history"), { signal }),
    [namespace, id],
  );
  const { data, reload } = loaded;
  const memory = data?.memories.find((one) => one.id === id);
  const remove = (): Promise<void> => {
    const here = location.hash;
    const list = href(namespace, "memories");
    return attempt(() =>
      removeWithUndo(namespace, [id], (_, isGone) => {
        // A reader who has moved on by then may be writing something.
        if (location.hash === (isGone ? here : list)) go(isGone ? list : here);
        onChanged();
      }),
    );
  };
  const edit = useRef<HTMLButtonElement>(null);
  const wasEdited = useRef(false);
  useLayoutEffect(() => {
    if (wasEdited.current && !isEdited) edit.current?.focus();
    wasEdited.current = isEdited;
  }, [isEdited]);
  const stored = (): void => {
    setIsEdited(false);
    reload();
    onChanged();
  };
  return (
    <div class="page memory">
      <p class="row links">
        <a href={href(namespace, "memories")}>All memories</a>
      </p>
      <h1 class="mono">{id}</h1>
      <Pending of={loaded} />
      {memory && isEdited && (
        <EditMemory namespace={namespace} memory={memory} onStored={stored} onCancel={() => setIsEdited(false)} />
      )}
      {memory && !isEdited && (
        <>
          <Facts namespace={namespace} memory={memory} />
          <p class="row">
            <button type="button" class="primary" ref={edit} onClick={() => setIsEdited(true)}>
              Edit
            </button>
            <a class="button" href={href(namespace, "memories", "", { page: "new", supersedes: id })}>
              Supersede
            </a>
            <button type="button" class="danger" onClick={() => void remove()}>
              Delete
            </button>
            <a class="aside" href={href(namespace, "ask", "", { q: memory.text.slice(0, LONGEST_QUESTION) })}>
              Ask with this text
            </a>
          </p>
        </>
      )}
      {data && data.memories.length > 1 && <History namespace={namespace} id={id} memories={data.memories} />}
    </div>
  );
}

function Facts({ namespace, memory }: { namespace: string; memory: Memory }) {
  const { text, kind, title, speaker, session_id, position, document_id, created_at, expires_at, tags, metadata } = memory;
  const rows: [string, ComponentChildren][] = [
    ["Kind", kind],
    ["Title", title],
    ["Speaker", speaker && <a href={href(namespace, "memories", "", { speaker })}>{speaker}</a>],
    ["Created (UTC)", dayAndTime(created_at)],
    ["Expires (UTC)", expires_at && dayAndTime(expires_at)],
    ["Session", session_id && <a href={href(namespace, "memories", "", { session: session_id })}>{session_id}</a>],
    ["Document", document_id && <a href={href(namespace, "memories", "", { document: document_id })}>{document_id}</a>],
    ["Position", position],
    ["Tags", tags.join(", ")],
    ["Entities", memory.entities.length > 0 && <EntityLinks namespace={namespace} entities={memory.entities} />],
    [
      "Relations",
      memory.relations.length > 0 &&
        memory.relations.map(({ source, type, target }, i) => (
          <div key={i}>
            <bdi>{source}</bdi> {type} <bdi>{target}</bdi>
          </div>
        )),
    ],
    ["Metadata", Object.keys(metadata).length > 0 && <code>{JSON.stringify(metadata)}</code>],
  ];
  return (
    <section class="panel">
      <p class="memory-whole">{text}</p>
      <p>
        <Marks memory={memory} />
      </p>
      <dl class="facts">
        {rows
          .filter(([, value]) => value !== null && value !== "" && value !== false)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </section>
  );
}

/** What it superseded and what superseded it, oldest first. */
function History({ namespace, id, memories }: { namespace: string; id: string; memories: Memory[] }) {
  return (
    <section class="panel">
      <h2>History</h2>
      <ol class="history-of-memory">
        {memories.map((one) => (
          <li key={one.id} aria-current={one.id === id ? "true" : undefined}>
            <span class="soft">{dayAndTime(one.created_at)}</span>{" "}
            <a href={href(namespace, "memories", one.id)}>{one.text}</a> <Marks memory={one} />
          </li>
        ))}
      </ol>
    </section>
  );
}
