// The picture: forces move the entities to their places; the reader pans, zooms, drags and selects.

import {
  type Simulation,
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
} from "d3-force";
import { useEffect, useRef } from "preact/hooks";

import type { GraphInView, Link, Node } from "./model";
import { type Lit, Painter, type View, memoryPlace, radius } from "./painter";

interface Props {
  graph: GraphInView;
  lit: Lit;
  onHover: (entity: string | undefined) => void;
  onSelect: (entity: string) => void;
  onExpand: (entity: string) => void;
  onOpenMemory: (memory: string) => void;
}

const isStill = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;
const SETTLING_TICKS = 220;
const CLICK_PX = 4;
const DOUBLE_MS = 350;

/** The state that changes while the reader works on the picture, outside of Preact's rendering. */
class Stage {
  readonly #painter: Painter;
  readonly #simulation: Simulation<Node, Link>;
  #frame = 0;
  #isFitted = true; // until the reader moves the picture
  view: View = { x: 0, y: 0, scale: 1 };
  graph!: GraphInView;
  lit!: Lit;

  constructor(readonly canvas: HTMLCanvasElement) {
    this.#painter = new Painter(canvas);
    this.#simulation = forceSimulation<Node, Link>()
      .force("charge", forceManyBody<Node>().strength(-160).distanceMax(400))
      .force("collide", forceCollide<Node>((node) => radius(node) + 5))
      .force("x", forceX<Node>().strength(0.05))
      .force("y", forceY<Node>().strength(0.06))
      .on("tick", () => this.draw())
      .stop();
  }

  show(graph: GraphInView): void {
    this.graph = graph;
    const links = [...graph.links.values()];
    this.#simulation
      .nodes([...graph.nodes.values()])
      .force("link", forceLink<Node, Link>(links).distance(70).strength((link) => 0.08 + 0.02 * Math.min(5, link.memories)))
      .alpha(0.9);
    if (isStill()) {
      this.#simulation.stop().tick(SETTLING_TICKS);
      this.draw();
    } else this.#simulation.restart();
  }

  /** Draw with the next frame, once. */
  draw(): void {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#isFitted) this.#fit();
      if (this.graph) this.#painter.draw(this.graph, this.view, this.lit);
    });
  }

  /** Show all entities, with room for the names at the right. */
  #fit(): void {
    const nodes = [...(this.graph?.nodes.values() ?? [])];
    if (nodes.length === 0) return;
    const [xs, ys] = [nodes.map(({ x }) => x!), nodes.map(({ y }) => y!)];
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const scale = Math.min(1.6, (width - 160) / (right - left + 1), (height - 80) / (bottom - top + 1));
    this.view = { scale, x: (-scale * (left + right)) / 2 - 30, y: (-scale * (top + bottom)) / 2 };
  }

  recolour(): void {
    this.#painter.readColours();
    this.draw();
  }

  /** A point of the canvas in the graph's own coordinates. */
  at(event: { clientX: number; clientY: number }): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    const { x, y, scale } = this.view;
    return [
      (event.clientX - box.left - box.width / 2 - x) / scale,
      (event.clientY - box.top - box.height / 2 - y) / scale,
    ];
  }

  nodeAt(event: { clientX: number; clientY: number }): Node | undefined {
    const [x, y] = this.at(event);
    const node = this.#simulation.find(x, y, 24 / this.view.scale);
    return node && Math.hypot(node.x! - x, node.y! - y) < radius(node) + 6 / this.view.scale ? node : undefined;
  }

  memoryAt(event: { clientX: number; clientY: number }): string | undefined {
    const [x, y] = this.at(event);
    const near = 5 / this.view.scale;
    for (const link of this.graph.links.values())
      for (const [i, id] of link.evidence.entries()) {
        const [mx, my] = memoryPlace(link, i);
        if (Math.abs(mx - x) < near && Math.abs(my - y) < near) return id;
      }
    return undefined;
  }

  hold(node: Node, [x, y]: [number, number]): void {
    node.fx = x;
    node.fy = y;
    if (isStill()) {
      node.x = x;
      node.y = y;
      this.draw();
    } else this.#simulation.alphaTarget(0.2).restart();
  }

  release(node: Node): void {
    node.fx = null;
    node.fy = null;
    this.#simulation.alphaTarget(0);
  }

  zoom(factor: number, about: [number, number] = [0, 0]): void {
    const scale = Math.min(6, Math.max(0.15, this.view.scale * factor));
    const change = scale - this.view.scale;
    this.#isFitted = false;
    this.view = { scale, x: this.view.x - about[0] * change, y: this.view.y - about[1] * change };
    this.draw();
  }

  pan(dx: number, dy: number): void {
    this.#isFitted = false;
    this.view = { ...this.view, x: this.view.x + dx, y: this.view.y + dy };
    this.draw();
  }

  centre(id: string): void {
    const node = this.graph.nodes.get(id);
    this.#isFitted = false;
    if (node) this.view = { ...this.view, x: -node.x! * this.view.scale, y: -node.y! * this.view.scale };
    this.draw();
  }

  stop(): void {
    this.#simulation.stop();
    cancelAnimationFrame(this.#frame);
  }
}

