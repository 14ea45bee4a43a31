import type { TargetedEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { isFocusFree } from "../focus";

interface Props {
  asked: string;
  history: string[];
  onAsk: (question: string) => void;
  onForget: () => void;
}

/** The question box, and the questions asked before. */
export function Question({ asked, history, onAsk, onForget }: Props) {
  const [text, setText] = useState(asked);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    setText(asked);
    if (!asked && isFocusFree()) field.current!.focus();
  }, [asked]);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (text.trim()) onAsk(text.trim());
  };
  return (
    <form class="question" role="search" onSubmit={submit}>
      <label class="visually-hidden" for="question">
        Question
      </label>
      <input
        id="question"
        type="search"
        placeholder="What would you like to know?"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        autocomplete="off"
        ref={field}
      />
      <button type="submit" class="primary">
        Ask
      </button>
      {history.length > 0 && (
        <details class="history" key={asked} onKeyDown={closeByEscape} onFocusOut={closeIfLeft}>
          <summary>History</summary>
          {/* It can have the focus, so that a press between its entries does not leave it. */}
          <div class="history-list" tabIndex={-1}>
            <ul>
              {history.map((question) => (
                <li key={question}>
                  <button
                    type="button"
                    class="quiet"
                    onClick={() => {
                      setText(question);
                      onAsk(question);
                    }}
                  >
                    {question}
                  </button>
                </li>
              ))}
            </ul>
            <button type="button" class="link" onClick={onForget}>
              Clear history
            </button>
          </div>
        </details>
      )}
    </form>
  );
}

type DetailsEvent<E extends Event> = TargetedEvent<HTMLDetailsElement, E>;

function closeByEscape({ key, currentTarget: list }: DetailsEvent<KeyboardEvent>): void {
  if (key !== "Escape" || !list.open) return;
  list.open = false;
  list.querySelector("summary")!.focus();
}

function closeIfLeft({ relatedTarget, currentTarget: list }: DetailsEvent<FocusEvent>): void {
  if (!list.contains(relatedTarget as Node | null)) list.open = false;
}
