// Draws the graph on a canvas: 300 entities and 5,000 memories at 60 frames a second (benchmarks/console_frames.py). As
// SVG they would be thousands of elements to lay out in every frame.

import type { GraphInView, Link, Node } from "./model";

export interface View {
  x: number;
  y: number;
  scale: number;
}

export interface Lit {
  /** The entity whose page is open. */
  selected: string | undefined;
  hovered: string | undefined;
  /** Entities on a highlighted path; if empty, all look the same. */
  path: ReadonlySet<string>;
  memory: string | undefined;
}

interface Colours {
  ink: string;
  soft: string;
  line: string;
  strong: string;
  surface: string;
  accent: string;
  graph: string;
}

/** The style sheet's colours in a form that a canvas understands: computed one by one on the element. */
export function coloursOf(element: HTMLElement): Colours {
  const read = (name: string): string => {
    element.style.color = `var(${name})`;
    return getComputedStyle(element).color;
  };
  return {
    ink: read("--ink"),
    soft: read("--ink-soft"),
    line: read("--line"),
    strong: read("--line-strong"),
    surface: read("--surface"),
    accent: read("--accent"),
    graph: read("--graph"),
  };
}

/** Letters of a name in the picture; the list, and the picture's tooltip, have all. */
const LONGEST = 24;

export const radius = (node: Node): number => 3.5 + 1.32 * Math.log2(1 + node.mentions);

/** The position of a memory: between the entities that it joins, evenly spaced with the edge's other memories. */
export function memoryPlace({ source, target, evidence }: Link, i: number): [number, number] {
  const share = (i + 1) / (evidence.length + 1);
  const bow = Math.min(10, 2 * evidence.length) * Math.sin(Math.PI * share);
  const [dx, dy] = [target.x! - source.x!, target.y! - source.y!];
  const length = Math.hypot(dx, dy) || 1;
  return [source.x! + dx * share - (dy / length) * bow, source.y! + dy * share + (dx / length) * bow];
}

