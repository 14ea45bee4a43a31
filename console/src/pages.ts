// Lists that are read page by page.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { type Call, call, within } from "./api";
import { type Loaded, useLoaded } from "./loading";

export interface Page<T> {
  rows: T[];
  next: string | null;
}

/** A page of one of the API's lists, which are named after their paths. */
export async function readPage<T>(
  namespace: string,
  list: "documents" | "entities" | "feedback" | "memories",
  query: NonNullable<Call["query"]>,
  signal?: AbortSignal,
): Promise<Page<T>> {
  const page = await call<Record<typeof list, T[]> & { next_cursor: string | null }>(within(namespace, list), {
    query,
    signal,
  });
  return { rows: page[list], next: page.next_cursor };
}

/** The rows of all pages, one after another, until there are `most`. */
export async function allRows<T>(most: number, read: (cursor: string | undefined) => Promise<Page<T>>): Promise<T[]> {
  const all: T[] = [];
  let cursor: string | undefined;
  do {
    const { rows, next } = await read(cursor);
    all.push(...rows);
    cursor = next ?? undefined;
  } while (cursor && all.length < most);
  return all;
}

export interface Pages<T> extends Loaded<Page<T>> {
  rows: T[];
  /** Whether all pages are read and have no rows. */
  isEmpty: boolean;
  /** Hide rows that were deleted, or show them again where they were. */
  setGone: (ids: ReadonlySet<string>, areGone: boolean) => void;
  hasMore: boolean;
  more: () => void;
  /** For the list's element: after `more`, the first new row's link gets the focus. */
  list: RefObject<HTMLUListElement | null>;
}

export function usePages<T extends { id: string }>(
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
): Pages<T> {
  const [all, setAll] = useState<T[]>();
  const [gone, setGone] = useState<ReadonlySet<string>>(new Set());
  const [cursor, setCursor] = useState<string>();
  const list = useRef<HTMLUListElement>(null);
  const firstNew = useRef<number | undefined>(undefined);
  const loaded = useLoaded(
    async (signal) => ({ ...(await read(cursor, signal)), isFirst: cursor === undefined }),
    [cursor],
  );
  const { data } = loaded;
  useEffect(() => {
    if (data) setAll((before) => (data.isFirst ? data.rows : joined(before ?? [], data.rows)));
  }, [data]);
  useEffect(() => {
    const row = firstNew.current === undefined ? undefined : list.current?.children[firstNew.current];
    if (!row) return;
    firstNew.current = undefined;
    row.querySelector<HTMLElement>("a")?.focus({ preventScroll: true });
  }, [all]);
  const rows = (all ?? []).filter(({ id }) => !gone.has(id));
  const next = data?.next ?? undefined;
  const hasMore = next !== undefined;
  const isEmpty = data !== undefined && all !== undefined && rows.length === 0 && !hasMore;
  const more = (): void => {
    firstNew.current = rows.length;
    setCursor(next);
  };
  const hide = (ids: ReadonlySet<string>, areGone: boolean): void =>
    setGone((before) => new Set(areGone ? [...before, ...ids] : [...before].filter((id) => !ids.has(id))));
  return { ...loaded, rows, isEmpty, setGone: hide, hasMore, more, list };
}

/** Rows deleted and restored come again, after all others. */
function joined<T extends { id: string }>(rows: T[], more: T[]): T[] {
  const ids = new Set(rows.map(({ id }) => id));
  return [...rows, ...more.filter(({ id }) => !ids.has(id))];
}
