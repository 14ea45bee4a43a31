import "./graph.css";

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { type EntityEdge, type EntitySummary, type Neighborhood, call, callText, within } from "../api";
import type { ViewProps } from "../app";
import { counted } from "../format";
import { go, href, parted } from "../route";
import { Failure } from "../ui/failure";
import { NoneYet } from "../ui/none_yet";
import { attempt } from "../ui/toasts";
import { EntityCard } from "./entity_card";
import { EntitySearch } from "./entity_search";
import { Filters, type GraphFilters, type MemoryQuery, NO_FILTERS, requestFilters } from "./filters";
import { entityNamed } from "./find_entities";
import { type GraphInView, emptyGraph, filtered, merged, mergedNeighborhood, typesOf } from "./model";
import { PathForm, type Paths, PathSteps } from "./paths";
import { Picture } from "./picture";

const START = 80;
const NEIGHBORS = 30;

/** The entities of a namespace and what joins them, as a picture and as an equivalent list. */
export function Graph({ namespace, namespaces, route }: ViewProps) {
  const selected = route.id || undefined;
  const target = route.query.get("to") ?? undefined;
  const memory = route.query.get("memory") ?? undefined;
  const names = route.query.get("path") ?? undefined;
  const isEmpty = namespaces.some(({ name, memories }) => name === namespace && memories === 0);
  const [graph, setGraph] = useState(emptyGraph);
  const [filters, setFilters] = useState<GraphFilters>(NO_FILTERS);
  const [hovered, setHovered] = useState<string>();
  const [path, setPath] = useState<ReadonlySet<string>>(new Set());
  const [paths, setPaths] = useState<Paths>();
  const [error, setError] = useState<Error>();
  const [underWay, setUnderWay] = useState(0);

  // What is in view now: an answer for anything else comes too late.
  const place = JSON.stringify([selected, target, names, filters.request]);
  const ground = JSON.stringify([!selected, names, filters.request]);
  const now = useRef({ place, ground });
  now.current = { place, ground };
  const read = async (scope: "place" | "ground", work: () => Promise<() => void>): Promise<void> => {
    const begun = now.current;
    setUnderWay((n) => n + 1);
    try {
      const show = await work();
      if (begun[scope] !== now.current[scope]) return;
      show();
      setError(undefined);
    } catch (failure) {
      if (begun.place === now.current.place) setError(failure as Error);
    } finally {
      setUnderWay((n) => n - 1);
    }
  };
  const query = requestFilters(filters);
  const overview = (): Promise<void> =>
    read("place", async () => {
      const whole = await call<{ nodes: EntitySummary[]; edges: EntityEdge[] }>(within(namespace, "graph"), {
        query: { ...query, limit: START },
      });
      return () => setGraph(merged(emptyGraph(), whole.nodes, whole.edges));
    });
  /** Add more around an entity to the graph, even if the reader has moved on to another one. */
  const expand = (id: string, from?: GraphInView): Promise<void> =>
    read("ground", async () => {
      const around = await call<Neighborhood>(within(namespace, "entities", id, "neighbors"), {
        query: { ...query, hops: 1, limit: NEIGHBORS, words: true },
      });
      return () => setGraph((before) => mergedNeighborhood(from ?? before, around));
    });

  useEffect(() => {
    setError(undefined);
    setPath(new Set());
    setPaths(undefined);
    if (!names && !target && selected && graph.nodes.has(selected)) return;
    void show();
  }, [namespace, selected, target, names]);
  useEffect(() => {
    if (filters.request === 0) return;
    if (!selected) void overview();
    else if (target) void showPaths(selected, target, emptyGraph());
    else void expand(selected, emptyGraph());
  }, [filters.request]);

  /** The selection in the address. */
  const show = (): Promise<void> => {
    if (names) return showNames(parted(names));
    if (!selected) return overview();
    return target ? showPaths(selected, target) : expand(selected);
  };
  /** The path by which a memory was found: Ask gives it by names. */
  const showNames = (wanted: string[]): Promise<void> =>
    read("place", async () => {
      const found = await Promise.all(wanted.map((name) => entityNamed(namespace, name)));
      const entities = found.filter((entity) => entity !== undefined);
      const around = await Promise.all(
        entities.map(({ id }) =>
          call<Neighborhood>(within(namespace, "entities", id, "neighbors"), { query: { limit: 12, words: true } }),
        ),
      );
      return () => {
        setPath(new Set(entities.map(({ id }) => id)));
        setGraph(around.reduce(mergedNeighborhood, merged(emptyGraph(), entities, [])));
      };
    });
  const showPaths = (source: string, to: string, from?: GraphInView): Promise<void> =>
    read("place", async () => {
      const found = await call<Paths>(within(namespace, "paths"), {
        query: { ...query, source, target: to, words: true },
      });
      const entities = found.paths.flatMap((path) => path.entities);
      const edges = found.paths.flatMap((path) => path.edges);
      return () => {
        setPaths(found);
        setPath(new Set(found.paths[0]?.entities.map(({ id }) => id)));
        setGraph((before) => merged(from ?? before, entities, edges, source));
      };
    });

  const shown = useMemo(
    () => filtered(graph, filters.hidden, filters.relationsOnly),
    [graph, filters.hidden, filters.relationsOnly],
  );
  const lit = useMemo(() => ({ selected, hovered, path, memory }), [selected, hovered, path, memory]);
  const select = (id: string): void => go(href(namespace, "graph", id));
  return (
    <div class="graph">
      <h1 class="visually-hidden">Graph</h1>
      <Picture
        graph={shown}
        lit={lit}
        onHover={setHovered}
        onSelect={select}
        onExpand={(id) => void expand(id)}
        onOpenMemory={(id) => go(href(namespace, "memories", id))}
      />
      <aside class="graph-side" aria-label="Entities">
        <EntitySearch namespace={namespace} />
        {error && !selected && <Failure error={error} onRetry={() => void show()} />}
        {names && <Way namespace={namespace} names={parted(names)} memory={memory} />}
        {selected ? (
          <EntityCard
            key={selected}
            namespace={namespace}
            id={selected}
            query={query}
            graph={shown}
            graphError={error}
            onRetry={() => void show()}
            onExpand={() => void expand(selected)}
            onHover={setHovered}
          >
            <PathForm namespace={namespace} source={selected} />
            {paths && <PathSteps namespace={namespace} paths={paths} />}
          </EntityCard>
        ) : isEmpty ? (
          <NoneYet namespace={namespace} />
        ) : (
          <Overview namespace={namespace} graph={shown} isLoading={underWay > 0} onHover={setHovered} />
        )}
        <Filters filters={filters} types={typesOf(graph)} onChange={setFilters} />
        <p class="hint">
          <button type="button" class="link" onClick={() => void attempt(() => download(namespace, query))}>
            Download as GraphML
          </button>
        </p>
      </aside>
    </div>
  );
}

