import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { type Memory, type MemoryInput, call, within } from "../api";
import { useLoaded } from "../loading";
import { go, href, setUnsaved } from "../route";
import { Failure } from "../ui/failure";
import { attempt, notify } from "../ui/toasts";
import { isRounded, parseExactly } from "./exact";
import { tagsField, tagsOf } from "./query";
import { type Added, add, readWhole } from "./store";

const FIELDS = [
  ["title", "Title", "text"],
  ["speaker", "Speaker", "text"],
  ["session_id", "Session", "text"],
  ["tags", "Tags (comma-separated)", "text"],
  ["created_at", "Created (UTC)", "datetime-local"],
  ["expires_at", "Expires (UTC)", "datetime-local"],
] as const;

type Field = (typeof FIELDS)[number][0];
type Values = Record<Field | "text" | "metadata", string>;

function valuesOf(memory?: Memory): Values {
  const time = (value: string | null | undefined): string => value?.slice(0, 16) ?? "";
  const metadata = memory && Object.keys(memory.metadata).length ? JSON.stringify(memory.metadata, null, 2) : "";
  return {
    text: memory?.text ?? "",
    title: memory?.title ?? "",
    speaker: memory?.speaker ?? "",
    session_id: memory?.session_id ?? "",
    tags: tagsField(memory?.tags ?? []),
    created_at: time(memory?.created_at),
    expires_at: time(memory?.expires_at),
    metadata,
  };
}

/** The fields that differ from what the form began with; an emptied one is null. Throws if the metadata is not JSON. */
function changedFields(values: Values, before: Values): Partial<MemoryInput> {
  const changed: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(values) as [keyof Values, string][]) {
    if (value === before[name]) continue;
    if (name === "tags") changed["tags"] = tagsOf(value);
    else if (name === "metadata") changed["metadata"] = value ? metadataOf(value) : {};
    else if (name.endsWith("_at")) changed[name] = value ? `${value}:00Z` : null;
    else changed[name] = value || null;
  }
  return changed;
}

function metadataOf(text: string): unknown {
  const metadata = parseExactly(text);
  if (isRounded(metadata)) throw new Error("This browser cannot keep a number in the metadata exact. Use the API instead.");
  return metadata;
}

interface FormProps {
  before: Values;
  action: string;
  onSubmit: (changed: Partial<MemoryInput>) => Promise<void>;
  onCancel: () => void;
}

function MemoryForm({ before, action, onSubmit, onCancel }: FormProps) {
  const [values, setValues] = useState(before);
  const [error, setError] = useState<Error>();
  const [isBusy, setIsBusy] = useState(false);
  const text = useRef<HTMLTextAreaElement>(null);
  // Layout effects, as somebody may go to another field or leave the page before the next frame.
  useLayoutEffect(() => text.current?.focus(), []);
  const isChanged = Object.entries(before).some(([name, value]) => values[name as keyof Values] !== value);
  useLayoutEffect(() => {
    setUnsaved(isChanged);
    return () => setUnsaved(false);
  }, [isChanged]);
  const set = (name: keyof Values) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget;
    setValues((now) => ({ ...now, [name]: value })); // two inputs may come before the form is rendered again
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy) return;
    setIsBusy(true);
    try {
      await onSubmit(changedFields(values, before));
    } catch (failure) {
      setError(failure instanceof SyntaxError ? new Error("The metadata is not valid JSON.") : (failure as Error));
      setIsBusy(false);
    }
  };
  return (
    <form class="memory-form panel" onSubmit={submit}>
      <label class="wide">
        <span>Text</span>
        <textarea ref={text} rows={4} value={values.text} onInput={set("text")} readOnly={isBusy} required />
      </label>
      {FIELDS.map(([name, title, type]) => (
        <label key={name}>
          <span>{title}</span>
          <input type={type as "text"} value={values[name]} onInput={set(name)} readOnly={isBusy} />
        </label>
      ))}
      <label class="wide">
        <span>Metadata (JSON)</span>
        <textarea
          class="mono"
          rows={3}
          value={values.metadata}
          onInput={set("metadata")}
          readOnly={isBusy}
          spellcheck={false}
        />
      </label>
      {error && <Failure error={error} />}
      <p class="row wide">
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {action}
        </button>
        <button
          type="button"
          onClick={() => {
            setUnsaved(false);
            onCancel();
          }}
        >
          Cancel
        </button>
      </p>
    </form>
  );
}

