import { type Answer, LEGS, LEG_NAMES, type Result } from "../api";
import { withoutName } from "../format";
import { BumpChart, type Column } from "./bump_chart";

const ROWS = 10;

/** A memory in one line, without its speaker, whose name would fill most of a narrow column. */
export const shortText = ({ snippet, speaker }: Result): string => withoutName(snippet, speaker);

/** The ids at the first places by some rank; places of memories that are not among the results stay empty. */
function placed(answer: Answer, rankOf: (result: Result) => number | undefined): Column["ids"] {
  const ids: Column["ids"] = [];
  for (const result of answer.results) {
    const rank = rankOf(result);
    if (rank !== undefined && rank <= ROWS) ids[rank - 1] = result.id;
  }
  return Array.from(ids);
}

/** Each leg's ranking, the fused one, and the final order. */
export function LegRankings({ answer, onOpen }: { answer: Answer; onOpen: (id: string) => void }) {
  const texts = new Map(answer.results.map((result) => [result.id, shortText(result)]));
  const legs: Column[] = LEGS.filter((leg) => answer.results.some((result) => result.legs[leg])).map((leg) => ({
    id: leg,
    title: LEG_NAMES[leg],
    className: `leg-${leg}`,
    ids: placed(answer, (result) => result.legs[leg]?.rank),
  }));
  const columns: Column[] = [
    ...legs,
    { id: "fused", title: "Fused", className: "stage", ids: placed(answer, (result) => result.fused.rank) },
    { id: "final", title: "Final", className: "stage", ids: answer.results.slice(0, ROWS).map(({ id }) => id) },
  ];
  if (answer.results.length === 0) return <p class="panel soft">{noResults(answer)}</p>;
  return (
    <section class="panel">
      <h2>How the results were ranked</h2>
      <p class="hint">
        The number beside a memory is its place in the final list: “·” means further down, “–” not among the results.
      </p>
      <BumpChart
        label="Rankings by leg, fused, and final"
        columns={columns}
        links={[...legs.map(({ id }): [string, string] => [id, "fused"]), ["fused", "final"]]}
        text={(id) => texts.get(id) ?? id}
        main="final"
        onOpen={onOpen}
      />
    </section>
  );
}

function noResults(answer: Answer): string {
  if (answer.reason === "nothing_relevant") return "No relevant memories found.";
  return "No memories found.";
}
