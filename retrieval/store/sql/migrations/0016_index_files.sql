-- Indexes that server processes keep in files, each as of a snapshot. A file can be brought up to date as long as its
-- row is here: changes since then are kept for it (store/changes.py).
create table index_file (
    token         uuid primary key,
    ns            integer not null,
    transactions  pg_snapshot not null
);
create index index_file_ns on index_file (ns);