interface EditProps {
  namespace: string;
  memory: Memory;
  onStored: () => void;
  onCancel: () => void;
}

export function EditMemory({ namespace, memory, onStored, onCancel }: EditProps) {
  const save = async (changed: Partial<MemoryInput>): Promise<void> => {
    const path = within(namespace, "memories", memory.id);
    if (Object.keys(changed).length > 0) await call(path, { method: "PATCH", body: changed });
    notify("Saved");
    onStored();
  };
  return <MemoryForm before={valuesOf(memory)} action="Save" onSubmit={save} onCancel={onCancel} />;
}

interface NewProps {
  namespace: string;
  supersedes: string | null;
  onStored: () => void;
}

/** A form for a new memory, also for one that supersedes another; afterwards it suggests outdated ones. */
export function NewMemory({ namespace, supersedes, onStored }: NewProps) {
  const [added, setAdded] = useState<Added>();
  const page = useRef<HTMLDivElement>(null);
  const former = useLoaded(
    async (signal) => (supersedes ? call<Memory>(within(namespace, "memories", supersedes), { signal }) : undefined),
    [namespace, supersedes],
  );
  const save = async (fields: Partial<MemoryInput>): Promise<void> => {
    const memory = { ...without(fields), text: fields.text ?? "", ...(supersedes ? { supersedes } : {}) };
    const [result] = await add(namespace, [memory], true);
    onStored();
    notify("Added");
    if (result!.may_supersede?.length) setAdded(result);
    else if (page.current) {
      // A reader who has left by then may be writing something.
      setUnsaved(false);
      go(href(namespace, "memories", result!.id));
    }
  };
  return (
    <div class="page memory" ref={page}>
      <p class="row links">
        <a href={href(namespace, "memories")}>All memories</a>
      </p>
      <h1>{supersedes ? "Supersede a memory" : "Add a memory"}</h1>
      {former.error && <Failure error={former.error} />}
      {former.data && <blockquote class="panel">{former.data.text}</blockquote>}
      {added ? (
        <MaySupersede namespace={namespace} added={added} onStored={onStored} />
      ) : (
        <MemoryForm
          before={valuesOf()}
          action={supersedes ? "Supersede" : "Add"}
          onSubmit={save}
          onCancel={() => go(href(namespace, "memories", supersedes ?? ""))}
        />
      )}
    </div>
  );
}

/** A new memory has no fields to clear. */
function without(fields: Partial<MemoryInput>): Partial<MemoryInput> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

interface MaySupersedeProps {
  namespace: string;
  added: Added;
  onStored: () => void;
}

/** Older statements that the new memory may replace; each can be marked as superseded by it. */
function MaySupersede({ namespace, added, onStored }: MaySupersedeProps) {
  const [replaced, setReplaced] = useState<string[]>([]);
  const title = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => title.current?.focus(), []);
  const { data, error } = useLoaded((signal) => readWhole(namespace, added.may_supersede ?? [], signal), [added.id]);
  const replace = async (id: string): Promise<void> => {
    const path = within(namespace, "memories", added.id);
    const { supersedes } = await call<Memory>(path);
    await call(path, { method: "PATCH", body: { supersedes: [...new Set([supersedes ?? [], id].flat())] } });
    setReplaced((before) => [...before, id]);
    onStored();
  };
  // Each one reads the list that the previous one has written.
  const writes = useRef(Promise.resolve());
  const queue = (id: string): void => {
    writes.current = writes.current.then(() => attempt(() => replace(id)));
  };
  return (
    <section class="panel">
      <h2 tabIndex={-1} ref={title}>
        Does it replace any of these?
      </h2>
      {error && <Failure error={error} />}
      <ul class="may-supersede" role="status">
        {data?.map(({ id, text }) => (
          <li key={id} class="row spread">
            <a href={href(namespace, "memories", id)}>{text}</a>
            {replaced.includes(id) ? (
              <span class="chip">Replaced</span>
            ) : (
              <button type="button" onClick={() => queue(id)}>
                Replace
                <span class="visually-hidden"> {text}</span>
              </button>
            )}
          </li>
        ))}
      </ul>
      <a class="button" href={href(namespace, "memories", added.id)}>
        Done
      </a>
    </section>
  );
}
