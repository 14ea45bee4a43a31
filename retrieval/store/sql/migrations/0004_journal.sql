-- What a namespace remembers of its use: what callers said of rankings, what was asked (where its owner wants
-- that), how a candidate profile would have answered. Rows are numbered within their namespace, so that what is
-- too much is found by its number: nothing is counted. No foreign keys to namespace, see 0001.
create table journal (
    ns           integer primary key,
    feedback     bigint not null default 0,      -- numbers given out
    queries      bigint not null default 0,
    shadow_runs  bigint not null default 0,
    key          bytea not null default sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'utf8'))
) with (fillfactor = 50);                        -- of the keyed hashes; updates stay in their page

create table feedback (
    ns               integer not null,
    number           bigint not null,
    id               text not null,
    at               timestamptz not null default now(),
    query            text not null,
    shown            text[] not null,            -- best first
    relevant         text[] not null,
    irrelevant       text[] not null,
    clicked          text[] not null,
    ratings          jsonb not null,             -- by memory, in [0, 1]
    intent           text,
    profile          text,
    search_id        text,
    filters          jsonb,                      -- null: not known
    as_of            timestamptz,
    query_timestamp  timestamptz,
    fingerprint      bytea not null,             -- of what the caller sent
    primary key (ns, number),
    unique (ns, id)
);
create index feedback_search on feedback (ns, search_id) where search_id is not null;

create table query_log (
    ns               integer not null,
    number           bigint not null,
    id               text not null,              -- the search's
    at               timestamptz not null,
    query            text,                       -- after redaction; null: withheld
    query_chars      integer not null,
    query_hash       text,
    mode             text not null,
    profile          text not null,
    intent           text,
    ids              text[],                     -- best first; null: not kept
    scores           real[],
    filters          jsonb,                      -- null: withheld
    as_of            timestamptz,
    query_timestamp  timestamptz,
    total_ms         real not null,
    primary key (ns, number),
    unique (ns, id)
);

create table shadow_run (
    ns             integer not null,
    number         bigint not null,
    id             text not null,                -- the search's
    at             timestamptz not null default now(),
    live           text not null,                -- label of the profile that answered
    candidate      text not null,                -- of the one that was tried beside it
    live_ids       text[] not null,              -- best first
    candidate_ids  text[] not null,
    overlap        real not null,
    rbo            real not null,
    tau            real,                         -- null: fewer than two ids in common
    live_ms        real not null,
    candidate_ms   real not null,
    primary key (ns, number)
);
create index shadow_run_profiles on shadow_run (live, candidate);
