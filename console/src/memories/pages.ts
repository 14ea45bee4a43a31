// A list that is read page by page.

import type { RefObject } from "preact";
import { type StateUpdater, useEffect, useRef, useState } from "preact/hooks";

import { useLoaded } from "../loading";

export interface Page<T> {
  rows: T[];
  next: string | null;
}

export interface Pages<T> {
  rows: T[];
  setRows: (rows: StateUpdater<T[]>) => void;
  hasMore: boolean;
  isLoading: boolean;
  error: Error | undefined;
  more: () => void;
  retry: () => void;
  /** For the list's element: after `more`, the first new row's link gets the focus. */
  list: RefObject<HTMLUListElement | null>;
}

export function usePages<T>(read: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>): Pages<T> {
  const [rows, setRows] = useState<T[]>([]);
  const [cursor, setCursor] = useState<string>();
  const list = useRef<HTMLUListElement>(null);
  const firstNew = useRef<number | undefined>(undefined);
  const { data, error, isLoading, reload } = useLoaded(
    async (signal) => ({ ...(await read(cursor, signal)), isFirst: cursor === undefined }),
    [cursor],
  );
  useEffect(() => {
    if (data) setRows((before) => (data.isFirst ? data.rows : [...before, ...data.rows]));
  }, [data]);
  useEffect(() => {
    const row = firstNew.current === undefined ? undefined : list.current?.children[firstNew.current];
    if (!row) return;
    firstNew.current = undefined;
    row.querySelector<HTMLElement>("a")?.focus({ preventScroll: true });
  }, [rows]);
  const next = data?.next ?? undefined;
  const more = (): void => {
    firstNew.current = rows.length;
    setCursor(next);
  };
  return { rows, setRows, hasMore: next !== undefined, isLoading, error, more, retry: reload, list };
}
