import type { Memory } from "../api";
import { findEntities } from "../graph/find_entities";
import { useLoaded } from "../loading";
import { href } from "../route";

interface Props {
  namespace: string;
  entities: Memory["entities"];
}

/** The entities that a memory names, each with a link into the graph. The API gives their names, not their ids. */
export function EntityLinks({ namespace, entities }: Props) {
  const names = entities.map(({ name }) => name);
  const { data } = useLoaded(
    (signal) => Promise.all(names.map((name) => idOf(namespace, name, signal))),
    [namespace, names.join("\n")],
  );
  return (
    <ul class="row entity-links">
      {names.map((name, i) => (
        <li key={name}>{data?.[i] ? <a href={href(namespace, "graph", data[i])}>{name}</a> : name}</li>
      ))}
    </ul>
  );
}

/** None unless exactly one has the name: a wrong link is worse than none. */
async function idOf(namespace: string, name: string, signal: AbortSignal): Promise<string | undefined> {
  const entities = await findEntities(namespace, name, { words: true, limit: 1_000, signal });
  const same = entities.filter((entity) => entity.name.toLowerCase() === name.toLowerCase());
  return same.length === 1 ? same[0]!.id : undefined;
}
