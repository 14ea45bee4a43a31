// Judgements of results, and questions that still need some.

import { useState } from "preact/hooks";

import { type Answer, call, within } from "../api";
import { type Feedback, useFeedback } from "../ask/feedback";
import { JudgeButtons } from "../ask/judge_buttons";
import { counted, dayAndTime } from "../format";
import { useLoaded } from "../loading";
import { allRows, readPage } from "../pages";
import { href } from "../route";
import { useStored } from "../stored";
import { Failure } from "../ui/failure";
import { Pending } from "../ui/pending";
import { Scrolling } from "../ui/scrolling";
import { Table, numbers } from "../ui/table";

const LABELLED = 10;
/** Most judgements that are read, the oldest. */
export const MOST = 1_000;

export function Judgements({ namespace }: { namespace: string }) {
  const loaded = useLoaded((signal) => allFeedback(namespace, signal), [namespace]);
  const [history] = useStored<string[]>(localStorage, `history.${namespace}`, []);
  const [question, setQuestion] = useState<string>();
  const [added, setAdded] = useState<Feedback[]>([]);
  const read = new Set(loaded.data?.map(({ id }) => id));
  const feedback = loaded.data && [...added.filter(({ id }) => !read.has(id)), ...loaded.data];
  const judged = new Set(feedback?.map(({ query }) => query));
  const open = history.filter((query) => !judged.has(query));
  const store = (one: Feedback): void => setAdded((before) => [one, ...before]);
  return (
    <section class="panel">
      <h2>Judgements</h2>
      <p class="hint">
        Which results are relevant to which question.{" "}
        <code>trivet tune --from-feedback -n {namespace} --profile NAME</code> learns weights from them.
      </p>
      <LabelForm onAsk={setQuestion} suggestions={open.slice(0, 6)} />
      {question && <LabelList key={question} namespace={namespace} query={question} onStored={store} />}
      <Pending of={loaded} />
      {feedback && <FeedbackTable namespace={namespace} feedback={feedback} isCut={read.size >= MOST} />}
    </section>
  );
}

/** The feedback on a namespace, the latest first. */
export async function allFeedback(namespace: string, signal: AbortSignal): Promise<Feedback[]> {
  const read = (cursor?: string) => readPage<Feedback>(namespace, "feedback", { limit: 100, cursor }, signal);
  return (await allRows(MOST, read)).reverse();
}

interface LabelFormProps {
  onAsk: (question: string) => void;
  suggestions: string[];
}

function LabelForm({ onAsk, suggestions }: LabelFormProps) {
  const [text, setText] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (text.trim()) onAsk(text.trim());
  };
  return (
    <form onSubmit={submit} class="label-form">
      <label>
        <span>Question to judge</span>
        <input value={text} onInput={(event) => setText(event.currentTarget.value)} list="asked-before" />
      </label>
      <datalist id="asked-before">
        {suggestions.map((question) => (
          <option key={question} value={question} />
        ))}
      </datalist>
      <button type="submit">Search</button>
    </form>
  );
}

interface LabelListProps {
  namespace: string;
  query: string;
  onStored: (stored: Feedback) => void;
}

/** The first results of a question, each with two buttons; every press is stored as feedback. */
function LabelList({ namespace, query, onStored }: LabelListProps) {
  const feedback = useFeedback(namespace);
  const { data: answer, error } = useLoaded(
    (signal) =>
      call<Answer>(within(namespace, "search"), { method: "POST", body: { query, top_k: LABELLED }, signal }),
    [namespace, query],
  );
  if (error) return <Failure error={error} />;
  if (!answer)
    return (
      <p class="soft" role="status">
        Searching…
      </p>
    );
  if (answer.results.length === 0) return <p class="soft">No results.</p>;
  return (
    <ol class="label-list" aria-label={`Results for: ${query}`}>
      {answer.results.map((result) => (
        <li key={result.id}>
          <span>{result.snippet}</span>
          <span class="row">
            <JudgeButtons feedback={feedback} query={query} answer={answer} id={result.id} onJudged={onStored} />
          </span>
        </li>
      ))}
    </ol>
  );
}

interface FeedbackTableProps {
  namespace: string;
  feedback: Feedback[];
  isCut: boolean;
}

function FeedbackTable({ namespace, feedback, isCut }: FeedbackTableProps) {
  if (feedback.length === 0) return <p class="soft">No judgements yet.</p>;
  return (
    <details open>
      <summary>
        {counted(feedback.length, "judgement", "judgements")}
        {isCut && " (oldest)"}
      </summary>
      <Scrolling label="Judgements">
        <Table
          columns={["Question", ...numbers("Relevant", "Not relevant"), "Time (UTC)"]}
          rows={feedback.map(({ id, at, query, relevant, irrelevant, clicked, ratings }) => {
            // A memory counts once, as in tuning: a judgement goes before a rating, and that before a click.
            const all = (ids: string[], grade: number) => ids.map((memory) => [memory, grade] as const);
            const graded = [...all(clicked, 1), ...Object.entries(ratings), ...all(relevant, 1), ...all(irrelevant, 0)];
            const grades = [...new Map(graded).values()];
            return {
              key: id,
              cells: [
                <a href={href(namespace, "ask", "", { q: query })}>{query}</a>,
                grades.filter((grade) => grade > 0).length,
                grades.filter((grade) => grade === 0).length,
                <span class="soft">{dayAndTime(at)}</span>,
              ],
            };
          })}
        />
      </Scrolling>
    </details>
  );
}
