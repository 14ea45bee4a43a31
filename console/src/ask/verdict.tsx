import { type Answer, INTENTS, LEGS, LEG_NAMES } from "../api";
import { milliseconds, percent } from "../format";

export const INTENT_NAMES = {
  fact_lookup: "Fact lookup",
  relationship: "Relationship",
  preference: "Preference",
  open_ended: "Open-ended",
} as const;

/** How the query was classified: its intent, the resulting weights, and the reasons for both. */
export function Verdict({ answer }: { answer: Answer }) {
  const total = LEGS.reduce((sum, leg) => sum + (answer.weights[leg] ?? 0), 0) || 1;
  const { weights, rescoring, time } = answer.explanation;
  return (
    <section class="verdict panel" aria-label="Intent and weights">
      <div>
        <h2>Intent</h2>
        {answer.intent ? (
          <ul class="bars">
            {INTENTS.map((intent) => (
              <Bar key={intent} name={INTENT_NAMES[intent]} share={answer.intent!.probabilities[intent] ?? 0} />
            ))}
          </ul>
        ) : (
          <p class="hint">Not classified.</p>
        )}
      </div>
      <div>
        <h2>Weights</h2>
        <ul class="bars">
          {LEGS.map((leg) => (
            <Bar key={leg} name={LEG_NAMES[leg]} share={(answer.weights[leg] ?? 0) / total} className={`leg-${leg}`} />
          ))}
        </ul>
        <p class="hint">
          {answer.profile} · {milliseconds(answer.timings_ms["total"] ?? 0)}
        </p>
      </div>
      {answer.degraded.length > 0 && (
        <p role="alert" class="degraded">
          Answered without: {answer.degraded.map(({ leg, reason }) => `${leg} (${reason})`).join(", ")}
        </p>
      )}
      <details class="reasons">
        <summary>Why these weights</summary>
        {[weights, rescoring, time].filter(Boolean).map((sentence) => (
          <p key={sentence}>{sentence!.charAt(0).toUpperCase() + sentence!.slice(1)}.</p>
        ))}
      </details>
    </section>
  );
}

function Bar({ name, share, className = "" }: { name: string; share: number; className?: string }) {
  return (
    <li class={`bar-row ${className}`}>
      <span>{name}</span>
      <span class="bar-track" aria-hidden="true">
        <span class="bar-fill" style={{ width: `${share * 100}%` }} />
      </span>
      <span class="number">{percent(share)}</span>
    </li>
  );
}
