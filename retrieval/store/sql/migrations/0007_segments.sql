-- Postings of many rare terms share a row (store/blocks.py has its format), and how long a memory is stands in `memory`
-- alone. What was packed goes back to the tail, and compaction packs it anew.

lock table memory in share row exclusive mode;

alter table bm25_tail drop column length;

-- `docs`: int32[], `tfs`: uint16[], `terms`: int64[], all little-endian; int8send writes big-endian.
insert into bm25_tail (ns, doc, terms, tfs)
select ns, doc, string_agg(term, ''::bytea order by number), string_agg(tf, ''::bytea order by number)
from (
    select p.ns, p.number, p.term, substring(p.tfs from 2 * at + 1 for 2) as tf,
        get_byte(p.docs, 4 * at) | (get_byte(p.docs, 4 * at + 1) << 8)
            | (get_byte(p.docs, 4 * at + 2) << 16) | (get_byte(p.docs, 4 * at + 3) << 24) as doc
    from (
        select ns, term as number, docs, tfs, (
            select string_agg(substring(int8send(term) from 8 - byte for 1), ''::bytea order by byte)
            from generate_series(0, 7) as byte
        ) as term
        from bm25_posting offset 0    -- once per row
    ) as p cross join generate_series(0, octet_length(p.docs) / 4 - 1) as at
    offset 0                          -- before they are sorted, not with the arrays they come from
) as posting
where exists (select from memory m where m.ns = posting.ns and m.doc = posting.doc)
group by ns, doc;

drop table bm25_posting;
drop table bm25_segment;

-- A segment that is being made, or whose postings are being removed, is not live: readers pass it by.
create table bm25_segment (
    ns         integer not null,
    segment    integer generated always as identity,
    docs       integer not null default 0,     -- memories packed, those deleted since included
    first_doc  integer not null default 0,     -- theirs are between these, both included
    last_doc   integer not null default 0,
    live       boolean not null default false,
    primary key (ns, segment)
);

create table bm25_posting (
    ns          integer not null,
    segment     integer not null,
    first_term  bigint not null,
    postings    bytea not null,                -- of this term and those up to the next row's
    primary key (ns, segment, first_term)
);
-- Long ones out of line and as they are: they hardly compress.
alter table bm25_posting alter postings set storage external;

-- Readers would have to wait for vacuum to give back space that the next compaction takes again.
alter table bm25_tail set (vacuum_truncate = off);
alter table bm25_posting set (vacuum_truncate = off, toast.vacuum_truncate = off);

-- Memories that were deleted after they were packed, until what is left of them in the segments is removed. Their
-- number says when that is worth while; that they are gone is said by `memory`.
alter table bm25_tombstone drop column length;
delete from bm25_tombstone;
