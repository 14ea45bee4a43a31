import type { EntitySummary } from "../api";
import { readPage } from "../pages";

const MOST = 1_000;
const MOST_PAGES = 10;

interface Options {
  limit: number;
  /** Also words, phrases and dates, not only names. */
  words?: boolean;
  signal: AbortSignal;
}

/** Entities by part of their name, the most mentioned first. */
export async function findEntities(
  namespace: string,
  part: string,
  { signal, ...query }: Options,
): Promise<EntitySummary[]> {
  return (await readPage<EntitySummary>(namespace, "entities", { q: part, ...query }, signal)).rows;
}

/** The entity with exactly this name, among all or thousands whose names contain it; else the first of those. */
export async function entityNamed(namespace: string, name: string): Promise<EntitySummary | undefined> {
  let first: EntitySummary | undefined;
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES && (page === 0 || cursor); page++) {
    const query = { q: name, words: true, limit: MOST, cursor };
    const { rows, next } = await readPage<EntitySummary>(namespace, "entities", query);
    const same = rows.filter((entity) => entity.name.toLowerCase() === name.toLowerCase());
    if (same.length > 0) return same.find((entity) => entity.name === name) ?? same[0];
    first ??= rows[0];
    cursor = next ?? undefined;
  }
  return first;
}
