import { type EntitySummary, call, within } from "../api";

interface Options {
  limit: number;
  /** Also words, phrases and dates, not names alone. */
  words?: boolean;
  signal?: AbortSignal;
}

/** Entities with a part of their name, the most mentioned first. */
export async function findEntities(namespace: string, part: string, options: Options): Promise<EntitySummary[]> {
  const { signal, ...query } = options;
  const path = within(namespace, "entities");
  const found = await call<{ entities: EntitySummary[] }>(path, { query: { q: part, ...query }, ...(signal ? { signal } : {}) });
  return found.entities;
}
