import { useState } from "preact/hooks";

import type { EntityEdge, EntitySummary } from "../api";
import { counted } from "../format";
import { useLoaded } from "../loading";
import { go, href } from "../route";
import { attempt, notify } from "../ui/toasts";
import { entityNamed, findEntities } from "./find_entities";

export interface Paths {
  paths: { entities: EntitySummary[]; edges: EntityEdge[] }[];
  truncated: boolean;
}

/** How two entities are connected, step by step, with the memories as evidence. */
export function PathSteps({ namespace, paths }: { namespace: string; paths: Paths }) {
  if (paths.paths.length === 0) return <p>Not connected within three steps.</p>;
  return (
    <section>
      <h3>How they are connected</h3>
      {paths.paths.map(({ entities, edges }) => (
        <ol key={entities.map(({ id }) => id).join(" ")} class="path-steps">
          {edges.map((edge, i) => (
            <li key={i}>
              <a href={href(namespace, "graph", entities[i]!.id)}>{entities[i]!.name}</a>{" "}
              <span class="soft">{edge.type?.replaceAll("_", " ") ?? "and"}</span>{" "}
              <a href={href(namespace, "graph", entities[i + 1]!.id)}>{entities[i + 1]!.name}</a>{" "}
              <span class="hint">in {counted(edge.memories, "memory", "memories")}:</span>{" "}
              {edge.evidence[0] && (
                <a class="hint" href={href(namespace, "memories", edge.evidence[0])}>
                  {edge.evidence[0]}
                </a>
              )}
            </li>
          ))}
        </ol>
      ))}
    </section>
  );
}

/** Choose a second entity, to see how the first one is connected to it. */
export function PathForm({ namespace, source }: { namespace: string; source: string }) {
  const [text, setText] = useState("");
  const { data } = useLoaded(
    async (signal) => (text ? findEntities(namespace, text, { limit: 8, signal }) : undefined),
    [namespace, text],
  );
  // Looked up again: fast typing is ahead of the suggestions.
  const submit = (event: Event): void => {
    event.preventDefault();
    void attempt(async () => {
      const found = await entityNamed(namespace, text);
      if (found) go(href(namespace, "graph", source, { to: found.id }));
      else notify(`No entity named “${text}”`);
    });
  };
  return (
    <form class="path-form" onSubmit={submit}>
      <label>
        <span>Path to</span>
        <input list="second-entity" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <datalist id="second-entity">
        {data?.map(({ id, name }) => (
          <option key={id} value={name} />
        ))}
      </datalist>
      <button type="submit">Find path</button>
    </form>
  );
}
