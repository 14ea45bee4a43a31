-- The whole first schema. Every key starts with the namespace's number `ns`, so that the tables
-- can be distributed by it. `doc` is a memory's ordinal within its namespace: dense, never used
-- twice, and new whenever the indexed content changes, so that postings need not be rewritten.

create extension if not exists vector;

create table namespace (
    ns          integer generated always as identity primary key,
    name        text not null unique,
    settings    jsonb not null default '{}',
    next_doc    integer not null default 0,
    created_at  timestamptz not null default now()
);

-- No foreign keys to namespace: a writer holds its row `for key share` for the whole transaction,
-- which keeps deletion out at the cost of one row lock instead of one check per row.
create table memory (
    ns             integer not null,
    doc            integer not null,
    id             text not null,
    kind           text not null,
    text           text not null,
    title          text,
    speaker        text,
    session_id     text,
    position       integer,
    document_id    text,
    created_at     timestamptz not null,
    expires_at     timestamptz,
    tags           text[] not null,
    metadata       jsonb not null,
    entities       jsonb not null,
    relations      jsonb not null,
    supersedes     text,
    superseded_at  timestamptz,             -- when the first memory that supersedes this one was created
    fingerprint    bytea not null,          -- of all that the caller sent: equal means unchanged
    length         integer not null,        -- terms, as BM25 counts them
    embedding      halfvec(384) not null,   -- unit length
    primary key (ns, doc),
    unique (ns, id)
);
create index memory_embedding on memory using hnsw (embedding halfvec_ip_ops) with (m = 16, ef_construction = 128);
create index memory_supersedes on memory (ns, supersedes) where supersedes is not null;
create index memory_session on memory (ns, session_id, position) where session_id is not null;

-- BM25. A new memory is one row of the tail; compaction packs tails into segments.
-- `terms`: int64[], `tfs`: uint16[] of the same length, little-endian; `length`: the memory's terms.
create table bm25_tail (
    ns      integer not null,
    doc     integer not null,
    terms   bytea not null,
    tfs     bytea not null,
    length  integer not null,
    primary key (ns, doc)
);

create table bm25_segment (
    ns       integer not null,
    segment  integer generated always as identity,
    docs     integer not null,     -- memories packed, those deleted since included
    length   bigint not null,      -- sum of their lengths
    primary key (ns, segment)
);

-- One row per term and block of up to 1,000 memories of a segment.
-- `docs`: int32[], `tfs`: uint16[], `lengths`: uint16[], little-endian, docs ascending.
create table bm25_posting (
    ns         integer not null,
    term       bigint not null,
    segment    integer not null,
    first_doc  integer not null,
    docs       bytea not null,
    tfs        bytea not null,
    lengths    bytea not null,
    primary key (ns, term, segment, first_doc)
);
create index bm25_posting_segment on bm25_posting (ns, segment);
-- Plain: a block fits a page, so it needs neither compression nor a second look-up.
alter table bm25_posting alter docs set storage plain, alter tfs set storage plain, alter lengths set storage plain;

-- Memories deleted since they were packed; gone with the next merge of their segment.
create table bm25_tombstone (
    ns       integer not null,
    doc      integer not null,
    length   integer not null,
    primary key (ns, doc)
);

-- The entity graph. `entity` is a 64-bit hash of the normalised name `key`.
create table entity (
    ns      integer not null,
    entity  bigint not null,
    key     text not null,
    name    text not null,
    type    text not null,
    primary key (ns, entity)
);

create table entity_alias (
    ns      integer not null,
    key     text not null,          -- normalised alias
    entity  bigint not null,
    doc     integer not null,       -- the memory that gave it and takes it away; -1: given on its own
    name    text not null,
    primary key (ns, key, entity, doc)
);
create index entity_alias_entity on entity_alias (ns, entity);
create index entity_alias_doc on entity_alias (ns, doc);

-- For linking by part of a name: "Melanie" finds "Melanie Brown".
create table entity_token (
    ns      integer not null,
    token   text collate "C" not null,   -- bytewise, so that prefixes are ranges
    entity  bigint not null,
    primary key (ns, token, entity)
);
create index entity_token_entity on entity_token (ns, entity);

create table mention (
    ns      integer not null,
    entity  bigint not null,
    doc     integer not null,
    weight  real not null,
    primary key (ns, entity, doc) include (weight)
);
create index mention_doc on mention (ns, doc);

create table relation (
    ns      integer not null,
    source  bigint not null,
    type    text not null,
    target  bigint not null,
    doc     integer not null,
    primary key (ns, source, target, type, doc)
);
create index relation_target on relation (ns, target);
create index relation_doc on relation (ns, doc);
