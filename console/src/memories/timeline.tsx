// Memories by month, or by year if there are many months, as bars that link to their days. Counted from the memories
// themselves, so only if they are few enough to be read at once.

import { useLayoutEffect, useRef } from "preact/hooks";

import { count, counted } from "../format";
import { useLoaded } from "../loading";
import { href } from "../route";
import { wholeNamespace } from "./store";

const MOST = 5_000;
const MOST_MONTHS = 60;
const MOST_YEARS = 200;
const MONTH = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric", timeZone: "UTC" });
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

interface Span {
  from: string;
  to: string;
  title: string;
  label: string;
  year: string;
  n: number;
}

const dayOf = (date: Date): string => date.toISOString().slice(0, 10);

/** Every month or year from the first to the last, including empty ones. */
function spans(times: string[], isYears: boolean): Span[] {
  const sorted = [...times].sort();
  const key = (time: string): string => time.slice(0, isYears ? 4 : 7);
  const counts = new Map<string, number>();
  for (const time of sorted) counts.set(key(time), (counts.get(key(time)) ?? 0) + 1);
  const all: Span[] = [];
  const last = sorted.at(-1)?.slice(0, 7) ?? "";
  const date = new Date(`${sorted[0]?.slice(0, isYears ? 4 : 7)}${isYears ? "-01" : ""}-01T00:00:00Z`);
  while (last && dayOf(date).slice(0, 7) <= last && all.length <= MOST_YEARS) {
    const from = dayOf(date);
    const year = from.slice(0, 4);
    const title = isYears ? year : MONTH.format(date);
    const label = isYears ? year : MONTHS[date.getUTCMonth()]!;
    date.setUTCMonth(date.getUTCMonth() + (isYears ? 12 : 1));
    const to = dayOf(new Date(date.getTime() - 1));
    all.push({ from, to, title, label, year: isYears ? "" : year, n: counts.get(key(from)) ?? 0 });
  }
  return all;
}

interface Props {
  namespace: string;
  query: URLSearchParams;
  /** Incremented by changes after which it is read again. */
  changes: number;
}

export function Timeline({ namespace, query, changes }: Props) {
  const { data } = useLoaded((signal) => wholeNamespace(namespace, MOST, signal), [namespace, changes]);
  const times = (data ?? []).map(({ created_at }) => created_at);
  const months = spans(times, false);
  const isYears = months.length > MOST_MONTHS;
  const all = isYears ? spans(times, true) : months;
  const bars = useRef<HTMLOListElement>(null);
  // Scrolled to the bar of the filter, or to the newest.
  useLayoutEffect(() => {
    const list = bars.current;
    if (!list) return;
    const chosen = list.querySelector<HTMLElement>("li:has([aria-current])");
    list.scrollLeft = chosen ? chosen.offsetLeft - list.clientWidth / 2 : list.scrollWidth;
  }, [all.length]);
  if (all.length < 2 || all.length > MOST_YEARS) return null;
  const most = Math.max(...all.map(({ n }) => n));
  const title = `All ${counted(times.length, "memory", "memories")} by ${isYears ? "year" : "month"}`;
  return (
    <nav class="timeline" aria-labelledby="timeline-title">
      <p class="hint" id="timeline-title">
        {title}
      </p>
      <ol ref={bars}>
        {all.map((span, i) => (
          <li key={span.from}>
            <Bar namespace={namespace} query={query} span={span} most={most} />
            <span class="timeline-year" aria-hidden="true">
              {span.year !== all[i - 1]?.year && span.year}
            </span>
          </li>
        ))}
      </ol>
    </nav>
  );
}

interface BarProps {
  namespace: string;
  query: URLSearchParams;
  span: Span;
  most: number;
}

function Bar({ namespace, query, span: { from, to, title, label, n }, most }: BarProps) {
  return (
    <a
      href={href(namespace, "memories", "", { ...Object.fromEntries(query), from, to })}
      aria-current={query.get("from") === from && query.get("to") === to ? "true" : undefined}
      title={`${title}: ${count(n)}`}
    >
      <span class="timeline-room">
        <span class="timeline-bar" style={{ height: `${n ? Math.max(2, (44 * n) / most) : 0}px` }} />
      </span>
      <span aria-hidden="true">{label}</span>
      <span class="visually-hidden">
        {title}: {count(n)}
      </span>
    </a>
  );
}
