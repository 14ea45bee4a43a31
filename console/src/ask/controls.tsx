import { useId } from "preact/hooks";

import { type Answer, type Filters, LEGS, LEG_NAMES, type Leg, type Settings, call } from "../api";
import { count, justBefore, midnight, percent, plusDays } from "../format";
import { useLoaded } from "../loading";
import type { Side } from "./ask";

interface Props {
  settings: Settings;
  answer: Answer | undefined;
  onChange: (settings: Settings) => void;
  comparing: Side | undefined;
  onSide: (side: Side) => void;
  onCompare: () => void;
  onEndComparison: () => void;
}

/** A copy without a setting, which leaves it to the profile. */
function changed<K extends keyof Settings>(settings: Settings, name: K, value: Settings[K] | undefined): Settings {
  const { [name]: _, ...others } = settings;
  return value === undefined ? others : { ...others, [name]: value };
}

export function Controls(props: Props) {
  const { settings, answer, onChange } = props;
  const set = <K extends keyof Settings>(name: K, value: Settings[K] | undefined): void =>
    onChange(changed(settings, name, value));
  const isUntouched = Object.keys(settings).length === 0;
  return (
    <details class="controls panel" open={matchMedia("(min-width: 900px)").matches}>
      <summary>
        <h2>Settings</h2>
      </summary>
      <div class="controls-body">
        <Sides {...props} />
        <ModeAndProfile settings={settings} set={set} />
        <WeightSliders settings={settings} answer={answer} set={set} />
        <Slider
          name="rrf_k"
          value={settings.rrf_k ?? (answer && Math.round(answer.explanation.rrf_k))}
          min={1}
          max={100}
          onInput={(value) => set("rrf_k", value)}
          hint="Higher values flatten the difference between ranks."
        />
        <Slider
          name="Hops"
          value={settings.max_hops ?? (answer && (answer.explanation.legs.graph?.hops ?? 2))}
          min={0}
          max={4}
          onInput={(value) => set("max_hops", value)}
          hint="How many steps to walk from the question's entities."
        />
        <Rescorer settings={settings} set={set} />
        <Slider
          name="Token budget"
          value={settings.max_tokens ?? 2048}
          min={128}
          max={8192}
          step={64}
          onInput={(value) => set("max_tokens", value)}
        />
        <FilterFields settings={settings} set={set} />
        <button type="button" onClick={() => onChange({})} disabled={isUntouched}>
          Reset all
        </button>
      </div>
    </details>
  );
}

function Sides({ comparing, onSide, onCompare, onEndComparison }: Props) {
  if (!comparing)
    return (
      <button type="button" onClick={onCompare}>
        Compare settings
      </button>
    );
  return (
    <fieldset class="sides">
      <legend>Editing</legend>
      <div class="row">
        {(["A", "B"] as const).map((side) => (
          <button key={side} type="button" aria-pressed={side === comparing} onClick={() => onSide(side)}>
            {side}
          </button>
        ))}
        <button type="button" class="link" onClick={onEndComparison}>
          Keep only {comparing}
        </button>
      </div>
    </fieldset>
  );
}

type Set = <K extends keyof Settings>(name: K, value: Settings[K] | undefined) => void;

const MODES = [
  ["adaptive", "Adaptive weights"],
  ["hybrid", "Fixed weights (hybrid)"],
  ["vector", "Vector only"],
  ["bm25", "BM25 only"],
  ["graph", "Graph only"],
] as const;

