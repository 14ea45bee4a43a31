-- What kind of statement a memory is, packed as classifier/traits.py says. Null in rows written before: what
-- needs it reads the text of those.
alter table memory add column traits integer;
