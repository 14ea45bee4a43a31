// How well each way to rank answers the judged questions.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { LEG_NAMES, call, within } from "../api";
import { counted } from "../format";
import { href } from "../route";
import { Failure } from "../ui/failure";
import { Scrolling } from "../ui/scrolling";
import { Table, numbers } from "../ui/table";
import { Interval, signed } from "./interval";

interface Estimate {
  mean: number;
  low: number;
  high: number;
}

interface Comparison {
  baseline: string;
  measure: string;
  difference: Estimate;
  p_value: number;
  wins: number;
  ties: number;
  losses: number;
  verdict: "better" | "worse" | "not different";
}

interface QueryScores {
  query: string;
  relevant: string[];
  ndcg: Record<string, number>;
}

interface Report {
  judged: string;
  systems: { system: string; measures: Record<string, Estimate> }[];
  comparisons: Comparison[];
  queries: QueryScores[];
  failed: { query: string; error: string }[];
  left_out: number;
}

const MEASURES = [
  ["ndcg@10", "nDCG@10"],
  ["recall@10", "Recall@10"],
  ["mrr@10", "MRR@10"],
] as const;
const TITLES: Record<string, string> = {
  ...LEG_NAMES,
  "1,1,1": "Equal weights",
  "rrf-fixed": "Fixed weights",
  "rrf-adaptive": "Adaptive weights",
  "rrf-fixed+rescorer": "Fixed weights, rescored",
  all: "All stages",
};

const titled = (system: string): string => TITLES[system] ?? system.replace("profile=", "Profile ");

export function Evaluation({ namespace }: { namespace: string }) {
  const [other, setOther] = useState("");
  const [state, setState] = useState<{ report?: Report; error?: Error; isBusy?: boolean }>({});
  const evaluate = async (event: Event): Promise<void> => {
    event.preventDefault();
    setState({ isBusy: true });
    try {
      const body = other.trim() ? { other: other.trim() } : {};
      setState({ report: await call<Report>(within(namespace, "evaluations"), { method: "POST", body }) });
    } catch (error) {
      setState({ error: error as Error });
    }
  };
  const { report, error, isBusy } = state;
  return (
    <section class="panel">
      <h2>Evaluation</h2>
      <p class="hint">
        Runs the judged questions with each leg alone, with equal weights and with each stage, and compares the rankings.
        Verdicts come from paired tests, corrected for multiple comparisons: with few questions, few differences are
        significant.
      </p>
      <form class="label-form" onSubmit={(event) => void evaluate(event)}>
        <label>
          <span>Compare with profile (optional)</span>
          <input value={other} onInput={(event) => setOther(event.currentTarget.value)} placeholder="NAME@VERSION" />
        </label>
        <button type="submit" disabled={isBusy}>
          {isBusy ? "Running…" : "Evaluate"}
        </button>
      </form>
      <p role="status" class="soft">
        {report && told(report)}
      </p>
      {error && <Failure error={error} />}
      {report && <Systems report={report} />}
      {report && <Queries namespace={namespace} report={report} />}
    </section>
  );
}

function told({ queries, failed, left_out }: Report): string {
  const parts = [`${counted(queries.length, "question", "questions")}, each run on every system.`];
  if (left_out) parts.push(`${counted(left_out, "older question", "older questions")} left out.`);
  if (failed.length) parts.push(`Failed: ${failed.map(({ query, error }) => `${query} (${error})`).join("; ")}.`);
  return parts.join(" ");
}

/** The means of each system, and all stages compared with it. */
function Systems({ report: { judged, systems, comparisons } }: { report: Report }) {
  const against = new Map(comparisons.filter(({ measure }) => measure === "ndcg@10").map((one) => [one.baseline, one]));
  const bounds = [...against.values()].flatMap(({ difference: { low, high } }) => [Math.abs(low), Math.abs(high)]);
  const reach = Math.max(0, ...bounds);
  return (
    <Scrolling label="Systems">
      <Table
        isHeaded
        columns={[
          "System",
          ...numbers(...MEASURES.map(([, title]) => title), "nDCG gain of all stages"),
          "",
          "Verdict (wins / ties / losses)",
        ]}
        rows={systems.map(({ system, measures }) => ({
          key: system,
          attributes: { class: system === judged ? "lit" : undefined },
          cells: [titled(system), ...MEASURES.map(([name]) => mean(measures[name]!)), ...verdict(against.get(system), reach)],
        }))}
      />
    </Scrolling>
  );
}

const mean = ({ mean, low, high }: Estimate): ComponentChildren => (
  <span title={`95% CI: ${low.toFixed(3)} to ${high.toFixed(3)}`}>{mean.toFixed(3)}</span>
);

/** The cells that compare all stages with a system. */
function verdict(comparison: Comparison | undefined, reach: number): ComponentChildren[] {
  if (!comparison) return ["", "", ""];
  const { difference, wins, ties, losses, verdict, p_value } = comparison;
  const { mean, low, high } = difference;
  return [
    `${signed(mean)} [${signed(low)}, ${signed(high)}]`,
    <Interval difference={mean} low={low} high={high} reach={reach} />,
    <span title={`p = ${p_value.toFixed(3)}, corrected`}>{`${verdict} (${wins} / ${ties} / ${losses})`}</span>,
  ];
}

/** Each question under two systems, the largest differences first. */
function Queries({ namespace, report: { judged, systems, queries } }: { namespace: string; report: Report }) {
  const names = systems.map(({ system }) => system);
  const [pair, setPair] = useState<[string, string]>([judged, "bm25"]);
  const difference = ({ ndcg }: QueryScores): number => ndcg[pair[0]]! - ndcg[pair[1]]!;
  const sorted = [...queries].sort((a, b) => difference(a) - difference(b));
  return (
    <details>
      <summary>Question by question</summary>
      <p class="row">
        {[0, 1].map((place) => (
          <label key={place} class="row">
            <span>{place ? "against" : "nDCG@10 of"}</span>
            <select
              value={pair[place]}
              onChange={({ currentTarget: { value } }) => setPair(place ? [pair[0], value] : [value, pair[1]])}
            >
              {names.map((name) => (
                <option key={name} value={name}>
                  {titled(name)}
                </option>
              ))}
            </select>
          </label>
        ))}
      </p>
      <Scrolling label="Questions">
        <Table
          columns={["Question", ...numbers(...pair.map(titled), "Difference")]}
          rows={sorted.map((one) => ({
            key: one.query,
            cells: [
              <a href={href(namespace, "ask", "", { q: one.query })}>{one.query}</a>,
              ...pair.map((system) => one.ndcg[system]!.toFixed(2)),
              signed(difference(one)),
            ],
          }))}
        />
      </Scrolling>
    </details>
  );
}
