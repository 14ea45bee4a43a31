// What each leg said of a memory, in a sentence.

import type { Answer, Leg, Result } from "../api";
import { counted, ordinal } from "../format";

export function evidenceSentence(leg: Leg, result: Result, answer: Answer): string {
  const found = result.legs[leg];
  const searched = answer.explanation.legs[leg];
  if (!found)
    return searched ? `Not among the ${counted(searched.hits, "memory", "memories")} it returned.` : "Did not run.";
  const place = `${ordinal(found.rank)} of ${searched?.hits ?? "?"}`;
  if (leg === "vector") return `${place}: its meaning is near the question's, cosine ${found.score.toFixed(2)}.`;
  if (leg === "graph") return `${place}, activation ${found.score.toFixed(2)}. ${found.why ?? ""}`.trim();
  return `${place}, score ${found.score.toFixed(1)}. ${termsSentence(result, searched?.terms ?? {})}`.trim();
}

/** The question's terms that stand in the memory. Terms are stems, so a word counts that begins like one. */
function termsSentence(result: Result, terms: Record<string, number>): string {
  const plain = (text: string): string => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const words = plain(`${result.title ?? ""} ${result.text}`).split(/[^\p{L}\p{N}]+/u);
  const shared = Object.entries(terms).filter(([term]) => words.some((word) => word.startsWith(plain(term))));
  if (shared.length === 0) return "";
  const rarest = shared.sort(([, a], [, b]) => a - b).map(([term, df]) => `“${term}” (in ${counted(df, "memory", "memories")})`);
  return `It shares ${rarest.join(", ")}.`;
}
