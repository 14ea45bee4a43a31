import { useState } from "preact/hooks";

import { type Answer, call, within } from "../api";
import { notify } from "../ui/toasts";

type Judgement = "relevant" | "irrelevant";

export interface FeedbackState {
  judged: (answer: Answer, id: string) => Judgement | undefined;
  judge: (query: string, answer: Answer, id: string, judgement: Judgement) => Promise<void>;
}

/** Judgements of results, each stored as feedback on the search that showed it. */
export function useFeedback(namespace: string): FeedbackState {
  const [given, setGiven] = useState<Record<string, Judgement>>({});
  const key = (answer: Answer, id: string): string => `${answer.search_id} ${id}`;
  return {
    judged: (answer, id) => given[key(answer, id)],
    judge: async (query, answer, id, judgement) => {
      const body = {
        query,
        search_id: answer.search_id,
        shown: answer.results.map((result) => result.id),
        [judgement]: [id],
        profile: answer.profile,
      };
      try {
        await call(within(namespace, "feedback"), { method: "POST", body });
        setGiven((all) => ({ ...all, [key(answer, id)]: judgement }));
        notify("Feedback saved");
      } catch (error) {
        notify(`Feedback not saved: ${(error as Error).message}`);
      }
    },
  };
}
