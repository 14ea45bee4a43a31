import { useState } from "preact/hooks";

import { type Call, call, within } from "../api";
import { count, counted } from "../format";
import { useLoaded } from "../loading";
import { href } from "../route";
import { Failure } from "../ui/failure";
import { attempt } from "../ui/toasts";

interface Target {
  what: "speaker" | "entity";
  name: string;
}

interface Receipt {
  deleted: string[];
  mentioned_by: string[];
}

const MOST_SHOWN = 100;

/** Delete everything a speaker said, or everything that mentions an entity: first as a preview, then for good. */
export function Forget({ namespace, onForgotten }: { namespace: string; onForgotten: () => void }) {
  const [target, setTarget] = useState<Target>({ what: "speaker", name: "" });
  const [asked, setAsked] = useState<Target>();
  const [done, setDone] = useState<Receipt>();
  const [isBusy, setIsBusy] = useState(false);
  const forget = ({ what, name }: Target, isDry: boolean, options: Call = {}): Promise<Receipt> => {
    const body = { [what]: name, dry_run: isDry };
    return call(within(namespace, "forget"), { method: "POST", body, ...options });
  };
  const plan = useLoaded(
    async (signal) => asked && { target: asked, ...(await forget(asked, true, { signal })) },
    [namespace, asked],
  );
  // Only a preview of the form's content is shown; a running one is aborted when the form changes.
  const planned = asked && plan.data;
  const change = (part: Partial<Target>): void => {
    setTarget((now) => ({ ...now, ...part }));
    setAsked(undefined);
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    setDone(undefined);
    setAsked({ ...target });
  };
  const remove = async (planned: Target): Promise<void> => {
    setIsBusy(true);
    await attempt(async () => {
      setDone(await forget(planned, false));
      setAsked(undefined);
      onForgotten();
    });
    setIsBusy(false);
  };
  return (
    <div class="page memory">
      <p class="row links">
        <a href={href(namespace, "memories")}>All memories</a>
      </p>
      <h1>Forget a speaker or entity</h1>
      <form class="panel memory-form" onSubmit={submit}>
        <label>
          <span>Delete</span>
          <select
            value={target.what}
            onChange={(event) => change({ what: event.currentTarget.value as Target["what"] })}
          >
            <option value="speaker">Everything a speaker said</option>
            <option value="entity">Everything that mentions an entity</option>
          </select>
        </label>
        <label>
          <span>Name</span>
          <input value={target.name} required onInput={(event) => change({ name: event.currentTarget.value })} />
        </label>
        <p class="wide">
          <button type="submit">Preview</button>
        </p>
      </form>
      {plan.error && <Failure error={plan.error} />}
      <div role="status">
        {planned && (
          <section class="panel memory">
            <p>
              {counted(planned.deleted.length, "memory", "memories")} would be deleted for good.
              {planned.mentioned_by.length > 0 &&
                ` ${counted(planned.mentioned_by.length, "memory", "memories")} by others mention ${planned.target.name} and will be kept.`}
            </p>
            {planned.deleted.length > 0 && (
              <>
                <Which namespace={namespace} ids={planned.deleted} />
                <button type="button" class="danger" disabled={isBusy} onClick={() => void remove(planned.target)}>
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

/** A preview of the memories that would be deleted. */
function Which({ namespace, ids }: { namespace: string; ids: string[] }) {
  return (
    <details>
      <summary>Show memories</summary>
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
