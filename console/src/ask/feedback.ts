import { useState } from "preact/hooks";

import { type Answer, type Intent, type Settings, call, within } from "../api";
import { notify } from "../ui/toasts";

type Judgement = "relevant" | "irrelevant";

export interface Feedback {
  id: string;
  at: string;
  query: string;
  relevant: string[];
  irrelevant: string[];
  clicked: string[];
  ratings: Record<string, number>;
  intent?: Intent | null;
}

export interface FeedbackState {
  judged: (answer: Answer, id: string) => Judgement | undefined;
  /** What was stored; undefined if it could not be. */
  judge: (query: string, answer: Answer, id: string, judgement: Judgement) => Promise<Feedback | undefined>;
}

/** Judgements of results, each stored as feedback on the search that showed it, with its filters and time. */
export function useFeedback(namespace: string, { filters, as_of }: Settings = {}): FeedbackState {
  const [given, setGiven] = useState<Record<string, Judgement>>({});
  const key = (answer: Answer, id: string): string => `${answer.search_id} ${id}`;
  return {
    judged: (answer, id) => given[key(answer, id)],
    judge: async (query, answer, id, judgement) => {
      const body = {
        query,
        search_id: answer.search_id,
        shown: answer.results.map((result) => result.id),
        relevant: judgement === "relevant" ? [id] : [],
        irrelevant: judgement === "irrelevant" ? [id] : [],
        profile: answer.profile,
        filters,
        as_of,
      };
      try {
        const receipt = await call<{ id: string }>(within(namespace, "feedback"), { method: "POST", body });
        setGiven((all) => ({ ...all, [key(answer, id)]: judgement }));
        notify("Feedback saved");
        return { ...body, id: receipt.id, at: new Date().toISOString(), clicked: [], ratings: {} };
      } catch (error) {
        notify(`Feedback not saved: ${(error as Error).message}`);
        return undefined;
      }
    },
  };
}
