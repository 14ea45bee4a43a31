import "./tune.css";

import type { ViewProps } from "../app";
import { Evaluation } from "./evaluation";
import { Intents } from "./intents";
import { Judgements } from "./judgements";
import { Profiles } from "./profiles";

/** The parameters of the ranking, and people's judgements of its answers. */
export function Tune({ namespace }: ViewProps) {
  return (
    <div class="page tune">
      <h1>Tune</h1>
      <Judgements namespace={namespace} />
      <Evaluation namespace={namespace} key={namespace} />
      <Profiles />
      <Intents namespace={namespace} />
    </div>
  );
}
