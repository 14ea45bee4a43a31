import type { Answer } from "../api";
import { count } from "../format";
import { BumpChart } from "./bump_chart";
import { shortText } from "./rankings";

const ROWS = 12;

/** Two answers to one question: their orders side by side, and what moved. */
export function Comparison({ a, b, onOpen }: { a: Answer; b: Answer; onOpen: (id: string) => void }) {
  const texts = new Map([...a.results, ...b.results].map((result) => [result.id, shortText(result)]));
  const [idsA, idsB] = [a, b].map(({ results }) => results.slice(0, ROWS).map(({ id }) => id)) as [string[], string[]];
  const moved = idsB.filter((id, i) => idsA.includes(id) && idsA.indexOf(id) !== i).length;
  const added = idsB.filter((id) => !idsA.includes(id)).length;
  return (
    <section class="panel">
      <h2>Comparison</h2>
      <p class="hint" aria-live="polite">
        Top {idsB.length}: {moved} moved, {added} new. A: {filled(a)}. B: {filled(b)}.
      </p>
      <BumpChart
        label="Rankings with settings A and settings B"
        columns={[
          { id: "a", title: "A", className: "stage", ids: idsA },
          { id: "b", title: "B", className: "stage", ids: idsB },
        ]}
        links={[["a", "b"]]}
        text={(id) => texts.get(id) ?? id}
        main="b"
        onOpen={onOpen}
      />
    </section>
  );
}

const filled = ({ profile, tokens_used, max_tokens }: Answer): string =>
  `${profile}, ${count(tokens_used)} of ${count(max_tokens)} tokens`;
