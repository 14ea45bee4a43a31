// The part of the graph in view: entities, edges between them, and the memories that are their evidence.

import type { EntityEdge, EntitySummary, Neighborhood } from "../api";

export interface Node extends EntitySummary {
  x?: number;
  y?: number;
  vx?: number;
  vy?: number;
  fx?: number | null;
  fy?: number | null;
}

export interface Link {
  source: Node;
  target: Node;
  type: string | null;
  memories: number;
  evidence: string[];
}

export interface GraphInView {
  nodes: Map<string, Node>;
  links: Map<string, Link>;
}

export const emptyGraph = (): GraphInView => ({ nodes: new Map(), links: new Map() });

/** The graph with more entities and edges; existing ones keep their places, new ones begin beside `near`. */
export function merged(graph: GraphInView, entities: EntitySummary[], edges: EntityEdge[], near?: string): GraphInView {
  const nodes = new Map(graph.nodes);
  const origin = near ? nodes.get(near) : undefined;
  for (const [i, entity] of entities.entries()) {
    const angle = i * 2.4; // the golden angle spreads them evenly
    const radius = 20 + 8 * Math.sqrt(i);
    const start = { x: (origin?.x ?? 0) + radius * Math.cos(angle), y: (origin?.y ?? 0) + radius * Math.sin(angle) };
    nodes.set(entity.id, Object.assign(nodes.get(entity.id) ?? start, entity));
  }
  const links = new Map(graph.links);
  for (const edge of edges) {
    const source = nodes.get(edge.source);
    const target = nodes.get(edge.target);
    if (source && target) links.set([edge.source, edge.type ?? "", edge.target].join(" "), { ...edge, source, target });
  }
  return { nodes, links };
}

export function mergedNeighborhood(graph: GraphInView, { entity, neighbors, edges }: Neighborhood): GraphInView {
  return merged(graph, [entity, ...neighbors], edges, entity.id);
}

/** The part that the reader wants to see: entities of some types, and only relations or also common mentions. */
export function filtered(graph: GraphInView, hidden: ReadonlySet<string>, relationsOnly: boolean): GraphInView {
  const nodes = new Map([...graph.nodes].filter(([, { type }]) => !hidden.has(type)));
  const isShown = ({ source, target, type }: Link): boolean =>
    nodes.has(source.id) && nodes.has(target.id) && (!relationsOnly || type !== null);
  return { nodes, links: new Map([...graph.links].filter(([, link]) => isShown(link))) };
}

/** Entities by type, the most frequent type first. */
export function typesOf(graph: GraphInView): [type: string, n: number][] {
  const counts = new Map<string, number>();
  for (const { type } of graph.nodes.values()) counts.set(type, (counts.get(type) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a);
}

/** Neighbours of an entity in view, the strongest edge first. */
export function neighborsOf(graph: GraphInView, id: string): { node: Node; link: Link }[] {
  const found: { node: Node; link: Link }[] = [];
  for (const link of graph.links.values()) {
    if (link.source.id === id) found.push({ node: link.target, link });
    else if (link.target.id === id) found.push({ node: link.source, link });
  }
  return found.sort((a, b) => b.link.memories - a.link.memories);
}
