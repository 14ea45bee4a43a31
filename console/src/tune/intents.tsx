// How questions are read: their intents as points between four corners, and how far the probabilities can be trusted.

import { useState } from "preact/hooks";

import { INTENTS, type Intent, call } from "../api";
import { INTENT_NAMES } from "../ask/verdict";
import { count, counted, percent } from "../format";
import { useLoaded } from "../loading";
import { useStored } from "../stored";
import { Failure } from "../ui/failure";
import { Scrolling } from "../ui/scrolling";
import { Table, numbers } from "../ui/table";
import { MOST as MOST_JUDGEMENTS, allFeedback } from "./judgements";

type Probabilities = Record<Intent, number>;

interface Read {
  query: string;
  label: Intent;
  probabilities: Probabilities;
  /** The intent stated by the caller, if feedback has one. */
  truth?: Intent | undefined;
}

const MOST = 60;

async function classify(namespace: string, query: string, signal: AbortSignal): Promise<Read> {
  const { intent } = await call<{ intent: { label: Intent; probabilities: Probabilities } }>("/v1/classify", {
    method: "POST",
    body: { query, namespace },
    signal,
  });
  return { query, ...intent };
}

async function readAll(namespace: string, history: string[], signal: AbortSignal): Promise<Read[]> {
  const truths = new Map<string, Intent>();
  for (const { query, intent } of await allFeedback(namespace, signal))
    if (intent && !truths.has(query)) truths.set(query, intent);
  const queries = [...new Set([...truths.keys(), ...history])].slice(0, MOST);
  const reads = await Promise.all(queries.map((query) => classify(namespace, query, signal)));
  return reads.map((read) => ({ ...read, truth: truths.get(read.query) }));
}

export function Intents({ namespace }: { namespace: string }) {
  const [history] = useStored<string[]>(localStorage, `history.${namespace}`, []);
  const { data, error, reload } = useLoaded((signal) => readAll(namespace, history, signal), [namespace]);
  const [lit, setLit] = useState<string>();
  const reads = data ?? [];
  return (
    <section class="panel">
      <h2>Intents</h2>
      <p class="hint">
        Up to {MOST} of your questions, first those with an intent in the oldest {count(MOST_JUDGEMENTS)} judgements,
        plotted between the four intents. The closer to a corner, the more certain the classifier.
      </p>
      {error && <Failure error={error} onRetry={reload} />}
      {data && reads.length === 0 && <p class="soft">No questions asked yet.</p>}
      {reads.length > 0 && (
        <div class="intents">
          <Square reads={reads} lit={lit} onLit={setLit} />
          <ReadTable reads={reads} lit={lit} onLit={setLit} />
        </div>
      )}
      <Reliability reads={reads.filter(({ truth }) => truth)} />
    </section>
  );
}

const SIZE = 300;
const CORNERS: Record<Intent, [number, number]> = {
  fact_lookup: [30, 36],
  relationship: [SIZE - 30, 36],
  preference: [30, SIZE - 36],
  open_ended: [SIZE - 30, SIZE - 36],
};

/** A point's place: the mean of the corners, weighted by the probabilities. */
function place(probabilities: Probabilities): [number, number] {
  const along = (axis: 0 | 1): number =>
    INTENTS.reduce((sum, intent) => sum + probabilities[intent] * CORNERS[intent][axis], 0);
  return [along(0), along(1)];
}

interface LitProps {
  reads: Read[];
  lit: string | undefined;
  onLit: (query: string | undefined) => void;
}

function Square({ reads, lit, onLit }: LitProps) {
  const [[left, top], [right, bottom]] = [CORNERS.fact_lookup, CORNERS.open_ended];
  return (
    <svg class="square" viewBox={`0 0 ${SIZE} ${SIZE}`} role="img" aria-label="Questions between the four intents">
      <rect x={left} y={top} width={right - left} height={bottom - top} />
      {INTENTS.map((intent) => {
        const [x, y] = CORNERS[intent];
        return (
          <text
            key={intent}
            x={x < SIZE / 2 ? 4 : SIZE - 4}
            y={y < SIZE / 2 ? 20 : SIZE - 12}
            text-anchor={x < SIZE / 2 ? "start" : "end"}
          >
            {INTENT_NAMES[intent]}
          </text>
        );
      })}
      {reads.map(({ query, probabilities }) => {
        const [x, y] = place(probabilities);
        return (
          <circle
            key={query}
            cx={x}
            cy={y}
            r={query === lit ? 7 : 5}
            class={query === lit ? "lit" : undefined}
            onMouseEnter={() => onLit(query)}
            onMouseLeave={() => onLit(undefined)}
          >
            <title>{query}</title>
          </circle>
        );
      })}
    </svg>
  );
}

function ReadTable({ reads, lit, onLit }: LitProps) {
  return (
    <Scrolling label="Questions and intents">
      <Table
        columns={["Question", "Intent", ...numbers("Probability")]}
        rows={reads.map(({ query, label, probabilities }) => ({
          key: query,
          cells: [query, INTENT_NAMES[label], percent(probabilities[label])],
          attributes: {
            class: query === lit ? "lit" : undefined,
            onMouseEnter: () => onLit(query),
            onMouseLeave: () => onLit(undefined),
          },
        }))}
      />
    </Scrolling>
  );
}

const BINS = 5;
const MARGIN = 24;

/** Accuracy of the questions by predicted probability; on the diagonal the two agree. */
function Reliability({ reads }: { reads: Read[] }) {
  if (reads.length === 0)
    return (
      <p class="hint">
        Once feedback includes the <code>intent</code> of questions, the classifier's reliability is shown here.
      </p>
    );
  const bins = Array.from({ length: BINS }, (_, i) => {
    const inBin = reads.filter(({ probabilities, label }) => Math.min(BINS - 1, Math.floor(probabilities[label] * BINS)) === i);
    const right = inBin.filter(({ label, truth }) => label === truth).length;
    const said = inBin.reduce((sum, { probabilities, label }) => sum + probabilities[label], 0);
    return { n: inBin.length, right: right / inBin.length, said: said / inBin.length };
  });
  const at = (share: number): number => MARGIN + share * (SIZE - 2 * MARGIN);
  const axis = (title: string, y: number) =>
    (["0%", title, "100%"] as const).map((label, i) => (
      <text key={label} x={at(i / 2)} y={y} text-anchor={["start", "middle", "end"][i] as "start"}>
        {label}
      </text>
    ));
  return (
    <figure>
      <svg class="square" viewBox={`0 0 ${SIZE} ${SIZE}`} role="img" aria-label="Reliability of the intent classifier">
        <rect x={at(0)} y={at(0)} width={at(1) - at(0)} height={at(1) - at(0)} />
        <line x1={at(0)} y1={at(1)} x2={at(1)} y2={at(0)} />
        {axis("Predicted probability", SIZE - 8)}
        <g transform={`rotate(-90 ${SIZE / 2} ${SIZE / 2})`}>{axis("Accuracy", 16)}</g>
        {bins
          .filter(({ n }) => n > 0)
          .map(({ said, right, n }) => (
            <circle key={said} cx={at(said)} cy={SIZE - at(right)} r={3 + Math.sqrt(n)}>
              <title>
                Predicted {percent(said)}, correct {percent(right)} of {n}
              </title>
            </circle>
          ))}
      </svg>
      <figcaption class="hint">
        Reliability: how often the classifier is right, by the probability it gave, for{" "}
        {counted(reads.length, "question", "questions")} with an intent in feedback. On the dashed line the two agree.
      </figcaption>
    </figure>
  );
}
