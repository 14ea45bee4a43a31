// Reading and writing memories; whatever is deleted here can be put back.

import { type Filters, type Memory, type MemoryInput, call, within } from "../api";
import { counted } from "../format";
import { notify } from "../ui/toasts";
import { callExactly, isRounded } from "./exact";

const BATCH = 200;

export interface MemoryPageData {
  memories: Memory[];
  next_cursor: string | null;
}

export interface Added {
  id: string;
  status: "created" | "updated" | "unchanged" | "rejected";
  error: string | null;
  may_supersede?: string[];
}

export function listMemories(
  namespace: string,
  filters: Filters,
  cursor: string | undefined,
  signal: AbortSignal,
  limit = 50,
): Promise<MemoryPageData> {
  const query = { limit, filters: JSON.stringify(filters), ...(cursor ? { cursor } : {}) };
  return call(within(namespace, "memories"), { query, signal });
}

/** All memories that meet the filters, page by page, but at most `most`. */
export async function allMemories(
  namespace: string,
  filters: Filters,
  signal: AbortSignal,
  most = 2_000,
): Promise<Memory[]> {
  const all: Memory[] = [];
  let cursor: string | undefined;
  do {
    const page = await listMemories(namespace, filters, cursor, signal, 200);
    all.push(...page.memories);
    cursor = page.next_cursor ?? undefined;
  } while (cursor && all.length < most);
  return all;
}

/** Store memories; throws with the server's reason if it rejects one. */
export async function add(namespace: string, memories: MemoryInput[], maySupersede = false): Promise<Added[]> {
  const { results } = await call<{ results: Added[] }>(within(namespace, "memories"), {
    method: "POST",
    query: { may_supersede: maySupersede || undefined },
    body: { memories },
  });
  const rejected = results.find(({ status }) => status === "rejected");
  if (rejected) throw new Error(rejected.error ?? "rejected");
  return results;
}

/** Memories with all their fields, in the order of the ids. */
export async function readWhole(namespace: string, ids: string[], signal?: AbortSignal): Promise<Memory[]> {
  return Promise.all(ids.map((id) => callExactly<Memory>(within(namespace, "memories", id), signal ? { signal } : {})));
}

/** All memories of a namespace, or undefined if they are too many to be read at once. */
export async function wholeNamespace(
  namespace: string,
  most: number,
  signal: AbortSignal,
): Promise<Memory[] | undefined> {
  const info = await call<{ memories: number }>(`/v1/namespaces/${encodeURIComponent(namespace)}`, { signal });
  return info.memories > most ? undefined : allMemories(namespace, {}, signal, most);
}

/**
 * Delete memories, and offer to put them back as they were, unless the browser has rounded some of their metadata.
 *
 * `onChanged` gets the ids that are gone now: all that could be deleted, and none after they were put back. A delete
 * that fails is thrown, after the way back for those before it was offered.
 */
export async function removeWithUndo(
  namespace: string,
  memories: Memory[],
  onChanged: (gone: ReadonlySet<string>) => void,
): Promise<void> {
  const removed: Memory[] = [];
  try {
    for (const memory of memories) {
      await call(within(namespace, "memories", memory.id), { method: "DELETE" });
      removed.push(memory);
    }
  } finally {
    if (removed.length > 0) {
      onChanged(new Set(removed.map(({ id }) => id)));
      const undo = (): void => void putBack(namespace, removed, () => onChanged(new Set()));
      const canUndo = !removed.some(({ metadata }) => isRounded(metadata));
      notify(`Deleted ${counted(removed.length, "memory", "memories")}`, canUndo ? undo : undefined);
    }
  }
}

async function putBack(namespace: string, memories: Memory[], onDone: () => void): Promise<void> {
  const given = memories.map(({ superseded_by: _, ...memory }) => memory);
  try {
    for (let i = 0; i < given.length; i += BATCH) await add(namespace, given.slice(i, i + BATCH));
    onDone();
    notify("Put back");
  } catch (error) {
    // Nothing but this note holds these memories now, so that it offers the way back again.
    notify(`Not put back: ${(error as Error).message}`, () => void putBack(namespace, memories, onDone));
  }
}
