import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { ApiError, call, rememberKey } from "./api";

/** Asks for the API key; it is kept until the tab is closed and only sent to this server. */
export function KeyForm({ onAccepted }: { onAccepted: () => void }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await call("/v1/namespaces", { key: key.trim() });
      rememberKey(key.trim());
      onAccepted();
    } catch (failure) {
      const isRefused = failure instanceof ApiError && failure.status === 401;
      setError(isRefused ? "The server does not accept this key." : (failure as Error).message);
    }
  };
  return (
    <main class="page key-form">
      <h1>
        <img src="/console/icon.svg" alt="" width="28" height="28" /> Trivet
      </h1>
      <form onSubmit={submit}>
        <label>
          API key
          <input
            type="password"
            autocomplete="current-password"
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
            aria-describedby="key-help"
            aria-invalid={error !== ""}
            ref={field}
            required
          />
        </label>
        <p id="key-help" class="hint">
          The server's <code>TRIVET_API_KEY</code>, or a token. It is kept until you close this tab.
        </p>
        {error && <p role="alert">{error}</p>}
        <button type="submit" class="primary">
          Continue
        </button>
      </form>
    </main>
  );
}
