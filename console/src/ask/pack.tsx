import type { Answer } from "../api";
import { count } from "../format";
import { href } from "../route";
import { Table, numbers } from "../ui/table";
import { Copy } from "./copy";

const REASONS: Record<string, string> = {
  over_budget: "over the token budget",
  source_cap: "source limit reached",
  not_relevant: "low relevance",
  empty: "no text",
};

/** The text that a model would see, and the tokens of each entry. */
export function Pack({ namespace, answer }: { namespace: string; answer: Answer }) {
  const { context, tokens_used, max_tokens, items, dropped } = answer;
  return (
    <section class="pack panel">
      <div class="row spread">
        <h2>Context pack</h2>
        <Copy text={context} label="Copy pack" />
      </div>
      <p class="budget">
        <meter min={0} max={max_tokens} value={tokens_used} aria-label="Tokens used" />
        <span class="number">
          {count(tokens_used)} of {count(max_tokens)} tokens
        </span>
      </p>
      {context ? (
        <pre tabIndex={0} aria-label="Pack text">
          {context}
        </pre>
      ) : (
        <p class="soft">
          Empty{answer.reason === "nothing_relevant" ? ": no memory is relevant enough" : ""}.
        </p>
      )}
      <details>
        <summary>Tokens per entry</summary>
        <Table
          columns={["Entry", ...numbers("Tokens")]}
          rows={items.map(({ id, citation, tokens, needed_by }) => {
            const reason = needed_by && <span class="soft"> needed by {needed_by}</span>;
            return { key: id, cells: [[citation, " ", <a href={href(namespace, "memories", id)}>{id}</a>, reason], tokens] };
          })}
        />
      </details>
      {dropped.length > 0 && (
        <details>
          <summary>{dropped.length} left out</summary>
          <ul class="dropped">
            {dropped.map(({ id, reason }) => (
              <li key={id}>
                <a href={href(namespace, "memories", id)}>{id}</a> {REASONS[reason] ?? reason.replace("_of:", " of ")}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
