// Each leg's evidence for a memory, in a sentence.

import type { Answer, Leg, Result } from "../api";
import { counted, ordinal } from "../format";

export function evidenceSentence(leg: Leg, result: Result, answer: Answer): string {
  const found = result.legs[leg];
  const searched = answer.explanation.legs[leg];
  if (!found)
    return searched ? `Not among the ${counted(searched.hits, "memory", "memories")} it returned.` : "Did not run.";
  const place = `${ordinal(found.rank)} of ${searched?.hits ?? "?"}`;
  if (leg === "vector") return `${place}, cosine similarity ${found.score.toFixed(2)}.`;
  if (leg === "graph") return `${place}, activation ${found.score.toFixed(2)}. ${found.why ?? ""}`.trim();
  return `${place}, score ${found.score.toFixed(1)}. ${termsSentence(result, searched?.terms ?? {})}`.trim();
}

/** The memory's words that are also in the question. Terms are stems, so words that begin with one count. */
function termsSentence(result: Result, terms: Record<string, number>): string {
  const plain = (text: string): string => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const words = [result.speaker, result.title, result.text].join(" ").split(/[^\p{L}\p{M}\p{N}]+/u);
  const shared = Object.entries(terms)
    .sort(([, a], [, b]) => a - b)
    .flatMap(([term, df]) => {
      const word = words.find((each) => plain(each).startsWith(plain(term)));
      return word ? [`“${word}” (in ${counted(df, "memory", "memories")})`] : [];
    });
  return shared.length ? `Matches ${shared.join(", ")}.` : "";
}
