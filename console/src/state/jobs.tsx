import { call } from "../api";
import { count, dayAndTime, percent } from "../format";
import { type Loaded, useLoaded, useReloading } from "../loading";
import { Scrolling } from "../ui/scrolling";
import { Table } from "../ui/table";

interface Job {
  id: string;
  kind: "import" | "reembed";
  namespace: string;
  state: "running" | "done" | "failed" | "interrupted";
  done: number;
  total: number | null;
  started_at: string;
  error: string | null;
}

const REFRESH_MS = 5_000;
const RUNNING_MS = 1_000;
const SHOWN = 10;

/** Running and past jobs: read again every five seconds, or every second while one runs. */
export function useJobs(): Loaded<{ jobs: Job[] }> {
  const loaded = useLoaded((signal) => call<{ jobs: Job[] }>("/v1/jobs", { signal }), []);
  const isRunning = loaded.data?.jobs.some(({ state }) => state === "running");
  useReloading(loaded, isRunning ? RUNNING_MS : REFRESH_MS);
  return loaded;
}

export function Jobs({ jobs }: { jobs: Job[] }) {
  if (jobs.length === 0) return null;
  return (
    <section class="panel">
      <h2>Recent jobs</h2>
      <Scrolling label="Jobs">
        <Table
          isHeaded
          columns={["Job", "Namespace", "State", "Progress", "Started (UTC)"]}
          rows={jobs.slice(0, SHOWN).map((job) => {
            const told = job.state + (job.error ? `: ${job.error}` : "");
            const state = <span class={job.state === "failed" ? "bad" : undefined}>{told}</span>;
            return { key: job.id, cells: [job.kind, job.namespace, state, <Progress {...job} />, dayAndTime(job.started_at)] };
          })}
        />
      </Scrolling>
    </section>
  );
}

function Progress({ kind, namespace, state, done, total }: Job) {
  const label = `${kind} of ${namespace}`;
  return (
    <>
      {state === "running" && <progress aria-label={label} max={total ?? 1} value={total === null ? undefined : done} />}
      {count(done)}
      {total !== null && ` of ${count(total)}`}
      {state === "running" && !!total && ` (${percent(done / total)})`}
    </>
  );
}
