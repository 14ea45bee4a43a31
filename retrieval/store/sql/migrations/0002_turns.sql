-- Chat turns: a memory with a session is one. `memory.embedding` of a turn is mixed with those of the two
-- turns before it; here is its own, with its neighbours in the session.
create table turn (
    ns          integer not null,
    doc         integer not null,
    session_id  text not null,
    place       bigint not null,            -- in the session; equal ones are ordered by id
    id          text collate "C" not null,  -- bytewise, as the program orders
    previous    integer,                    -- `doc` of the turn before this one; null: the first
    next        integer,                    -- of the turn after it; null: the last
    own         halfvec(384) not null,      -- unit length
    primary key (ns, doc)
);
create index turn_place on turn (ns, session_id, place, id) include (doc);

-- The turns must be those of the rows, also of rows that a server writes at this moment.
lock table memory in share row exclusive mode;

-- Where a caller gave no position, turns stand in the order of their times.
insert into turn (ns, doc, session_id, place, id, previous, next, own)
select ns, doc, session_id, place, id, lag(doc) over session, lead(doc) over session, own
from (
    select ns, doc, session_id, id collate "C" as id, embedding as own,
        coalesce(position, row_number() over (partition by ns, session_id order by created_at, doc) - 1) as place
    from memory where session_id is not null
) as placed
window session as (partition by ns, session_id order by place, id);

-- unit(own + 0.3 previous + 0.2 before_previous), in single precision; the first turn of a session stays.
update memory m set embedding = l2_normalize(
        t.own::vector + p.own::vector * array_fill(0.3::real, array[384])::vector
        + coalesce(b.own::vector, array_fill(0::real, array[384])::vector) * array_fill(0.2::real, array[384])::vector
    )::halfvec(384)
from turn t
    join turn p on p.ns = t.ns and p.doc = t.previous
    left join turn b on b.ns = p.ns and b.doc = p.previous
where m.ns = t.ns and m.doc = t.doc;

-- Few memories ever expire or are superseded: whether a turn is one of them is asked of this index.
create index memory_hidden on memory (ns, doc) where expires_at is not null or superseded_at is not null;
