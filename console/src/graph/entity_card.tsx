import type { ComponentChildren } from "preact";

import type { EntityPage } from "../api";
import { call, within } from "../api";
import { counted, day } from "../format";
import { useLoaded } from "../loading";
import { href } from "../route";
import { Failure } from "../ui/failure";
import type { MemoryQuery } from "./filters";
import { type GraphInView, neighborsOf } from "./model";

interface Props {
  namespace: string;
  id: string;
  /** Which memories count. */
  query: MemoryQuery;
  graph: GraphInView;
  graphError: Error | undefined;
  onRetry: () => void;
  onExpand: () => void;
  onHover: (id: string | undefined) => void;
  /** What else can be done with the entity. */
  children: ComponentChildren;
}

const FIRST = 12;

/** An entity's page: what it is, its neighbours, and the memories that mention it; or why it is missing. */
export function EntityCard(props: Props) {
  const { namespace, id, query, graph, graphError, onRetry, onExpand, onHover, children } = props;
  const { data, error, reload } = useLoaded(
    (signal) => call<EntityPage>(within(namespace, "entities", id), { query: { ...query, words: true }, signal }),
    [namespace, id, query.filters, query.as_of],
  );
  const failure = error ?? graphError;
  const retry = (): void => {
    reload();
    onRetry();
  };
  return (
    <section class="panel entity-card" aria-live="polite">
      <p>
        <a href={href(namespace, "graph")}>Whole graph</a>
      </p>
      {failure && <Failure error={failure} onRetry={retry} />}
      {data && (
        <Details namespace={namespace} page={data} graph={graph} onExpand={onExpand} onHover={onHover}>
          {children}
        </Details>
      )}
    </section>
  );
}

type DetailsProps = Pick<Props, "namespace" | "graph" | "onExpand" | "onHover" | "children"> & { page: EntityPage };

function Details({ namespace, page, graph, onExpand, onHover, children }: DetailsProps) {
  const neighbors = neighborsOf(graph, page.id);
  return (
    <>
      <h2 class="entity-name">{page.name}</h2>
      <p class="hint">
        {page.type}, {counted(page.mentions, "mention", "mentions")}
        {page.first_mentioned_at && `, ${day(page.first_mentioned_at)} to ${day(page.last_mentioned_at!)}`}
        {page.aliases.length > 0 && `; also known as ${page.aliases.join(", ")}`}
      </p>
      <p class="row">
        <button type="button" onClick={onExpand}>
          Expand
        </button>
        <a class="button" href={href(namespace, "ask", "", { q: `What do we know about ${page.name}?` })}>
          Ask about it
        </a>
      </p>
      {children}
      {page.relations.length > 0 && <Relations namespace={namespace} relations={page.relations} />}
      {neighbors.length > 0 && <h3>Neighbours in view</h3>}
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
        {page.memories.map((memory) => (
          <li key={memory.id}>
            <a href={href(namespace, "memories", memory.id)}>{memory.snippet}</a>
            <span class="hint"> {day(memory.created_at)}</span>
          </li>
        ))}
      </ul>
      {page.next_cursor && <p class="hint">Showing the newest {page.memories.length}.</p>}
    </>
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
