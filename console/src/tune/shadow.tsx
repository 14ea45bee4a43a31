// A version that runs in the shadow of the live one: it answers a share of the queries, unseen, and is compared.

import { useState } from "preact/hooks";

import { call } from "../api";
import { count, milliseconds, percent } from "../format";
import { useLoaded } from "../loading";
import { Pending } from "../ui/pending";
import { attempt } from "../ui/toasts";

interface ShadowInfo {
  live: number | null;
  shadow: { version: number; share: number } | null;
  compared: {
    n: number;
    mean_overlap: number | null;
    same_first: number | null;
    mean_rank_biased_overlap: number | null;
    median_live_ms: number | null;
    median_candidate_ms: number | null;
  } | null;
}

export function Shadow({ name, versions }: { name: string; versions: number[] }) {
  const path = `/v1/profiles/${encodeURIComponent(name)}/shadow`;
  const loaded = useLoaded((signal) => call<ShadowInfo>(path, { signal }), [path]);
  const { data, reload } = loaded;
  const [version, setVersion] = useState<number>();
  const change = (method: "PUT" | "DELETE", body?: unknown): Promise<void> =>
    attempt(async () => {
      await call(path, { method, body });
      reload();
    });
  const candidates = versions.filter((one) => one !== data?.live);
  return (
    <>
      <Pending of={loaded} />
      {data?.shadow && <Running data={data} onStop={() => void change("DELETE")} />}
      {data && !data.shadow && candidates.length > 0 && (
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            void change("PUT", { version: version ?? candidates[0], share: 1 });
          }}
        >
          <label class="row">
            <span>Run in shadow mode</span>
            <select value={version ?? candidates[0]} onChange={(event) => setVersion(Number(event.currentTarget.value))}>
              {candidates.map((one) => (
                <option key={one} value={one}>
                  {name}@{one}
                </option>
              ))}
            </select>
          </label>
          <button type="submit">Start</button>
        </form>
      )}
    </>
  );
}

function Running({ data, onStop }: { data: ShadowInfo; onStop: () => void }) {
  const { shadow, compared } = data;
  const share = (value: number | null | undefined): string => (value == null ? "–" : percent(value));
  const ms = (value: number | null | undefined): string => (value == null ? "–" : milliseconds(value));
  return (
    <div class="row">
      <p>
        Version {shadow!.version} runs in shadow mode beside version {data.live}, on {percent(shadow!.share)} of the
        queries: {count(compared?.n ?? 0)} compared, {share(compared?.mean_overlap)} of results shared,{" "}
        {share(compared?.same_first)} with the same top result, median {ms(compared?.median_candidate_ms)} instead of{" "}
        {ms(compared?.median_live_ms)}.
      </p>
      <button type="button" onClick={onStop}>
        Stop
      </button>
    </div>
  );
}
