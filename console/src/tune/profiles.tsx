// Profiles, their versions with gate reports, and which one is live or runs in the shadow.

import { useState } from "preact/hooks";

import { INTENTS, type Intent, LEGS, LEG_NAMES, type Weights, call } from "../api";
import { INTENT_NAMES } from "../ask/verdict";
import { count, counted, day } from "../format";
import { useLoaded } from "../loading";
import { Failure } from "../ui/failure";
import { Pending } from "../ui/pending";
import { Table, numbers } from "../ui/table";
import { attempt, notify } from "../ui/toasts";
import { Interval, signed } from "./interval";
import { Shadow } from "./shadow";

interface Recipe {
  weights: Weights;
  rrf_k: number;
  fan_out: number;
}

interface PairedComparison {
  n: number;
  candidate: number;
  baseline: number;
  difference: number;
  low: number;
  high: number;
  p: number;
  wins: number;
  ties: number;
  losses: number;
}

interface GateReport {
  passed: boolean;
  candidate: string;
  baseline: string;
  measure: string;
  overall: PairedComparison;
  intents: Partial<Record<Intent, PairedComparison>>;
  reasons: string[];
}

interface Version {
  version: number;
  origin: string;
  note: string;
  created_at: string;
  live: boolean;
  gate: boolean | null;
}

interface Stored {
  profile: { version: number; fixed: Recipe; per_intent: Record<Intent, Recipe>; rescore: boolean; hops: number };
  report: GateReport | null;
}

export interface ProfileInfo {
  name: string;
  live: number | null;
  shown: Stored | null;
  versions: Version[];
  history: { version: number; by: string; at: string }[];
}

export function Profiles() {
  const list = useLoaded((signal) => call<{ profiles: { name: string }[] }>("/v1/profiles", { signal }), []);
  const [chosen, setChosen] = useState<string>();
  const name = chosen ?? list.data?.profiles[0]?.name;
  return (
    <section class="panel">
      <div class="row spread">
        <h2>Profiles</h2>
        <label class="row">
          <span>Profile</span>
          <select value={name} onChange={(event) => setChosen(event.currentTarget.value)}>
            {list.data?.profiles.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      {list.error && <Failure error={list.error} onRetry={list.reload} />}
      {name && <ProfileCard key={name} name={name} />}
    </section>
  );
}

function ProfileCard({ name }: { name: string }) {
  const [version, setVersion] = useState<number>();
  const path = `/v1/profiles/${encodeURIComponent(name)}`;
  const loaded = useLoaded((signal) => call<ProfileInfo>(path, { query: { version }, signal }), [path, version]);
  const change = (what: string, body: unknown, done: string): Promise<void> =>
    attempt(async () => {
      await call(`${path}/${what}`, { method: "POST", body });
      notify(done);
      loaded.reload();
    });
  const info = loaded.data;
  return (
    <>
      <Pending of={loaded} />
      {info && (
        <>
          <Versions
            info={info}
            onShow={setVersion}
            onPromote={(one) => void change("promote", { version: one }, `${name}@${one} is now live`)}
            onRollback={() => void change("rollback", undefined, "Rolled back")}
          />
          {info.shown && <Recipes stored={info.shown} />}
          {info.shown?.report && <Report report={info.shown.report} />}
          <Shadow name={name} versions={info.versions.map(({ version }) => version)} />
        </>
      )}
    </>
  );
}

interface VersionsProps {
  info: ProfileInfo;
  onShow: (version: number) => void;
  onPromote: (version: number) => void;
  onRollback: () => void;
}

/** The version to which a rollback leads, if any was live before. Each earlier rollback has undone a promotion. */
function former({ history }: ProfileInfo): number | undefined {
  let undone = 1;
  return history.find(({ by }) => (by === "rollback" ? ++undone : undone--) === 0)?.version;
}

function Versions({ info, onShow, onPromote, onRollback }: VersionsProps) {
  const before = former(info);
  return (
    <>
      <Table
        isHeaded
        columns={["Version", "Origin", "Gate", "Created", { title: "Actions", isUnseen: true }]}
        rows={info.versions.map(({ version, origin, note, gate, created_at, live }) => ({
          key: version,
          cells: [
            [`${info.name}@${version} `, live && <span class="chip">live</span>],
            [origin, note].filter(Boolean).join(": "),
            gate === null ? "not measured" : gate ? "passed" : "failed",
            <span class="soft">{day(created_at)}</span>,
            <span class="row">
              <button type="button" aria-pressed={version === info.shown?.profile.version} onClick={() => onShow(version)}>
                Show
              </button>
              {!live && (
                <button type="button" onClick={() => onPromote(version)}>
                  Promote
                </button>
              )}
            </span>,
          ],
        }))}
      />
      {before !== undefined && (
        <p class="row">
          <button type="button" onClick={onRollback}>
            Roll back
          </button>
          <span class="hint">
            to {info.name}@{before}
          </span>
        </p>
      )}
    </>
  );
}

function Recipes({ stored: { profile } }: { stored: Stored }) {
  const rows: [string, Recipe][] = [
    ["Fixed", profile.fixed],
    ...INTENTS.map((intent): [string, Recipe] => [INTENT_NAMES[intent], profile.per_intent[intent]]),
  ];
  return (
    <details>
      <summary>
        Weights of version {profile.version}, by intent; rescorer {profile.rescore ? "on" : "off"},{" "}
        {counted(profile.hops, "hop", "hops")}
      </summary>
      <Table
        isHeaded
        columns={["Intent", ...numbers(...LEGS.map((leg) => LEG_NAMES[leg]), "rrf_k", "Fan-out")]}
        rows={rows.map(([title, { weights, rrf_k, fan_out }]) => ({
          key: title,
          cells: [title, ...LEGS.map((leg) => weights[leg]), rrf_k, fan_out],
        }))}
      />
    </details>
  );
}

/** What the gate measured: the version against its baseline, over all queries and by intent. */
function Report({ report }: { report: GateReport }) {
  const rows: [string, PairedComparison][] = [
    ["All", report.overall],
    ...INTENTS.flatMap((intent): [string, PairedComparison][] =>
      report.intents[intent] ? [[INTENT_NAMES[intent], report.intents[intent]]] : [],
    ),
  ];
  const reach = Math.max(...rows.flatMap(([, { low, high }]) => [Math.abs(low), Math.abs(high)]));
  return (
    <details open>
      <summary>
        Gate {report.passed ? "passed" : "failed"}: {report.candidate} against {report.baseline}, {report.measure}
      </summary>
      {report.reasons.map((reason) => (
        <p key={reason} class="bad">
          {reason}
        </p>
      ))}
      <Table
        isHeaded
        columns={["Intent", ...numbers("Queries", "Baseline", "Candidate", "Difference (95% CI)", "Wins / ties / losses"), ""]}
        rows={rows.map(([title, one]) => ({
          key: title,
          cells: [
            title,
            count(one.n),
            one.baseline.toFixed(3),
            one.candidate.toFixed(3),
            `${signed(one.difference)} [${signed(one.low)}, ${signed(one.high)}]`,
            [one.wins, one.ties, one.losses].map(count).join(" / "),
            <Interval {...one} reach={reach} />,
          ],
        }))}
      />
    </details>
  );
}