/** Fetched rather than linked to, as a link sends no key. */
async function download(namespace: string, query: MemoryQuery): Promise<void> {
  const graph = await callText(within(namespace, "graph"), { query: { ...query, format: "graphml" } });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([graph], { type: "application/graphml+xml" }));
  link.download = "graph.graphml";
  link.click();
  URL.revokeObjectURL(link.href);
}

/** The path from the question to a memory, as shown by Ask. */
function Way({ namespace, names, memory }: { namespace: string; names: string[]; memory: string | undefined }) {
  return (
    <section class="panel">
      <h2>How the memory was found</h2>
      <p>
        question →{" "}
        {names.map((name) => (
          <>
            <bdi>{name}</bdi> →{" "}
          </>
        ))}
        {memory ? <a href={href(namespace, "memories", memory)}>{memory}</a> : "memory"}
      </p>
    </section>
  );
}

interface OverviewProps {
  namespace: string;
  graph: GraphInView;
  isLoading: boolean;
  onHover: (id: string | undefined) => void;
}

/** The entities in view as links, the most mentioned first. */
function Overview({ namespace, graph, isLoading, onHover }: OverviewProps) {
  const entities = [...graph.nodes.values()].sort((a, b) => b.mentions - a.mentions);
  return (
    <section class="panel">
      <h2>
        {entities.length === 0 && isLoading ? "Loading…" : `${counted(entities.length, "entity", "entities")} in view`}
      </h2>
      <ul class="entity-list">
        {entities.map(({ id, name, type, mentions }) => (
          <li key={id} onMouseEnter={() => onHover(id)} onMouseLeave={() => onHover(undefined)}>
            <a href={href(namespace, "graph", id)}>{name}</a>
            <span class="hint">
              {type}, {mentions}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
