import { notify } from "../ui/toasts";

/** Copies a text and reports it, or that the browser does not allow it. */
export function Copy({ text, label }: { text: string; label: string }) {
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      notify("Copied");
    } catch {
      notify("The browser blocked copying. Select the text instead.");
    }
  };
  return (
    <button type="button" onClick={() => void copy()} aria-label={label}>
      Copy
    </button>
  );
}
