// What the list's address asks for, so that a filtered list can be linked to.

import type { Filters, Kind } from "../api";

const DAY_MS = 86_400_000;

/** The day so many days after another; what is no day is left to the server to refuse. */
function plusDays(day: string, n: number): string {
  const time = Date.parse(`${day}T00:00:00Z`);
  return Number.isNaN(time) ? day : new Date(time + n * DAY_MS).toISOString().slice(0, 10);
}

/** Tags as a field has them: separated by commas, and in quotes what could be taken for several. */
export const tagsField = (tags: string[]): string =>
  tags.map((tag) => (/[,"]/.test(tag) ? `"${tag.replaceAll('"', '""')}"` : tag)).join(", ");

export const tagsOf = (text: string): string[] =>
  (text.match(/\s*"(?:[^"]|"")*"\s*(?=,|$)|[^,]+/g) ?? [])
    .map((tag) => tag.trim().replace(/^"(.*)"$/s, (_, quoted: string) => quoted.replaceAll('""', '"')))
    .filter(Boolean);

/** The API's bounds are exclusive, "from" and "to" name days that are meant to be in. */
export function filtersOf(query: URLSearchParams): Filters {
  const [speaker, tags, kind, session, document, from, to] = [
    "speaker",
    "tags",
    "kind",
    "in_session",
    "in_document",
    "from",
    "to",
  ].map((name) => query.get(name) || undefined);
  return {
    ...(speaker ? { speaker: [speaker] } : {}),
    ...(tags ? { tags_all: tagsOf(tags) } : {}),
    ...(kind ? { kind: [kind as Kind] } : {}),
    ...(session ? { session_id: [session] } : {}),
    ...(document ? { document_id: [document] } : {}),
    ...(from ? { created_after: `${plusDays(from, -1)}T23:59:59.999999Z` } : {}),
    ...(to ? { created_before: `${plusDays(to, 1)}T00:00:00Z` } : {}),
  };
}