export function Picture(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const stage = useRef<Stage | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const { graph, lit } = props;
  useEffect(() => {
    const one = (stage.current = new Stage(canvas.current!));
    const stops = [listen(one, latest), followColours(one), followSize(one)];
    return () => {
      for (const stop of stops) stop();
      one.stop();
    };
  }, []);
  useEffect(() => {
    stage.current!.lit = latest.current.lit;
    stage.current!.show(graph);
  }, [graph]);
  useEffect(() => {
    stage.current!.lit = lit;
    stage.current!.draw();
  }, [lit]);
  return (
    <div class="picture">
      <canvas
        ref={canvas}
        tabIndex={-1} // so that a click leaves the focus here
        role="img"
        aria-label={`${graph.nodes.size} entities and ${graph.links.size} connections, also in the list beside it`}
      />
      <div class="picture-tools">
        <button type="button" aria-label="Zoom in" onClick={() => stage.current?.zoom(1.3)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => stage.current?.zoom(1 / 1.3)}>
          −
        </button>
        <button type="button" onClick={() => lit.selected && stage.current?.centre(lit.selected)} disabled={!lit.selected}>
          Centre
        </button>
      </div>
    </div>
  );
}

function followColours(stage: Stage): () => void {
  const recolour = (): void => stage.recolour();
  const system = matchMedia("(prefers-color-scheme: dark)");
  const theme = new MutationObserver(recolour);
  system.addEventListener("change", recolour);
  theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    system.removeEventListener("change", recolour);
    theme.disconnect();
  };
}

function followSize(stage: Stage): () => void {
  const observer = new ResizeObserver(() => stage.draw());
  observer.observe(stage.canvas);
  return () => observer.disconnect();
}

/** Mouse, pen and fingers: one drags an entity or the background, two zoom; a click selects, a second one expands. */
function listen(stage: Stage, props: { current: Props }): () => void {
  const { canvas } = stage;
  const pointers = new Map<number, { x: number; y: number }>();
  let held: Node | undefined;
  let moved = 0;
  let clicked: { id: string; at: number } | undefined;

  const down = (event: PointerEvent): void => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    moved = 0;
    held = pointers.size === 1 ? stage.nodeAt(event) : undefined;
    canvas.style.cursor = held ? "move" : "grabbing";
  };
  const move = (event: PointerEvent): void => {
    const before = pointers.get(event.pointerId);
    if (!before) {
      const node = stage.nodeAt(event);
      const over = node?.id;
      if (over !== props.current.lit.hovered) props.current.onHover(over);
      canvas.title = node?.name ?? "";
      canvas.style.cursor = over || stage.memoryAt(event) ? "pointer" : "grab";
      return;
    }
    const [dx, dy] = [event.clientX - before.x, event.clientY - before.y];
    moved += Math.hypot(dx, dy);
    if (pointers.size === 2) pinch(event, before);
    else if (held && moved > CLICK_PX) stage.hold(held, stage.at(event));
    else if (!held) stage.pan(dx, dy);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  };
  const pinch = (event: PointerEvent, before: { x: number; y: number }): void => {
    const [, other] = [...pointers].find(([id]) => id !== event.pointerId)!;
    const distance = (point: { x: number; y: number }): number => Math.hypot(point.x - other.x, point.y - other.y);
    const factor = distance({ x: event.clientX, y: event.clientY }) / (distance(before) || 1);
    stage.zoom(factor, stage.at({ clientX: (event.clientX + other.x) / 2, clientY: (event.clientY + other.y) / 2 }));
  };
  const up = (event: PointerEvent): void => {
    if (!pointers.delete(event.pointerId)) return;
    if (held) stage.release(held);
    if (moved <= CLICK_PX) click(event);
    held = undefined;
    canvas.style.cursor = "grab";
  };
  const click = (event: PointerEvent): void => {
    const node = held ?? stage.nodeAt(event);
    if (!node) {
      const memory = stage.memoryAt(event);
      if (memory) props.current.onOpenMemory(memory);
      return;
    }
    const isSecond = clicked?.id === node.id && event.timeStamp - clicked.at < DOUBLE_MS;
    clicked = { id: node.id, at: event.timeStamp };
    if (isSecond) props.current.onExpand(node.id);
    else props.current.onSelect(node.id);
  };
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    stage.zoom(Math.exp(-event.deltaY / 400), stage.at(event));
  };
  const leave = (): void => {
    if (pointers.size === 0) props.current.onHover(undefined);
  };

  const handlers = { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, pointerleave: leave };
  for (const [name, handler] of Object.entries(handlers)) canvas.addEventListener(name, handler as EventListener);
  canvas.addEventListener("wheel", wheel, { passive: false });
  return () => {
    for (const [name, handler] of Object.entries(handlers)) canvas.removeEventListener(name, handler as EventListener);
    canvas.removeEventListener("wheel", wheel);
  };
}
