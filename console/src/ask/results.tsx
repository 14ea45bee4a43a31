import { useEffect, useRef, useState } from "preact/hooks";

import { type Answer, LEGS, LEG_NAMES, type Result } from "../api";
import { dayAndTime, percent } from "../format";
import { href, joined } from "../route";
import { evidenceSentence } from "./evidence";
import type { FeedbackState } from "./feedback";
import { JudgeButtons } from "./judge_buttons";

const FIRST = 10;
/** Longer texts are shown as the snippet around their match; the memory's page has the whole text. */
const LONGEST = 1_000;

interface Props {
  namespace: string;
  answer: Answer;
  query: string;
  opened: string | undefined;
  feedback: FeedbackState;
}

/** Each result with every leg's evidence, and two buttons to judge it. */
export function Results(props: Props) {
  const { results } = props.answer;
  const [showsAll, setShowsAll] = useState(false);
  const hasOpenedBelow = results.findIndex(({ id }) => id === props.opened) >= FIRST;
  const shown = showsAll || hasOpenedBelow ? results : results.slice(0, FIRST);
  return (
    <section aria-label="Results">
      <ol class="results">
        {shown.map((result, i) => (
          <li key={result.id}>
            <ResultCard {...props} result={result} rank={i + 1} />
          </li>
        ))}
      </ol>
      {shown.length < results.length && (
        <button type="button" class="more" onClick={() => setShowsAll(true)}>
          Show all {results.length}
        </button>
      )}
    </section>
  );
}

function ResultCard({ namespace, answer, query, opened, feedback, result, rank }: Props & { result: Result; rank: number }) {
  const card = useRef<HTMLElement>(null);
  const isOpened = opened === result.id;
  useEffect(() => {
    if (isOpened) card.current?.focus();
  }, [isOpened]);
  return (
    <article class="result panel" ref={card} tabIndex={-1} data-memory={result.id}>
      <header class="row">
        <span class="rank number">{rank}</span>
        <span class="soft">
          {[result.speaker, result.title].map((name) => name && [<bdi>{name}</bdi>, " · "])}
          {dayAndTime(result.created_at)}
        </span>
        {result.relevance !== null && (
          <span class="chip" title="Calibrated probability that this answers the question">
            {percent(result.relevance)} relevant
          </span>
        )}
        <span class="judge">
          <JudgeButtons feedback={feedback} query={query} answer={answer} id={result.id} className="thumb" />
        </span>
      </header>
      <p class="result-text">{result.text.length > LONGEST ? result.snippet : result.text}</p>
      <details open={rank <= 3 || isOpened}>
        <summary>
          {LEGS.filter((leg) => result.legs[leg])
            .map((leg) => `${LEG_NAMES[leg]} ${result.legs[leg]!.rank}`)
            .join(" · ")}{" "}
          → fused {result.fused.rank} → final {rank}
        </summary>
        <dl class="evidence">
          {LEGS.map((leg) => (
            <div key={leg} class={`leg-${leg}`}>
              <dt>{LEG_NAMES[leg]}</dt>
              <dd>
                {evidenceSentence(leg, result, answer)}
                {leg === "graph" && <Path namespace={namespace} result={result} />}
              </dd>
            </div>
          ))}
        </dl>
        <p class="row">
          <a href={href(namespace, "memories", result.id)}>Open</a>
          {result.session_id && <a href={href(namespace, "memories", "", { session: result.session_id })}>Session</a>}
          {result.document_id && (
            <a href={href(namespace, "memories", "", { document: result.document_id })}>Document</a>
          )}
          {result.duplicates?.length ? <span class="soft">Duplicates: {result.duplicates.join(", ")}</span> : null}
        </p>
      </details>
    </article>
  );
}

/** The entities on the way from the question to the memory. */
function Path({ namespace, result }: { namespace: string; result: Result }) {
  const { path, duplicate } = result.legs.graph ?? {};
  if (!path?.length) return null;
  return (
    <a class="path" href={href(namespace, "graph", "", { memory: duplicate ?? result.id, path: joined(path) })}>
      <span class="visually-hidden">Show in graph: </span>
      <span class="path-node">question</span>
      {path.map((name) => (
        <span key={name} class="path-node">
          {name}
        </span>
      ))}
      <span class="path-node">memory</span>
    </a>
  );
}
