import type { EntityPage } from "../api";
import { call, within } from "../api";
import { counted, day } from "../format";
import { useLoaded } from "../loading";
import { href } from "../route";
import { Failure } from "../ui/failure";
import { type GraphInView, neighborsOf } from "./model";

interface Props {
  namespace: string;
  id: string;
  graph: GraphInView;
  onExpand: () => void;
  onHover: (id: string | undefined) => void;
}

const FIRST = 12;

/** An entity's page: what it is, whom it stands beside, and the memories that mention it. */
export function EntityCard({ namespace, id, graph, onExpand, onHover }: Props) {
  const { data, error, reload } = useLoaded(
    (signal) => call<EntityPage>(within(namespace, "entities", id), { query: { words: true }, signal }),
    [namespace, id],
  );
  if (error) return <Failure error={error} onRetry={reload} />;
  if (!data) return null;
  const neighbors = neighborsOf(graph, id);
  return (
    <section class="panel entity-card" aria-live="polite">
      <p>
        <a href={href(namespace, "graph")}>Whole graph</a>
      </p>
      <h2 class="entity-name">{data.name}</h2>
      <p class="hint">
        {data.type}, {counted(data.mentions, "mention", "mentions")}
        {data.first_mentioned_at && `, ${day(data.first_mentioned_at)} to ${day(data.last_mentioned_at!)}`}
        {data.aliases.length > 0 && `; also ${data.aliases.join(", ")}`}
      </p>
      <p class="row">
        <button type="button" onClick={onExpand}>
          Expand
        </button>
        <a class="button" href={href(namespace, "ask", "", { q: `What do we know about ${data.name}?` })}>
          Ask about it
        </a>
      </p>
      {data.relations.length > 0 && <Relations namespace={namespace} relations={data.relations} />}
      <h3>Beside it in view</h3>
      <ul class="entity-list">
        {neighbors.slice(0, FIRST).map(({ node, link }) => (
          <li key={node.id} onMouseEnter={() => onHover(node.id)} onMouseLeave={() => onHover(undefined)}>
            <a href={href(namespace, "graph", node.id)}>{node.name}</a>
            <span class="hint">{link.type ?? counted(link.memories, "memory", "memories")}</span>
          </li>
        ))}
      </ul>
      {neighbors.length > FIRST && <p class="hint">and {neighbors.length - FIRST} more</p>}
      <h3>Memories</h3>
      <ul class="entity-memories">
        {data.memories.map((memory) => (
          <li key={memory.id}>
            <a href={href(namespace, "memories", memory.id)}>{memory.snippet}</a>
            <span class="hint"> {day(memory.created_at)}</span>
          </li>
        ))}
      </ul>
      {data.next_cursor && <p class="hint">The newest {data.memories.length} are shown.</p>}
    </section>
  );
}

function Relations({ namespace, relations }: { namespace: string; relations: EntityPage["relations"] }) {
  return (
    <>
      <h3>Relations</h3>
      <ul class="entity-list">
        {relations.map(({ source, type, target }) => (
          <li key={`${source.id} ${type} ${target.id}`}>
            <span>
              <a href={href(namespace, "graph", source.id)}>{source.name}</a> {type.replaceAll("_", " ")}{" "}
              <a href={href(namespace, "graph", target.id)}>{target.name}</a>
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
