import "./ask.css";

import { useEffect, useState } from "preact/hooks";

import { type Answer, type EntitySummary, type Settings, call, within } from "../api";
import type { ViewProps } from "../app";
import { useLatest, useLoaded } from "../loading";
import { go, href } from "../route";
import { useStored } from "../stored";
import { Failure } from "../ui/failure";
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

/** What one side is asked with and what it answered; the second side is there while two settings are compared. */
export interface Asked {
  settings: Settings;
  answer?: Answer;
  error?: Error;
}

const SHOWN = 30;

/** The body of the request; the console shows the same to copy. */
export function requestBody(query: string, settings: Settings): Record<string, unknown> {
  return { query, top_k: SHOWN, explain: true, ...settings };
}

interface Job {
  side: Side;
  query: string;
  settings: Settings;
}

export function Ask({ namespace, route }: ViewProps) {
  const query = route.query.get("q") ?? "";
  const [history, setHistory] = useStored<string[]>(localStorage, `history.${namespace}`, []);
  const [sides, setSides] = useState<Partial<Record<Side, Asked>>>({ A: { settings: {} } });
  const [active, setActive] = useState<Side>("A");
  const [opened, setOpened] = useState<string>();
  const feedback = useFeedback(namespace);

  const put = (side: Side, change: (before: Asked) => Asked): void =>
    setSides((all) => (all[side] ? { ...all, [side]: change(all[side]) } : all));
  const run = async ({ side, query, settings }: Job): Promise<void> => {
    try {
      const body = requestBody(query, settings);
      const answer = await call<Answer>(within(namespace, "context"), { method: "POST", body });
      if (answer.reason === "unknown_namespace") throw new Error(`There is no namespace “${namespace}”.`);
      put(side, ({ settings }) => ({ settings, answer }));
    } catch (error) {
      put(side, (before) => ({ ...before, error: error as Error }));
    }
  };
  const request = { A: useLatest<Job>(run), B: useLatest<Job>(run) };

  const change = (side: Side, settings: Settings): void => {
    setSides((all) => ({ ...all, [side]: { ...all[side], settings } }));
    if (query) request[side]({ side, query, settings });
  };
  const ask = (question: string): void => {
    setHistory([question, ...history.filter((earlier) => earlier !== question)].slice(0, 30));
    if (question === query) askAgain();
    else go(href(namespace, "ask", "", { q: question }));
  };
  const askAgain = (): void => {
    setOpened(undefined);
    for (const [side, { settings }] of Object.entries(sides) as [Side, Asked][])
      if (query) request[side]({ side, query, settings });
  };
  useEffect(askAgain, [query, namespace]);

  const compare = (): void => {
    setSides({ A: sides.A!, B: sides.A! });
    setActive("B");
  };
  const endComparison = (): void => {
    setSides({ A: sides[active]! });
    setActive("A");
  };

  const shown = sides[active]!;
  const { answer, error } = shown;
  return (
    <div class="ask">
      <Question key={query} initial={query} history={history} onAsk={ask} onForget={() => setHistory([])} />
      <aside class="ask-controls" aria-label="Settings">
        <Controls
          settings={shown.settings}
          answer={answer}
          onChange={(settings) => change(active, settings)}
          comparing={sides.B ? active : undefined}
          onSide={setActive}
          onCompare={compare}
          onEndComparison={endComparison}
        />
      </aside>
      <div class="ask-how">
        {error && <Failure error={error} onRetry={askAgain} />}
        {!query && <Welcome namespace={namespace} onAsk={ask} />}
        {answer && query && (
          <>
            <Verdict answer={answer} />
            {sides.B?.answer && sides.A?.answer ? (
              <Comparison a={sides.A.answer} b={sides.B.answer} onOpen={setOpened} />
            ) : (
              <LegRankings answer={answer} onOpen={setOpened} />
            )}
          </>
        )}
      </div>
      <div class="ask-results">
        {answer && query && (
          <Results namespace={namespace} answer={answer} opened={opened} feedback={feedback} query={query} />
        )}
      </div>
      <aside class="ask-pack" aria-label="Context pack">
        {answer && query && (
          <>
            <Pack namespace={namespace} answer={answer} />
            <RequestCode namespace={namespace} query={query} settings={shown.settings} />
          </>
        )}
      </aside>
    </div>
  );
}

/** Questions about what the namespace itself mentions most. */
function suggested([first, second]: EntitySummary[]): string[] {
  if (!first) return [];
  const alone = [`What does ${first.name} like?`, `What happened to ${first.name} lately?`];
  return second ? [...alone, `How are ${first.name} and ${second.name} connected?`] : alone;
}

function Welcome({ namespace, onAsk }: { namespace: string; onAsk: (question: string) => void }) {
  const { data, error } = useLoaded(
    (signal) => call<{ entities: EntitySummary[] }>(within(namespace, "entities"), { query: { limit: 2 }, signal }),
    [namespace],
  );
  return (
    <section class="welcome">
      <h1>Ask {namespace}</h1>
      <p class="soft">
        Three retrievers answer side by side. You see what each found, how their lists became one, and the text that an
        assistant would get.
      </p>
      {error && <Failure error={error} />}
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
