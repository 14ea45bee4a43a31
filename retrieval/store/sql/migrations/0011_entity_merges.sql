-- Entities that a caller says are one. Rows of memories keep the entity that their texts name, and readers show it as
-- its `root`; so a merge is undone by removing its row, whatever was written in between.

create table entity_merge (
    ns         integer not null,
    entity     bigint not null,             -- is shown as another: one row at most
    target     bigint not null,             -- the one that it was merged into
    root       bigint not null,             -- the last one of the chain of targets: has no row itself
    merge      text not null,               -- the merge's id
    merged_at  timestamptz not null default now(),
    primary key (ns, entity)
);
create unique index entity_merge_id on entity_merge (ns, merge);
create index entity_merge_target on entity_merge (ns, target);
create index entity_merge_root on entity_merge (ns, root);
