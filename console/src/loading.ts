// Reading from the API in a view: the data, whether a request is running, and the error.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Loaded<T> {
  data: T | undefined;
  error: Error | undefined;
  isLoading: boolean;
  reload: () => void;
}

/**
 * Load when the view appears and whenever `inputs` change; an older answer never replaces a newer one.
 *
 * With an error, `data` are the last ones for the same inputs. Such an error stays until the next answer.
 */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: Error; isLoading: boolean }>({ isLoading: true });
  const [turn, setTurn] = useState(0);
  const areOfInputs = useRef(false);
  useEffect(() => {
    areOfInputs.current = false;
  }, inputs);
  useEffect(() => {
    const controller = new AbortController();
    setState(({ error, ...before }) => ({ ...before, ...(areOfInputs.current && { error }), isLoading: true }));
    load(controller.signal).then(
      (data) => {
        if (controller.signal.aborted) return;
        areOfInputs.current = true;
        setState({ data, isLoading: false });
      },
      (error: Error) => {
        if (controller.signal.aborted) return;
        setState((before) => ({ ...(areOfInputs.current ? before : {}), error, isLoading: false }));
      },
    );
    return () => controller.abort();
  }, [...inputs, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  return { data: state.data, error: state.error, isLoading: state.isLoading, reload };
}

/** Load again some time after each answer, while the page is visible. */
export function useReloading({ isLoading, reload }: Pick<Loaded<unknown>, "isLoading" | "reload">, afterMs: number): void {
  useEffect(() => {
    if (isLoading) return;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") reload();
    }, afterMs);
    return () => clearInterval(timer);
  }, [isLoading, reload, afterMs]);
}

/**
 * Run at most one request at a time, then the newest of those requested meanwhile.
 *
 * A slider moves more often than a server answers: each answer shows where the slider was a moment ago, and the last
 * one where it stopped.
 */
export function useLatest<A>(run: (argument: A) => Promise<void>): (argument: A) => void {
  const state = useRef<{ isRunning: boolean; next: A | undefined }>({ isRunning: false, next: undefined });
  const work = useRef(run);
  work.current = run;
  return useCallback((argument: A) => {
    const current = state.current;
    current.next = argument;
    if (current.isRunning) return;
    current.isRunning = true;
    void (async () => {
      while (current.next !== undefined) {
        const next = current.next;
        current.next = undefined;
        await work.current(next);
      }
      current.isRunning = false;
    })();
  }, []);
}
