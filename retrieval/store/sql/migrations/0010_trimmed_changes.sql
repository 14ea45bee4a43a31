-- The last transaction whose changes were forgotten: who has not seen it by then cannot bring his mirror up to date.
-- One row.

create table memory_change_trimmed (
    xid  xid8 not null
);
insert into memory_change_trimmed values ('0');
