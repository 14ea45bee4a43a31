import { useState } from "preact/hooks";

import { useLoaded } from "../loading";
import { href } from "../route";
import { Failure } from "../ui/failure";
import { findEntities } from "./find_entities";

/** Search for entities by part of their name. */
export function EntitySearch({ namespace }: { namespace: string }) {
  const [text, setText] = useState("");
  const { data, error } = useLoaded(
    async (signal) => (text ? findEntities(namespace, text, { words: true, limit: 8, signal }) : undefined),
    [namespace, text],
  );
  return (
    <search>
      <label>
        <span>Find an entity</span>
        <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      {error && <Failure error={error} />}
      {data && (
        <ul class="entity-list found" aria-label="Entities found">
          {data.map(({ id, name, type, mentions }) => (
            <li key={id}>
              <a href={href(namespace, "graph", id)} onClick={() => setText("")}>
                {name}
              </a>
              <span class="hint">
                {type}, {mentions}
              </span>
            </li>
          ))}
          {data.length === 0 && <li class="soft">No matches</li>}
        </ul>
      )}
    </search>
  );
}