export class Painter {
  readonly #context: CanvasRenderingContext2D;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private colours: Colours = coloursOf(canvas),
  ) {
    this.#context = canvas.getContext("2d")!;
  }

  readColours(): void {
    this.colours = coloursOf(this.canvas);
  }

  draw(graph: GraphInView, view: View, lit: Lit): void {
    const context = this.#context;
    const density = devicePixelRatio;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (this.canvas.width !== width * density || this.canvas.height !== height * density) {
      this.canvas.width = width * density;
      this.canvas.height = height * density;
    }
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, width, height);
    context.translate(width / 2 + view.x, height / 2 + view.y);
    context.scale(view.scale, view.scale);
    this.#links(graph, lit);
    this.#memories(graph, view, lit);
    this.#nodes(graph, lit);
    this.#labels(graph, view, lit);
  }

  #links({ links }: GraphInView, lit: Lit): void {
    const context = this.#context;
    const plain = new Path2D();
    const relations = new Path2D();
    const bright = new Path2D();
    for (const link of links.values()) {
      const path = isLit(link, lit) ? bright : link.type ? relations : plain;
      path.moveTo(link.source.x!, link.source.y!);
      path.lineTo(link.target.x!, link.target.y!);
    }
    context.strokeStyle = this.colours.strong;
    context.globalAlpha = 0.35;
    context.lineWidth = 0.7;
    context.stroke(plain);
    context.globalAlpha = 1;
    context.lineWidth = 1.2;
    context.stroke(relations);
    context.lineWidth = 2;
    context.strokeStyle = this.colours.graph;
    context.stroke(bright);
  }

  #memories({ links }: GraphInView, view: View, lit: Lit): void {
    const context = this.#context;
    const size = 1.6 / Math.sqrt(view.scale);
    context.fillStyle = this.colours.soft;
    for (const link of links.values())
      for (let i = 0; i < link.evidence.length; i++) {
        const [x, y] = memoryPlace(link, i);
        const isOne = link.evidence[i] === lit.memory;
        if (isOne) context.fillStyle = this.colours.accent;
        const half = isOne ? 3 * size : size;
        context.fillRect(x - half, y - half, 2 * half, 2 * half);
        if (isOne) context.fillStyle = this.colours.soft;
      }
  }

  #nodes({ nodes }: GraphInView, lit: Lit): void {
    const context = this.#context;
    const hasPath = lit.path.size > 0;
    for (const node of nodes.values()) {
      const isBright = node.id === lit.selected || lit.path.has(node.id);
      context.beginPath();
      context.arc(node.x!, node.y!, radius(node), 0, 2 * Math.PI);
      context.fillStyle = isBright ? this.colours.graph : hasPath ? this.colours.line : this.#colourOf(node);
      context.fill();
      context.lineWidth = node.id === lit.selected ? 3 : 1.5;
      context.strokeStyle = node.id === lit.selected ? this.colours.ink : this.colours.surface;
      context.stroke();
    }
  }

  /** Speakers and words differ from names; the list says each type in words. */
  #colourOf({ type }: Node): string {
    if (type === "speaker" || type === "person") return this.colours.accent;
    return type === "term" || type === "date" ? this.colours.strong : this.colours.soft;
  }

  /**
   * Names of highlighted entities and, where they have room, of the selected one's neighbours and of the most mentioned, as
   * many as fit at this scale.
   */
  #labels({ nodes, links }: GraphInView, view: View, lit: Lit): void {
    const context = this.#context;
    const bright = [...nodes.values()].filter(
      ({ id }) => lit.path.has(id) || id === lit.hovered || id === lit.selected,
    );
    const beside = [...(nodes.size < 80 ? links.values() : [])]
      .filter(({ source, target }) => source.id === lit.selected || target.id === lit.selected)
      .flatMap(({ source, target }) => [source, target]);
    const named = [...nodes.values()].sort((a, b) => b.mentions - a.mentions).slice(0, 16 * view.scale ** 2 + 4);
    const size = 12 / view.scale;
    const [start, end] = [-1, 1].map((side) => ((side * this.canvas.clientWidth) / 2 - view.x) / view.scale);
    const taken: { left: number; right: number; y: number }[] = [];
    context.font = `${size}px ${getComputedStyle(this.canvas).fontFamily}`;
    context.textBaseline = "middle";
    context.lineWidth = 3 / view.scale;
    context.lineJoin = "round";
    for (const node of new Set([...bright, ...beside, ...named])) {
      const name = shortened(node.name);
      const [x, y] = [node.x!, node.y!];
      const [gap, length] = [radius(node) + 3 / view.scale, context.measureText(name).width];
      const isFree = (left: number): boolean =>
        taken.every((one) => left >= one.right || left + length <= one.left || Math.abs(y - one.y) >= size);
      const sides = [x + gap, x - gap - length].filter((left) => left >= start! && left + length <= end!);
      const left = sides.find(isFree) ?? (bright.includes(node) ? (sides[0] ?? x + gap) : undefined);
      if (left === undefined) continue;
      taken.push({ left, right: left + length, y });
      context.strokeStyle = this.colours.surface;
      context.strokeText(name, left, y);
      context.fillStyle = this.colours.ink;
      context.fillText(name, left, y);
    }
  }
}

/** Isolated, as an Arabic name has its ellipsis on the left; a letter keeps its vowel signs. */
function shortened(name: string): string {
  const letters = name.match(/.\p{M}*/gsu) ?? [];
  return `\u2068${letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("").trimEnd()}…` : name}\u2069`;
}

/** Edges are highlighted between neighbours on a path, and from the entity under the pointer. */
function isLit({ source, target }: Link, lit: Lit): boolean {
  if (lit.path.size > 0) return lit.path.has(source.id) && lit.path.has(target.id);
  return lit.hovered !== undefined && (source.id === lit.hovered || target.id === lit.hovered);
}
