import type { Loaded } from "../loading";
import { Failure } from "./failure";

/** In place of data that is not there yet: that it is loading, or why it failed. Above older data: that it is older. */
export function Pending({ of: { data, error, reload } }: { of: Loaded<unknown> }) {
  if (error) return <Failure error={error} isOld={data !== undefined} onRetry={reload} />;
  if (data !== undefined) return null;
  return (
    <p class="soft" role="status">
      Loading…
    </p>
  );
}
