// Reading and writing memories; deletions here can be undone.

import { ApiError, type Filters, type Memory, type MemoryInput, call, within } from "../api";
import { counted } from "../format";
import { type Page, allRows, readPage } from "../pages";
import { notify } from "../ui/toasts";
import { callExactly, isRounded } from "./exact";

const BATCH = 200;
const PAGE = 1_000;

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
): Promise<Page<Memory>> {
  return readPage(namespace, "memories", { limit, filters: JSON.stringify(filters), cursor }, signal);
}

/** All memories that meet the filters, page by page, but at most `most`. */
export function allMemories(namespace: string, filters: Filters, signal: AbortSignal, most = 2_000): Promise<Memory[]> {
  return allRows(most, (cursor) => listMemories(namespace, filters, cursor, signal, PAGE));
}

/** The earlier one first. Times are in UTC and in one format, except for fractions: "10:00:00Z" is before "10:00:00.5Z". */
export function byTime(a: Pick<Memory, "created_at">, b: Pick<Memory, "created_at">): number {
  const [one, other] = [a, b].map(({ created_at }) => created_at.replace("Z", ""));
  return one! < other! ? -1 : one! > other! ? 1 : 0;
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

/** Memories with all their fields, in the order of the ids, without deleted ones. */
export async function readWhole(namespace: string, ids: string[], signal?: AbortSignal): Promise<Memory[]> {
  const found = await Promise.all(
    ids.map((id) => ifThere(callExactly<Memory>(within(namespace, "memories", id), { signal }))),
  );
  return found.filter((memory) => memory !== undefined);
}

/** An answer, or undefined if it is a 404. */
async function ifThere<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
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
 * Delete memories, and offer to restore them, unless the browser has rounded some of their metadata.
 *
 * `onChanged` gets the ids deleted now or before, and later those restored. If a delete fails, its error is thrown after
 * offering to restore the memories deleted before it.
 */
export async function removeWithUndo(
  namespace: string,
  ids: string[],
  onChanged: (ids: ReadonlySet<string>, areGone: boolean) => void,
): Promise<void> {
  const memories = await readWhole(namespace, ids);
  const gone = new Set(ids);
  for (const { id } of memories) gone.delete(id);
  const removed: Memory[] = [];
  try {
    for (const memory of memories) {
      const path = within(namespace, "memories", memory.id);
      const wasThere = await ifThere(call(path, { method: "DELETE" }).then(() => true));
      if (wasThere) removed.push(memory);
      gone.add(memory.id);
    }
  } finally {
    if (gone.size > 0) onChanged(gone, true);
    if (removed.length > 0) {
      const undo = (): void => void putBack(namespace, removed, (ids) => onChanged(ids, false));
      const canUndo = !removed.some(({ metadata }) => isRounded(metadata));
      notify(`Deleted ${counted(removed.length, "memory", "memories")}`, canUndo ? undo : undefined);
    }
  }
}

async function putBack(
  namespace: string,
  memories: Memory[],
  onBack: (ids: ReadonlySet<string>) => void,
): Promise<void> {
  const left = [...memories];
  let newer = 0;
  try {
    while (left.length > 0) {
      const batch = left.slice(0, BATCH);
      const there = await thoseThere(namespace, batch.map(({ id }) => id));
      const given = batch.filter(({ id }) => !there.has(id)).map(({ superseded_by: _, ...memory }) => memory);
      if (given.length > 0) await add(namespace, given);
      left.splice(0, BATCH);
      newer += there.size;
      onBack(new Set(given.map(({ id }) => id)));
    }
    if (newer < memories.length) notify("Restored");
    if (newer > 0) notify(`Not restored: ${counted(newer, "memory", "memories")} rewritten in the meantime`);
  } catch (error) {
    // Only this toast still has these memories, so it offers the undo again.
    notify(`Not restored: ${(error as Error).message}`, () => void putBack(namespace, left, onBack));
  }
}

/** Which of these ids have a memory. Usually none has: an empty update tells without 404s. */
async function thoseThere(namespace: string, ids: string[]): Promise<Set<string>> {
  const path = within(namespace, "memories", "update");
  const receipt = await ifThere(call<{ matched: number }>(path, { method: "POST", body: { ids, set: {} } }));
  return new Set(receipt?.matched ? (await readWhole(namespace, ids)).map(({ id }) => id) : []);
}
