import "./state.css";

import type { ComponentChildren } from "preact";

import { type Namespace, call, callText } from "../api";
import type { ViewProps } from "../app";
import { count, milliseconds, percent } from "../format";
import { useLoaded, useReloading } from "../loading";
import { href } from "../route";
import { Pending } from "../ui/pending";
import { Jobs, useJobs } from "./jobs";
import { type Timing, parseMetrics, timings, total } from "./metrics";
import { Scrolling } from "../ui/scrolling";
import { Table, numbers } from "../ui/table";

interface ServerState {
  findings: { name: string; ok: boolean; detail: string }[];
  indexes: { namespace: string; memories: number; bytes: number }[];
  max_index_bytes: number;
  unpacked: Record<string, number>;
}

type Samples = ReturnType<typeof parseMetrics>;

const REFRESH_MS = 5_000;
const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

/** Whether the server is well: its checks, its contents, its speed and load. */
export function State({ namespaces, listing }: ViewProps) {
  const state = useLoaded((signal) => call<ServerState>("/v1/state", { signal }), []);
  const version = useLoaded((signal) => call<{ version: string; python: string }>("/version", { signal }), []);
  const metrics = useLoaded((signal) => callText("/metrics", { signal }).then(parseMetrics), []);
  const jobs = useJobs();
  useReloading(listing, REFRESH_MS);
  useReloading(state, REFRESH_MS);
  useReloading(metrics, REFRESH_MS);
  useReloading(version, REFRESH_MS);
  return (
    <div class="page state">
      <header class="row spread">
        <h1>Status</h1>
        {version.data && (
          <p class="soft">
            Trivet {version.data.version}, Python {version.data.python}. Refreshes every five seconds.
          </p>
        )}
      </header>
      <Pending of={[state, metrics, version, jobs, listing].find(({ error }) => error) ?? state} />
      {state.data && <Findings findings={state.data.findings} />}
      {jobs.data && <Jobs jobs={jobs.data.jobs} />}
      {metrics.data && <Answers samples={metrics.data} />}
      {metrics.data && <Stages samples={metrics.data} />}
      {metrics.data && <Requests samples={metrics.data} />}
      {state.data && <Namespaces namespaces={namespaces} state={state.data} />}
    </div>
  );
}

function Findings({ findings }: Pick<ServerState, "findings">) {
  const failed = findings.filter(({ ok }) => !ok);
  return (
    <section class="panel">
      <h2>Checks</h2>
      {failed.length === 0 && <p class="good">All {findings.length} checks passed.</p>}
      {failed.map(({ name, detail }) => (
        <p key={name} class="bad" role="alert">
          Failed: {name}: {detail}
        </p>
      ))}
      <details>
        <summary>Details</summary>
        <table>
          <tbody>
            {findings.map(({ name, ok, detail }) => (
              <tr key={name}>
                <td class={ok ? "good" : "bad"}>{ok ? "passed" : "failed"}</td>
                <th scope="row">{name}</th>
                <td>{detail}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </section>
  );
}

function Namespaces({ namespaces, state }: { namespaces: Namespace[]; state: ServerState }) {
  const loaded = new Map(state.indexes.map((index) => [index.namespace, index]));
  const used = state.indexes.reduce((sum, { bytes }) => sum + bytes, 0);
  return (
    <section class="panel">
      <h2>Namespaces</h2>
      <p class="hint">
        Indexes in memory: {megabytes(used)} of at most {megabytes(state.max_index_bytes)}, in the process that answered.
      </p>
      <Scrolling label="Namespaces">
        <Table
          isHeaded
          columns={[
            "Name",
            ...numbers("Memories", "Entities", "Mentions", "Relations", "Index size", "To compact"),
            "Language",
            "Embedder",
            "Profile",
          ]}
          rows={namespaces.map(({ name, memories, entities, mentions, relations, settings }) => ({
            key: name,
            cells: [
              <a href={href(name, "memories")}>{name}</a>,
              ...[memories, entities, mentions, relations].map(count),
              loaded.has(name) ? megabytes(loaded.get(name)!.bytes) : "not loaded",
              count(state.unpacked[name] ?? 0),
              settings.language,
              settings.embedder,
              settings.profile ?? "default",
            ],
          }))}
        />
      </Scrolling>
    </section>
  );
}

function Answers({ samples }: { samples: Samples }) {
  const searches = timings(samples, "trivet_stage_seconds", ({ stage }) => stage ?? "").find(
    ({ label }) => label === "total",
  );
  const degraded = total(samples, "trivet_degraded_total");
  const hits = total(samples, "trivet_embedding_cache_total", { outcome: "hit" });
  const misses = total(samples, "trivet_embedding_cache_total", { outcome: "miss" });
  return (
    <section class="panel">
      <h2>Searches since startup</h2>
      <dl class="figures">
        <Figure name="Searches and packs" value={count(searches?.count ?? 0)} />
        <Figure name="Mean latency" value={searches ? milliseconds(searches.meanMs) : "–"} />
        <Figure name="Missing legs or rescorer" value={count(degraded)} />
        <Figure name="Embedding cache hits" value={hits + misses ? percent(hits / (hits + misses)) : "–"} />
      </dl>
    </section>
  );
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="number">{value}</dd>
    </div>
  );
}

function Stages({ samples }: { samples: Samples }) {
  const stages = timings(samples, "trivet_stage_seconds", ({ stage }) => stage ?? "");
  const slowest = Math.max(...stages.map(({ meanMs }) => meanMs));
  const bar = ({ meanMs }: Timing): ComponentChildren => (
    <div class="stage-bar" aria-hidden="true">
      <span style={{ width: `${(100 * meanMs) / slowest}%` }} />
    </div>
  );
  if (stages.length === 0) return null;
  return <Timings title="Latency by stage" column="Stage" timings={stages} name={({ label }) => label} beside={bar} />;
}

function Requests({ samples }: { samples: Samples }) {
  const requests = timings(samples, "trivet_http_request_seconds", ({ method, route, status }) =>
    [method, route, status].join(" "),
  ).sort((a, b) => b.count - a.count);
  const name = ({ label }: Timing): ComponentChildren => <span class="mono">{label}</span>;
  return <Timings title="Requests" column="Request and status" timings={requests} name={name} />;
}

/** A quantile as known from a histogram: the upper bound of its bucket. */
const atMost = (ms: number): string => (Number.isFinite(ms) ? `≤ ${count(ms)} ms` : "> 30,000 ms");

interface TimingsProps {
  title: string;
  column: string;
  timings: Timing[];
  name: (timing: Timing) => ComponentChildren;
  beside?: (timing: Timing) => ComponentChildren;
}

function Timings({ title, column, timings, name, beside }: TimingsProps) {
  return (
    <section class="panel">
      <h2>{title}</h2>
      <Scrolling label={title}>
        <Table
          isHeaded
          columns={[column, ...numbers("Count", "Mean", "Median", "p95"), ""]}
          rows={timings.map((one) => ({
            key: one.label,
            cells: [name(one), count(one.count), milliseconds(one.meanMs), atMost(one.p50Ms), atMost(one.p95Ms), beside?.(one)],
          }))}
        />
      </Scrolling>
    </section>
  );
}
