-- Which memories a transaction added, removed or altered: by this a server process brings its mirror of a
-- namespace up to date. Rows are kept for a while (store/changes.py).

create table memory_change (
    ns    integer not null,
    xid   xid8 not null default pg_current_xact_id(),
    docs  integer[] not null,
    at    timestamptz not null default clock_timestamp()
);
create index memory_change_xid on memory_change (ns, xid);
create index memory_change_at on memory_change using brin (at);
