// The list's filters in the address, so that a filtered list can be linked to.

import type { Filters, Kind } from "../api";
import { justBefore, plusDays } from "../format";

/** Tags as text of a field: separated by commas, with quotes around those that contain one. */
export const tagsField = (tags: string[]): string =>
  tags.map((tag) => (/[,"]|^\s|\s$/.test(tag) ? `"${tag.replaceAll('"', '""')}"` : tag)).join(", ");

export const tagsOf = (text: string): string[] =>
  (text.match(/\s*"(?:[^"]|"")*"\s*(?=,|$)|[^,]+/g) ?? [])
    .map((tag) => tag.trim().replace(/^"(.*)"$/s, (_, quoted: string) => quoted.replaceAll('""', '"')))
    .filter(Boolean);

/** "From" and "to" are inclusive days. */
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
    ...(from ? { created_after: justBefore(from) } : {}),
    ...(to ? { created_before: `${plusDays(to, 1)}T00:00:00Z` } : {}),
  };
}
