import type { Memory } from "../api";
import { findEntities } from "../graph/find_entities";
import { useLoaded } from "../loading";
import { href } from "../route";

interface Props {
  namespace: string;
  entities: Memory["entities"];
}

/** The entities that a memory names itself, each with a way into the graph. The API tells their names, not their ids. */
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

/** None if several or none bear the name: a wrong way is worse than none. */
async function idOf(namespace: string, name: string, signal: AbortSignal): Promise<string | undefined> {
  const entities = await findEntities(namespace, name, { words: true, limit: 1_000, signal });
  const same = entities.filter((entity) => entity.name.toLowerCase() === name.toLowerCase());
  return same.length === 1 ? same[0]!.id : undefined;
}
