// Toasts at the bottom of the page: what was done, with a button to undo it.

import { useEffect, useState } from "preact/hooks";

interface Toast {
  id: number;
  text: string;
  undo?: () => void;
}

const UNDO_MS = 12_000;
const NOTE_MS = 5_000;

let show: (toast: Toast) => void = () => undefined;
let number = 0;

/** Show what was done; with `undo` it can be undone for twelve seconds, also by Ctrl+Z. */
export function notify(text: string, undo?: () => void): void {
  show({ id: ++number, text, ...(undo ? { undo } : {}) });
}

/** Run a button's action; if it fails, show why. */
export async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    notify((error as Error).message);
  }
}

export function Toasts() {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const remove = (id: number): void => setToasts((all) => all.filter((toast) => toast.id !== id));
  useEffect(() => {
    show = (toast) => {
      setToasts((all) => [...all, toast]);
      setTimeout(() => remove(toast.id), toast.undo ? UNDO_MS : NOTE_MS);
    };
  }, []);
  const undo = (toast: Toast): void => {
    remove(toast.id);
    toast.undo!();
  };
  // By keyboard the button may be many links away from what was pressed.
  const latest = toasts.filter((toast) => toast.undo).at(-1);
  useEffect(() => {
    if (!latest) return;
    const press = (event: KeyboardEvent): void => {
      const isText = (event.target as Element).matches("input:not([type=checkbox]), textarea");
      if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || event.repeat || isText) return;
      event.preventDefault(); // the browser would undo what was typed last
      undo(latest);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [latest]);
  return (
    <div class="toasts" role="status">
      {toasts.map((toast) => (
        <div key={toast.id} class="toast">
          <span>{toast.text}</span>
          {toast.undo && (
            <button type="button" aria-keyshortcuts="Control+Z" onClick={() => undo(toast)}>
              Undo
            </button>
          )}
        </div>
      ))}
    </div>
  );
}
