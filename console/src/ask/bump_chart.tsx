// Lists side by side, with a line from each memory's place in one list to its place in another.

import { useLayoutEffect, useRef, useState } from "preact/hooks";

const ROW = 28;
const HEAD = 26;

export interface Column {
  id: string;
  title: string;
  className: string;
  /** Ids by rank; undefined for a memory that is not shown. */
  ids: (string | undefined)[];
}

interface Props {
  label: string;
  columns: Column[];
  /** Pairs of columns between which lines are drawn; a line has the colour of the first. */
  links: [from: string, to: string][];
  text: (id: string) => string;
  /** The column whose entries are buttons; the others repeat them. */
  main: string;
  onOpen: (id: string) => void;
}

interface Edges {
  left: number;
  right: number;
}

export function BumpChart({ label, columns, links, text, main, onOpen }: Props) {
  const [lit, setLit] = useState<string>();
  const frame = useRef<HTMLDivElement>(null);
  const edges = useColumnEdges(frame, columns.length);
  const rows = Math.max(...columns.map(({ ids }) => ids.length));
  const final = columns.find(({ id }) => id === main)!.ids;
  return (
    <div
      class="bump"
      ref={frame}
      role="group"
      aria-label={label}
      onMouseLeave={() => setLit(undefined)}
      style={{ minHeight: `${rows * ROW + HEAD}px` }}
    >
      <Lines columns={columns} links={links} edges={edges} height={rows * ROW} lit={lit} />
      {columns.map(({ id, title, className, ids }) => (
        <section key={id} class={`bump-column bump-${id === main ? "main" : "side"} ${className}`} data-column={id}>
          <h3>{title}</h3>
          <ol>
            {ids.map((memory, i) => (
              <li
                key={memory ?? `gap ${i}`}
                class={memory !== undefined && memory === lit ? "lit" : undefined}
                data-memory={memory}
                onMouseEnter={() => setLit(memory)}
                style={{ transform: `translateY(${i * ROW}px)` }}
              >
                <Entry
                  memory={memory}
                  rank={i + 1}
                  finalRank={memory === undefined ? -1 : final.indexOf(memory) + 1}
                  text={text}
                  isMain={id === main}
                  onLit={setLit}
                  onOpen={onOpen}
                />
              </li>
            ))}
          </ol>
        </section>
      ))}
    </div>
  );
}

interface EntryProps {
  memory: string | undefined;
  rank: number;
  finalRank: number;
  text: (id: string) => string;
  isMain: boolean;
  onLit: (id: string | undefined) => void;
  onOpen: (id: string) => void;
}

function Entry({ memory, rank, finalRank, text, isMain, onLit, onOpen }: EntryProps) {
  if (memory === undefined)
    return (
      <span class="bump-gap" title="Not among the results">
        –
      </span>
    );
  if (!isMain)
    return (
      <>
        <span class="bump-text">{text(memory)}</span>
        <span class="bump-final" title={finalRank ? `Final rank ${finalRank}` : "Further down in the final list"}>
          {finalRank || "·"}
        </span>
      </>
    );
  return (
    <button
      type="button"
      class="quiet"
      onClick={() => onOpen(memory)}
      onFocus={() => onLit(memory)}
      onBlur={() => onLit(undefined)}
    >
      <span class="number">{rank}</span> <span class="bump-text">{text(memory)}</span>
    </button>
  );
}

/** Where the columns begin and end, in pixels of the frame; measured again when its width changes. */
function useColumnEdges(frame: { current: HTMLDivElement | null }, columns: number): Record<string, Edges> {
  const [edges, setEdges] = useState<Record<string, Edges>>({});
  useLayoutEffect(() => {
    const measure = (): void => {
      const found: Record<string, Edges> = {};
      for (const column of frame.current?.querySelectorAll<HTMLElement>("[data-column]") ?? [])
        found[column.dataset["column"]!] = {
          left: column.offsetLeft,
          right: column.offsetLeft + column.offsetWidth,
        };
      setEdges(found);
    };
    measure();
    const observer = new ResizeObserver(measure);
    if (frame.current) observer.observe(frame.current);
    return () => observer.disconnect();
  }, [columns]);
  return edges;
}

interface LinesProps extends Pick<Props, "columns" | "links"> {
  edges: Record<string, Edges>;
  height: number;
  lit: string | undefined;
}

function Lines({ columns, links, edges, height, lit }: LinesProps) {
  const column = (id: string): Column => columns.find((one) => one.id === id)!;
  return (
    <svg class="bump-lines" height={height} aria-hidden="true">
      {links.map(([from, to]) => {
        const start = edges[from];
        const end = edges[to];
        if (!start || !end) return null;
        const target = column(to).ids;
        return (
          <g key={`${from} ${to}`} class={column(from).className}>
            {column(from).ids.map((memory, i) => {
              const j = memory === undefined ? -1 : target.indexOf(memory);
              if (j < 0) return null;
              const bend = Math.min(48, (end.left - start.right) / 2);
              const [y1, y2] = [(i + 0.5) * ROW, (j + 0.5) * ROW];
              const path = `M${start.right} ${y1}C${end.left - bend} ${y1} ${end.left - bend} ${y2} ${end.left} ${y2}`;
              return <path key={memory} d={path} class={memory === lit ? "lit" : undefined} />;
            })}
          </g>
        );
      })}
    </svg>
  );
}
