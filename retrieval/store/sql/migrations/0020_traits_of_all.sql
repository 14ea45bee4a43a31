-- Every memory has traits (migration 5): those written before get the traits of an empty text.
update memory set traits = 0 where traits is null;
alter table memory alter column traits set not null;
