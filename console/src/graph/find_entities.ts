import { type EntitySummary, call, within } from "../api";

const MOST = 1_000;
const MOST_PAGES = 10;

interface Options {
  limit: number;
  /** Also words, phrases and dates, not names alone. */
  words?: boolean;
  cursor?: string;
  signal?: AbortSignal;
}

interface Found {
  entities: EntitySummary[];
  next_cursor: string | null;
}

function read(namespace: string, part: string, { signal, ...query }: Options): Promise<Found> {
  return call(within(namespace, "entities"), { query: { q: part, ...query }, ...(signal ? { signal } : {}) });
}

/** Entities with a part of their name, the most mentioned first. */
export async function findEntities(namespace: string, part: string, options: Options): Promise<EntitySummary[]> {
  return (await read(namespace, part, options)).entities;
}

/** The entity of a name among all that have it as a part of theirs, or thousands of them; else the first of those. */
export async function entityNamed(namespace: string, name: string): Promise<EntitySummary | undefined> {
  let first: EntitySummary | undefined;
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES && (page === 0 || cursor); page++) {
    const options = { words: true, limit: MOST, ...(cursor ? { cursor } : {}) };
    const { entities, next_cursor } = await read(namespace, name, options);
    const same = entities.filter((entity) => entity.name.toLowerCase() === name.toLowerCase());
    if (same.length > 0) return same.find((entity) => entity.name === name) ?? same[0];
    first ??= entities[0];
    cursor = next_cursor ?? undefined;
  }
  return first;
}
