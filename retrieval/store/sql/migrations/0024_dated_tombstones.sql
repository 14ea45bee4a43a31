-- What is left of deleted memories in the segments, hashes of their words, goes after a day, however few they are.
alter table bm25_tombstone add column at timestamptz not null default now();
