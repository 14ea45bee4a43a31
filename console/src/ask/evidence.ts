// Each leg's evidence for a memory, in a sentence.

import type { Answer, Leg, Result } from "../api";
import { counted, ordinal } from "../format";

export function evidenceSentence(leg: Leg, result: Result, answer: Answer): string {
  const found = result.legs[leg];
  const searched = answer.explanation.legs[leg];
  if (!found && searched) return `Not among the ${counted(searched.hits, "memory", "memories")} it contributed.`;
  if (!found) return answer.degraded.some((failed) => failed.leg === leg) ? "Did not answer." : "Did not run.";
  const place = `${ordinal(found.rank)} of ${searched?.hits ?? "?"}${found.duplicate ? ` (as ${found.duplicate})` : ""}`;
  if (leg === "vector") return `${place}, cosine similarity ${found.score.toFixed(2)}.`;
  if (leg === "graph") return `${place}, activation ${found.score.toFixed(2)}. ${found.why ?? ""}`.trim();
  return `${place}, score ${found.score.toFixed(1)}. ${termsSentence(result, searched?.terms ?? {})}`.trim();
}

const UNSPACED = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;

/** Letters that BM25 folds and that Unicode does not decompose. */
const FOLDED: Record<string, string> = {
  ...{ ß: "ss", ø: "o", ł: "l", đ: "d", ħ: "h", ı: "i", æ: "ae", œ: "oe", ð: "d", þ: "th" },
  ...{ ς: "σ", ي: "ی", ى: "ی", ك: "ک", ٱ: "ا" },
};

/**
 * The memory's words that are also in the question. A term is a stem and is shown as the shortest word that begins with
 * it, if there is one; in scripts without spaces it is a pair of characters.
 */
function termsSentence(result: Result, frequencies: Record<string, number>): string {
  const plain = (text: string): string =>
    text
      .normalize("NFKD")
      .replace(/[\p{M}ـ]/gu, "")
      .toLowerCase()
      .replace(/[^\0-\x7f]/gu, (letter) => FOLDED[letter] ?? letter);
  const words = [result.speaker, result.title, result.text].join(" ").split(/[^\p{L}\p{M}\p{N}]+/u);
  words.sort((a, b) => a.length - b.length);
  const wordWith = (term: string): string =>
    (!UNSPACED.test(term) && words.find((each) => plain(each).startsWith(plain(term)))) || term;
  const shared = [...(result.legs.bm25!.terms ?? [])]
    .sort((a, b) => frequencies[a]! - frequencies[b]!)
    .map((term) => `“${wordWith(term)}” (in ${counted(frequencies[term]!, "memory", "memories")})`);
  return shared.length ? `Matches ${shared.join(", ")}.` : "";
}
