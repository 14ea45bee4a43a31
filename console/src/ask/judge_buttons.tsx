import type { Answer } from "../api";
import type { Feedback, FeedbackState } from "./feedback";

interface Props {
  feedback: FeedbackState;
  query: string;
  answer: Answer;
  id: string;
  className?: string;
  onJudged?: (stored: Feedback) => void;
}

/** Two buttons that say whether a result answers the question; every press is stored as feedback. */
export function JudgeButtons({ feedback, query, answer, id, className, onJudged }: Props) {
  const judgement = feedback.judged(answer, id);
  return (
    <>
      {(["relevant", "irrelevant"] as const).map((one) => (
        <button
          key={one}
          type="button"
          class={className}
          aria-pressed={judgement === one}
          onClick={() => void feedback.judge(query, answer, id, one).then((stored) => stored && onJudged?.(stored))}
        >
          {one === "relevant" ? "Relevant" : "Not relevant"}
        </button>
      ))}
    </>
  );
}
