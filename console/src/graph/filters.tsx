import { justBefore, midnight } from "../format";

export interface GraphFilters {
  hidden: ReadonlySet<string>;
  relationsOnly: boolean;
  from: string;
  before: string;
  asOf: string;
  /** Incremented by changes that need a request to the server. */
  request: number;
}

export const NO_FILTERS: GraphFilters = {
  hidden: new Set(),
  relationsOnly: false,
  from: "",
  before: "",
  asOf: "",
  request: 0,
};

/** Which memories count, as parameters of a request. */
export interface MemoryQuery {
  filters: string | undefined;
  as_of: string | undefined;
}

export function requestFilters({ from, before, asOf }: GraphFilters): MemoryQuery {
  const filters = { created_after: from ? justBefore(from) : undefined, created_before: midnight(before) };
  return { filters: from || before ? JSON.stringify(filters) : undefined, as_of: midnight(asOf) };
}

interface Props {
  filters: GraphFilters;
  types: [type: string, n: number][];
  onChange: (filters: GraphFilters) => void;
}

export function Filters({ filters, types, onChange }: Props) {
  const toggle = (type: string): void => {
    const hidden = new Set(filters.hidden);
    if (!hidden.delete(type)) hidden.add(type);
    onChange({ ...filters, hidden });
  };
  const time = (name: "from" | "before" | "asOf", title: string) => (
    <label>
      <span>{title}</span>
      <input
        type="date"
        value={filters[name]}
        onChange={(event) =>
          onChange({ ...filters, [name]: event.currentTarget.value, request: filters.request + 1 })
        }
      />
    </label>
  );
  return (
    <details class="panel">
      <summary>Filters</summary>
      <div class="graph-filters">
        <fieldset>
          <legend>Types</legend>
          {types.map(([type, n]) => (
            <label key={type} class="check">
              <input type="checkbox" checked={!filters.hidden.has(type)} onChange={() => toggle(type)} />
              {type} ({n})
            </label>
          ))}
        </fieldset>
        <label class="check">
          <input
            type="checkbox"
            checked={filters.relationsOnly}
            onChange={(event) => onChange({ ...filters, relationsOnly: event.currentTarget.checked })}
          />
          Stated relations only
        </label>
        {time("from", "Memories from")}
        {time("before", "Memories before")}
        {time("asOf", "As of")}
      </div>
    </details>
  );
}
