-- A memory may supersede several others. `doc` is the newer one; `place` the order in which it names the older ones,
-- which need not be there.
create table supersession (
    ns     integer not null,
    doc    integer not null,
    place  smallint not null,
    old    text not null,
    primary key (ns, doc, place)
);
create index supersession_old on supersession (ns, old);

insert into supersession (ns, doc, place, old) select ns, doc, 0, supersedes from memory where supersedes is not null;

alter table memory drop column supersedes;
