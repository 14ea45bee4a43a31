import { useState } from "preact/hooks";

import { call, within } from "../api";
import { count, counted } from "../format";
import { href } from "../route";
import { Failure } from "../ui/failure";

interface Receipt {
  deleted: string[];
  mentioned_by: string[];
}

const MOST_SHOWN = 100;

/** Delete all that somebody said, or all that mentions an entity: first what it would be, then for good. */
export function Forget({ namespace, onForgotten }: { namespace: string; onForgotten: () => void }) {
  const [what, setWhat] = useState<"speaker" | "entity">("speaker");
  const [name, setName] = useState("");
  const [planned, setPlanned] = useState<Receipt>();
  const [done, setDone] = useState<Receipt>();
  const [error, setError] = useState<Error>();
  const forget = async (isDry: boolean): Promise<void> => {
    try {
      const body = { [what]: name, dry_run: isDry };
      const receipt = await call<Receipt>(within(namespace, "forget"), { method: "POST", body });
      setError(undefined);
      setPlanned(isDry ? receipt : undefined);
      setDone(isDry ? undefined : receipt);
      if (!isDry) onForgotten();
    } catch (failure) {
      setError(failure as Error);
    }
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    void forget(true);
  };
  return (
    <div class="page memory">
      <p class="row links">
        <a href={href(namespace, "memories")}>All memories</a>
      </p>
      <h1>Forget</h1>
      <form class="panel memory-form" onSubmit={submit}>
        <label>
          <span>What</span>
          <select value={what} onChange={(event) => setWhat(event.currentTarget.value as typeof what)}>
            <option value="speaker">all that a speaker said</option>
            <option value="entity">all that mentions an entity</option>
          </select>
        </label>
        <label>
          <span>Name</span>
          <input
            value={name}
            required
            onInput={(event) => {
              setName(event.currentTarget.value);
              setPlanned(undefined);
            }}
          />
        </label>
        <p class="wide">
          <button type="submit">Show what would go</button>
        </p>
      </form>
      {error && <Failure error={error} />}
      <div role="status">
        {planned && (
          <section class="panel memory">
            <p>
              {counted(planned.deleted.length, "memory", "memories")} would be deleted for good.
              {planned.mentioned_by.length > 0 &&
                ` ${counted(planned.mentioned_by.length, "memory", "memories")} of others mention ${name} and stay.`}
            </p>
            {planned.deleted.length > 0 && (
              <>
                <Which namespace={namespace} ids={planned.deleted} />
                <button type="button" class="danger" onClick={() => void forget(false)}>
                  Delete {counted(planned.deleted.length, "memory", "memories")}
                </button>
              </>
            )}
          </section>
        )}
        {done && <p>{counted(done.deleted.length, "memory", "memories")} deleted.</p>}
      </div>
    </div>
  );
}

/** The memories that would go, to look at before. */
function Which({ namespace, ids }: { namespace: string; ids: string[] }) {
  return (
    <details>
      <summary>Which</summary>
      <ul class="row which">
        {ids.slice(0, MOST_SHOWN).map((id) => (
          <li key={id}>
            <a href={href(namespace, "memories", id)}>{id}</a>
          </li>
        ))}
      </ul>
      {ids.length > MOST_SHOWN && <p class="hint">and {count(ids.length - MOST_SHOWN)} more</p>}
    </details>
  );
}
