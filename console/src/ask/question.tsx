import { useEffect, useState } from "preact/hooks";

interface Props {
  asked: string;
  history: string[];
  onAsk: (question: string) => void;
  onForget: () => void;
}

/** The question box, and the questions asked before. */
export function Question({ asked, history, onAsk, onForget }: Props) {
  const [text, setText] = useState(asked);
  useEffect(() => setText(asked), [asked]);
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
        autofocus={!asked}
      />
      <button type="submit" class="primary">
        Ask
      </button>
      {history.length > 0 && (
        <details class="history" key={asked}>
          <summary>History</summary>
          <div class="history-list">
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
              Clear the history
            </button>
          </div>
        </details>
      )}
    </form>
  );
}
