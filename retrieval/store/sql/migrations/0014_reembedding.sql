-- New vectors for a whole namespace (`trivet reembed`). They are collected beside the old ones and replace them in one
-- transaction, which raises `generation`: who holds vectors of another generation must not compare with them.

alter table namespace add column generation integer not null default 0;

-- `model` says which vectors can be compared with each other; rows of an interrupted run are taken up by the next one.
create table new_embedding (
    ns         integer not null,
    doc        integer not null,
    model      text not null,
    embedding  halfvec(384) not null,       -- of the memory's own text, unit length
    primary key (ns, doc)
);
alter table new_embedding alter embedding set storage plain;

-- The replaced vectors enter the index later, in parts: 20,000 at once take a minute, in which nobody could write, and
-- without the index 0.2 s. Until then they are compared exactly.
alter table memory add column indexed boolean not null default true;
drop index memory_embedding;
create index memory_embedding on memory
    using hnsw (((embedding || namespace_direction(ns))::halfvec(400)) halfvec_ip_ops)
    with (m = 16, ef_construction = 64) where indexed;
create index memory_unindexed on memory (ns, doc) where not indexed;
