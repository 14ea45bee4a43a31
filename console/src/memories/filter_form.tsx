import { go, href } from "../route";

const FIELDS = [
  ["words", "Search", "search"],
  ["from", "From", "date"],
  ["to", "To", "date"],
  ["speaker", "Speaker", "text"],
  ["tags", "Tags", "text"],
  ["in_session", "Session", "text"],
  ["in_document", "Document", "text"],
  ["kind", "Kind", "select"],
] as const;

/** Words to search for, and filters; all of them go into the address. */
export function FilterForm({ namespace, query }: { namespace: string; query: URLSearchParams }) {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const given = [...form].filter(([, value]) => value !== "") as [string, string][];
    go(href(namespace, "memories", "", Object.fromEntries(given)));
  };
  return (
    <form class="filter-form" role="search" onSubmit={submit}>
      {FIELDS.map(([name, title, type]) => (
        <label key={name} class={`field-${name}`}>
          <span>{title}</span>
          {type === "select" ? (
            <KindSelect value={query.get(name) ?? ""} />
          ) : (
            <input type={type as "text"} name={name} defaultValue={query.get(name) ?? ""} />
          )}
        </label>
      ))}
      <p class="row field-send">
        <button type="submit">Apply</button>
        {query.size > 0 && <a href={href(namespace, "memories")}>Clear</a>}
      </p>
    </form>
  );
}

function KindSelect({ value }: { value: string }) {
  return (
    <select name="kind" defaultValue={value}>
      <option value="">Any</option>
      <option>memory</option>
      <option>message</option>
      <option>chunk</option>
    </select>
  );
}