function ModeAndProfile({ settings, set }: { settings: Settings; set: Set }) {
  const { data } = useLoaded(
    (signal) => call<{ profiles: { name: string; live: number | null }[] }>("/v1/profiles", { signal }),
    [],
  );
  return (
    <div class="pair">
      <label>
        <span>Mode</span>
        <select
          value={settings.mode ?? "adaptive"}
          onChange={(event) => set("mode", event.currentTarget.value as NonNullable<Settings["mode"]>)}
        >
          {MODES.map(([mode, title]) => (
            <option key={mode} value={mode}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>Profile</span>
        <select value={settings.profile ?? ""} onChange={(event) => set("profile", event.currentTarget.value || undefined)}>
          <option value="">Namespace default</option>
          {data?.profiles.map(({ name, live }) => (
            <option key={name} value={name}>
              {live ? `${name}@${live}` : name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function WeightSliders({ settings, answer, set }: { settings: Settings; answer: Answer | undefined; set: Set }) {
  const isSingle = (LEGS as readonly string[]).includes(settings.mode ?? "");
  const isDisabled = isSingle || !(answer || settings.weights);
  const weights = settings.weights ?? {
    vector: answer?.weights.vector ?? 0,
    bm25: answer?.weights.bm25 ?? 0,
    graph: answer?.weights.graph ?? 0,
  };
  const total = LEGS.reduce((sum, leg) => sum + weights[leg], 0) || 1;
  const drag = (leg: Leg, value: number): void => set("weights", { ...weights, [leg]: value });
  return (
    <fieldset class="weights" disabled={isDisabled}>
      <legend>
        Weights{" "}
        {settings.weights ? (
          <button type="button" class="link" onClick={() => set("weights", undefined)}>
            Reset
          </button>
        ) : (
          !isDisabled && <span class="hint">({settings.mode === "hybrid" ? "fixed" : "learned"}; drag to change)</span>
        )}
      </legend>
      {LEGS.map((leg) => (
        <label key={leg} class={`weight leg-${leg}`}>
          <span>{LEG_NAMES[leg]}</span>
          <input
            type="range"
            min="0"
            max="1"
            step="0.01"
            value={weights[leg]}
            aria-label={LEG_NAMES[leg]}
            aria-valuetext={percent(weights[leg] / total)}
            onInput={(event) => drag(leg, Number(event.currentTarget.value))}
          />
          <span class="number">{answer && percent(weights[leg] / total)}</span>
        </label>
      ))}
    </fieldset>
  );
}

function Rescorer({ settings, set }: { settings: Settings; set: Set }) {
  const value = settings.rescore === undefined ? "" : String(settings.rescore);
  return (
    <label>
      <span>Rescorer</span>
      <select
        value={value}
        onChange={({ currentTarget: { value } }) => set("rescore", value === "" ? undefined : value === "true")}
      >
        <option value="">{settings.weights ? "Off with custom weights" : "Profile default"}</option>
        <option value="true">On</option>
        <option value="false">Off</option>
      </select>
    </label>
  );
}

interface SliderProps {
  name: string;
  /** Undefined while only the profile knows it, before the first answer. */
  value: number | undefined;
  min: number;
  max: number;
  step?: number;
  onInput: (value: number) => void;
  hint?: string;
}

function Slider({ name, value, min, max, step = 1, onInput, hint }: SliderProps) {
  const hintId = useId();
  return (
    <label class="slider">
      <span class="row spread">
        <span>{name}</span>
        <span class="number">{value !== undefined && count(value)}</span>
      </span>
      <input
        type="range"
        min={min}
        max={max}
        step={step}
        value={value ?? min}
        disabled={value === undefined}
        aria-label={name}
        aria-describedby={hint && hintId}
        onInput={(event) => onInput(Number(event.currentTarget.value))}
      />
      {hint && (
        <span class="hint" id={hintId}>
          {hint}
        </span>
      )}
    </label>
  );
}

function FilterFields({ settings, set }: { settings: Settings; set: Set }) {
  const filters = settings.filters ?? {};
  const put = <K extends keyof Filters>(name: K, value: Filters[K] | undefined): void => {
    const { [name]: _, ...others } = filters;
    const next = value === undefined ? others : { ...others, [name]: value };
    set("filters", Object.keys(next).length ? next : undefined);
  };
  const field = (title: string, type: "text" | "date", value: string | undefined, store: (value: string) => void) => (
    <label>
      <span>{title}</span>
      <input type={type as "text"} value={value ?? ""} onChange={(event) => store(event.currentTarget.value)} />
    </label>
  );
  const day = (title: string, time: string | null | undefined, store: (time: string | undefined) => void) =>
    field(title, "date", time?.slice(0, 10), (date) => store(midnight(date)));
  const from = filters.created_after ? plusDays(filters.created_after.slice(0, 10), 1) : undefined;
  const name = (title: string, names: string[] | undefined, store: (names: string[] | undefined) => void) =>
    field(title, "text", names?.[0], (one) => store(one ? [one] : undefined));
  return (
    <details class="filters">
      <summary>Filters and time</summary>
      <div class="controls-body">
        {name("Speaker", filters.speaker, (names) => put("speaker", names))}
        {name("Tag", filters.tags_all, (tags) => put("tags_all", tags))}
        {field("Created from", "date", from, (date) => put("created_after", date ? justBefore(date) : undefined))}
        {day("Created before", filters.created_before, (time) => put("created_before", time))}
        {day("As of", settings.as_of, (time) => set("as_of", time))}
        <label class="check">
          <input
            type="checkbox"
            checked={settings.include_superseded ?? false}
            onChange={(event) => set("include_superseded", event.currentTarget.checked || undefined)}
          />
          Include superseded memories
        </label>
      </div>
    </details>
  );
}
