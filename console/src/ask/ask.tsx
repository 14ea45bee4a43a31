import "./ask.css";

import { useEffect, useRef, useState } from "preact/hooks";

import { type Answer, type EntitySummary, type Settings, call, within } from "../api";
import type { ViewProps } from "../app";
import { useLatest, useLoaded } from "../loading";
import { go, href } from "../route";
import { useStored } from "../stored";
import { Failure } from "../ui/failure";
import { NoneYet } from "../ui/none_yet";
import { Comparison } from "./comparison";
import { Controls } from "./controls";
import { useFeedback } from "./feedback";
import { Pack } from "./pack";
import { Question } from "./question";
import { LegRankings } from "./rankings";
import { RequestCode } from "./request_code";
import { Results } from "./results";
import { Verdict } from "./verdict";

export type Side = "A" | "B";

/** The settings of one side, and the state of its last request. */
interface Asked {
  settings: Settings;
  job?: Job;
  answer?: Answer;
  error?: Error;
}

/** The second side exists while two settings are compared. */
type Sides = Partial<Record<Side, Asked>>;

interface Job {
  side: Side;
  query: string;
  settings: Settings;
  signal: AbortSignal;
}

/** The body of the request; the console shows the same to copy. */
export function requestBody(query: string, settings: Settings): Record<string, unknown> {
  return { query, explain: true, ...settings };
}

export function Ask({ namespace, namespaces, route }: ViewProps) {
  const query = route.query.get("q") ?? "";
  const isEmpty = namespaces.some(({ name, memories }) => name === namespace && memories === 0);
  const [history, setHistory] = useStored<string[]>(localStorage, `history.${namespace}`, []);
  const [sides, setSides] = useState<Sides>({ A: { settings: {} } });
  const [active, setActive] = useState<Side>("A");
  const [opened, setOpened] = useState<string>();
  const asking = useRef(new AbortController());
  const typed = useRef("");
  const shown = sides[active]!;
  const feedback = useFeedback(namespace, shown.job?.settings);

  const put = (side: Side, change: (before: Asked) => Asked): void =>
    setSides((all) => (all[side] ? { ...all, [side]: change(all[side]) } : all));
  const remember = (question: string): void => {
    typed.current = "";
    setHistory((stored) => [question, ...stored.filter((earlier) => earlier !== question)].slice(0, 30));
  };
  const forget = (): void => {
    typed.current = "";
    setHistory(() => []);
  };
  const run = async (job: Job): Promise<void> => {
    const { side, query, settings, signal } = job;
    try {
      const body = requestBody(query, settings);
      const answer = await call<Answer>(within(namespace, "context"), { method: "POST", body, signal });
      if (answer.reason === "unknown_namespace") throw new Error(`There is no namespace “${namespace}”.`);
      put(side, ({ settings }) => ({ settings, job, answer }));
      if (typed.current === query) remember(query);
    } catch (error) {
      if (signal.aborted) return;
      put(side, ({ settings }) => ({ settings, job, error: error as Error }));
    }
  };
  const latest = { A: useLatest<Job>(run), B: useLatest<Job>(run) };
  const request = (side: Side, settings: Settings): void => {
    if (query) latest[side]({ side, query, settings, signal: asking.current.signal });
  };

  const change = (side: Side, settings: Settings): void => {
    setSides((all) => ({ ...all, [side]: { ...all[side], settings } }));
    request(side, settings);
  };
  const ask = (question: string): void => {
    typed.current = question;
    if (question === query) askAgain();
    else go(href(namespace, "ask", "", { q: question }));
  };
  /** Ask with these sides and abort running requests; without `isAll`, only sides whose answer is out of date. */
  const askWith = (next: Sides, isAll: boolean): void => {
    asking.current.abort();
    asking.current = new AbortController();
    setSides(next);
    for (const [side, { job, settings }] of Object.entries(next) as [Side, Asked][])
      if (isAll || job?.query !== query || job.settings !== settings) request(side, settings);
  };
  const askAgain = (): void => {
    setOpened(undefined);
    askWith(sides, true);
  };
  useEffect(() => {
    askAgain();
    return () => asking.current.abort();
  }, [query, namespace]);

  const compare = (): void => {
    askWith({ A: sides.A!, B: sides.A! }, false);
    setActive("B");
  };
  const endComparison = (): void => {
    askWith({ A: sides[active]! }, false);
    setActive("A");
  };

  const answerOf = (asked: Asked | undefined): Answer | undefined =>
    query && asked?.job?.query === query ? asked.answer : undefined;
  const answer = answerOf(shown);
  const [a, b] = [answerOf(sides.A), answerOf(sides.B)];
  const error = [shown, ...Object.values(sides)].find((asked) => asked.error && asked.job?.query === query)?.error;
  return (
    <div class="ask">
      {query && <h1 class="visually-hidden">Ask</h1>}
      <Question asked={query} history={history} onAsk={ask} onForget={forget} />
      <aside class="ask-controls" aria-label="Settings">
        {/* The sliders stay where the answer before has put them until this one comes. */}
        <Controls
          settings={shown.settings}
          answer={shown.answer}
          onChange={(settings) => change(active, settings)}
          comparing={sides.B ? active : undefined}
          onSide={setActive}
          onCompare={compare}
          onEndComparison={endComparison}
        />
      </aside>
      <div class="ask-how">
        {error && <Failure error={error} onRetry={askAgain} />}
        {!query && <Welcome namespace={namespace} isEmpty={isEmpty} onAsk={ask} />}
        {query && !answer && !error && (
          <p class="soft" role="status">
            Searching…
          </p>
        )}
        {answer && (
          <>
            {answer.explanation.query !== query && <p class="soft">Searched for: {answer.explanation.query}</p>}
            <Verdict answer={answer} />
            {a && b ? <Comparison a={a} b={b} onOpen={setOpened} /> : <LegRankings answer={answer} onOpen={setOpened} />}
          </>
        )}
      </div>
      <div class="ask-results">
        {answer && <Results namespace={namespace} answer={answer} opened={opened} feedback={feedback} query={query} />}
      </div>
      <aside class="ask-pack" aria-label="Context pack">
        {answer && (
          <>
            <Pack namespace={namespace} answer={answer} />
            <RequestCode namespace={namespace} query={query} settings={shown.job!.settings} />
          </>
        )}
      </aside>
    </div>
  );
}

/** Questions about the most mentioned entities of the namespace. */
function suggested([first, second]: EntitySummary[]): string[] {
  if (!first) return [];
  const alone = [`What do we know about ${first.name}?`, `What is the latest on ${first.name}?`];
  return second ? [...alone, `How are ${first.name} and ${second.name} connected?`] : alone;
}

interface WelcomeProps {
  namespace: string;
  isEmpty: boolean;
  onAsk: (question: string) => void;
}

function Welcome({ namespace, isEmpty, onAsk }: WelcomeProps) {
  const { data, error } = useLoaded(
    (signal) => call<{ entities: EntitySummary[] }>(within(namespace, "entities"), { query: { limit: 2 }, signal }),
    [namespace],
  );
  return (
    <section class="welcome">
      <h1>Ask {namespace}</h1>
      <p class="soft">
        Three retrievers run in parallel. See what each one found, how their results were fused, and the context that an
        assistant would get.
      </p>
      {error && <Failure error={error} />}
      {isEmpty && <NoneYet namespace={namespace} />}
      <ul class="row">
        {suggested(data?.entities ?? []).map((question) => (
          <li key={question}>
            <button type="button" onClick={() => onAsk(question)}>
              {question}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
