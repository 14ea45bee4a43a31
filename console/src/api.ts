// The HTTP API as the console uses it. Names and meanings are those of /openapi.json.

export type Leg = "vector" | "bm25" | "graph";
export const LEGS: readonly Leg[] = ["vector", "bm25", "graph"];
export const LEG_NAMES: Record<Leg, string> = { vector: "Vector", bm25: "BM25", graph: "Graph" };

export const INTENTS = ["fact_lookup", "relationship", "preference", "open_ended"] as const;
export type Intent = (typeof INTENTS)[number];
export type Kind = "memory" | "message" | "chunk";

export interface Namespace {
  name: string;
  created_at: string;
  memories: number;
  entities: number;
  mentions: number;
  relations: number;
  settings: { language: string; embedder: string; profile: string | null };
}

export interface Memory {
  id: string;
  text: string;
  kind: Kind;
  title: string | null;
  speaker: string | null;
  session_id: string | null;
  position: number | null;
  document_id: string | null;
  created_at: string;
  expires_at: string | null;
  tags: string[];
  metadata: Record<string, unknown>;
  entities: { name: string; type?: string; aliases?: string[] }[];
  relations: { source: string; type: string; target: string }[];
  supersedes: string | string[] | null;
  superseded_by: string[];
}

export type MemoryInput = Partial<Omit<Memory, "superseded_by">> & { text: string };

export interface Filters {
  tags_all?: string[];
  tags_any?: string[];
  kind?: Kind[];
  session_id?: string[];
  document_id?: string[];
  speaker?: string[];
  created_after?: string | null;
  created_before?: string | null;
}

export type Weights = Record<Leg, number>;

/** Options of a search besides its question; the profile decides those left out. */
export interface Settings {
  mode?: "adaptive" | "hybrid" | Leg;
  profile?: string;
  weights?: Weights;
  rrf_k?: number;
  max_hops?: number;
  rescore?: boolean;
  max_tokens?: number;
  top_k?: number;
  min_relevance?: number;
  filters?: Filters;
  as_of?: string;
  include_superseded?: boolean;
}

export interface LegEvidence {
  rank: number;
  score: number;
  duplicate?: string | null;
  terms?: string[] | null;
  path?: string[] | null;
  why?: string | null;
}

export interface Result {
  id: string;
  text: string;
  snippet: string;
  title: string | null;
  kind: Kind;
  speaker: string | null;
  session_id: string | null;
  document_id: string | null;
  created_at: string;
  tags: string[];
  score: number;
  relevance: number | null;
  fused: { rank: number; score: number };
  legs: Partial<Record<Leg, LegEvidence>>;
  duplicates?: string[];
}

export interface LegExplanation {
  hits: number;
  terms?: Record<string, number>;
  entities?: { name: string; how: string; score: number }[];
  plan?: string;
  hops?: number;
}

export interface Answer {
  context: string;
  tokens_used: number;
  max_tokens: number;
  items: { id: string; tokens: number; citation: string; needed_by?: string }[];
  dropped: { id: string; reason: string }[];
  reason?: string | null;
  results: Result[];
  intent: { label: Intent; probabilities: Record<Intent, number> } | null;
  weights: Weights;
  profile: string;
  degraded: { leg: string; reason: string }[];
  timings_ms: Record<string, number>;
  search_id: string;
  explanation: {
    query: string;
    weights: string;
    rescoring: string | null;
    time: string | null;
    rrf_k: number;
    fan_out: number;
    legs: Partial<Record<Leg, LegExplanation>>;
  };
}

export interface EntitySummary {
  id: string;
  name: string;
  type: string;
  mentions: number;
}

export interface EntityEdge {
  source: string;
  target: string;
  type: string | null;
  memories: number;
  evidence: string[];
}

export interface Neighborhood {
  entity: EntitySummary;
  neighbors: (EntitySummary & { hops: number; strength: number })[];
  edges: EntityEdge[];
  truncated: boolean;
}

export interface EntityPage extends EntitySummary {
  aliases: string[];
  first_mentioned_at: string | null;
  last_mentioned_at: string | null;
  profile: string[];
  memories: { id: string; snippet: string; kind: Kind; speaker: string | null; created_at: string }[];
  next_cursor: string | null;
  relations: {
    source: { id: string; name: string };
    type: string;
    target: { id: string; name: string };
    memories: number;
    evidence: string[];
  }[];
  met_with: (Omit<EntitySummary, "mentions"> & { memories: number; evidence: string[] })[];
}

/** The server refused a request; the message is its own. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const KEY = "trivet.key";
let onRefused: () => void = () => undefined;
const refused: (() => void)[] = [];

/** Called whenever the server needs a key, or another one; the refused request waits for it and is sent again. */
export function whenRefused(handler: () => void): void {
  onRefused = handler;
}

/** Whether this tab has a key, so that other programs need one, too. */
export const hasKey = (): boolean => sessionStorage.getItem(KEY) !== null;

export function rememberKey(key: string): void {
  sessionStorage.setItem(KEY, key);
  for (const sendAgain of refused.splice(0)) sendAgain();
}

function newKey(): Promise<void> {
  return new Promise((resolve) => {
    refused.push(resolve);
    onRefused();
  });
}

/** A header with any characters: `fetch` takes a string whose characters are the bytes. */
const bearer = (key: string): string => `Bearer ${String.fromCharCode(...new TextEncoder().encode(key))}`;

export interface Call {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  signal?: AbortSignal | undefined;
  /** A key to try instead of the stored one; if it is refused, the call fails. */
  key?: string;
}

/** A message for the browser's TypeError, when an answer was missing or incomplete. */
function unreached(error: Error): never {
  throw error instanceof TypeError ? new Error("The server cannot be reached.") : error;
}

async function send(path: string, options: Call = {}): Promise<Response> {
  const { method = "GET", query = {}, body, signal, key = sessionStorage.getItem(KEY) } = options;
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
  const headers: Record<string, string> = {};
  if (key) headers["authorization"] = bearer(key);
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(url, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
  }).catch(unreached);
  if (response.ok) return response;
  if (response.status === 401 && options.key === undefined) {
    const isNewest = key === sessionStorage.getItem(KEY);
    if (isNewest) await newKey();
    return send(path, options);
  }
  const problem = await response.json().catch(() => null);
  throw new ApiError(response.status, problem?.detail ?? response.statusText);
}

/** Call the API and read its JSON. Throws an ApiError for a refusal, another error if the server cannot be reached. */
export async function call<T>(path: string, options?: Call): Promise<T> {
  const response = await send(path, options);
  return response.status === 204 ? (undefined as T) : response.json().catch(unreached);
}

/** The same for answers that are not JSON. */
export async function callText(path: string, options?: Call): Promise<string> {
  return (await send(path, options)).text().catch(unreached);
}

/** A path within a namespace; every part is escaped. */
export function within(namespace: string, ...parts: string[]): string {
  return ["/v1/namespaces", namespace, ...parts].map((part, i) => (i ? encodeURIComponent(part) : part)).join("/");
}
