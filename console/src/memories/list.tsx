import { type StateUpdater, useEffect, useState } from "preact/hooks";

import { type Result, call, within } from "../api";
import { count, counted } from "../format";
import { type Pages, usePages } from "../pages";
import { href } from "../route";
import { NoneYet } from "../ui/none_yet";
import { Pending } from "../ui/pending";
import { attempt } from "../ui/toasts";
import { FilterForm } from "./filter_form";
import { MemoryRow, type Row } from "./memory_row";
import { MoreButton } from "./more_button";
import { filtersOf } from "./query";
import { listMemories, removeWithUndo } from "./store";
import { Timeline } from "./timeline";

const BEST = 100;
const MOST_AGAIN = 1_000;

/** How much of the list was loaded, and the scroll position, kept in the history entry so that Back restores them. */
interface Place {
  rows: number;
  top: number;
}

interface Props {
  namespace: string;
  query: URLSearchParams;
  onChanged: () => void;
}

/** Filters and months, and the memories that meet the filters. */
export function MemoryList({ namespace, query, onChanged }: Props) {
  const [changes, setChanges] = useState(0);
  const changed = (): void => {
    setChanges((n) => n + 1);
    onChanged();
  };
  const filters = query.toString();
  return (
    <div class="page memories">
      <header class="row spread">
        <h1>Memories</h1>
        <nav class="row" aria-label="Memories">
          <a class="button" href={href(namespace, "memories", "", { page: "new" })}>
            Add
          </a>
          <a href={href(namespace, "memories", "", { page: "documents" })}>Documents</a>
          <a href={href(namespace, "memories", "", { page: "forget" })}>Forget…</a>
        </nav>
      </header>
      <FilterForm key={filters} namespace={namespace} query={query} />
      <Timeline namespace={namespace} query={query} changes={changes} />
      <Rows key={filters} namespace={namespace} query={query} onChanged={changed} />
    </div>
  );
}

/** All memories page by page, or the best search results if there are words. */
function Rows({ namespace, query, onChanged }: Props) {
  const words = query.get("words")?.trim() ?? "";
  const filters = filtersOf(query);
  const [place] = useState(() => history.state as Place | null);
  const pages = usePages<Row>(async (cursor, signal) => {
    if (words) {
      const body = { query: words, top_k: BEST, filters };
      const { results } = await call<{ results: Result[] }>(within(namespace, "search"), { method: "POST", body, signal });
      return { rows: results, next: null };
    }
    const limit = cursor || !place ? undefined : Math.min(place.rows, MOST_AGAIN);
    return listMemories(namespace, filters, cursor, signal, limit);
  });
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const choose = (id: string, isChosen: boolean): void => {
    const others = [...chosen].filter((one) => one !== id);
    setChosen(new Set(isChosen ? [...others, id] : others));
  };
  const { rows } = pages;
  useEffect(() => {
    if (place && rows.length > 0) scrollTo(0, place.top);
  }, [rows.length > 0]);
  const leave = (): void => history.replaceState({ rows: rows.length, top: scrollY } satisfies Place, "");
  return (
    <>
      {pages.isEmpty && query.size === 0 && <NoneYet namespace={namespace} />}
      <div class="list-head row spread">
        <p class="hint" role="status">
          {summary(pages, words, query.size === 0)}
        </p>
        <Choice namespace={namespace} pages={pages} chosen={chosen} setChosen={setChosen} onChanged={onChanged} />
      </div>
      <ul class="memory-list" aria-label="Memories" aria-busy={pages.isLoading} ref={pages.list} onClick={leave}>
        {rows.map((memory) => (
          <MemoryRow
            key={memory.id}
            namespace={namespace}
            memory={memory}
            isChosen={chosen.has(memory.id)}
            onChoose={(isChosen) => choose(memory.id, isChosen)}
          />
        ))}
      </ul>
      <Pending of={pages} />
      <MoreButton pages={pages} />
    </>
  );
}

/** How many memories the list shows, and in what order. For an empty namespace, see `NoneYet`. */
function summary({ rows, isEmpty, hasMore }: Pages<Row>, words: string, isWhole: boolean): string {
  if (rows.length === 0) return isEmpty && !isWhole ? "No memories found." : "";
  if (words) {
    const shown = rows.length < BEST ? `${count(rows.length)} found` : `Top ${BEST}`;
    return `${shown}, best first. Superseded and expired memories are excluded.`;
  }
  return `${hasMore ? `First ${count(rows.length)}` : `All ${count(rows.length)}`}, in the order stored.`;
}

interface ChoiceProps {
  namespace: string;
  pages: Pages<Row>;
  chosen: ReadonlySet<string>;
  setChosen: (chosen: StateUpdater<ReadonlySet<string>>) => void;
  onChanged: () => void;
}

/** Selects all rows, and deletes the selected ones. */
function Choice({ namespace, pages, chosen, setChosen, onChanged }: ChoiceProps) {
  const [isBusy, setIsBusy] = useState(false);
  const { rows, setGone } = pages;
  if (rows.length === 0) return null;
  const remove = async (): Promise<void> => {
    setIsBusy(true);
    await attempt(() =>
      removeWithUndo(namespace, [...chosen], (ids, areGone) => {
        setGone(ids, areGone);
        setChosen((before) => new Set([...before].filter((id) => !ids.has(id))));
        onChanged();
      }),
    );
    setIsBusy(false);
  };
  const isAll = chosen.size === rows.length;
  return (
    <div class="row">
      {chosen.size > 0 && (
        <button type="button" class="danger" disabled={isBusy} onClick={() => void remove()}>
          Delete {counted(chosen.size, "memory", "memories")}
        </button>
      )}
      <button type="button" onClick={() => setChosen(new Set(isAll ? [] : rows.map(({ id }) => id)))}>
        {isAll ? "Clear selection" : "Select all shown"}
      </button>
    </div>
  );
}
