-- Of the entities most are common phrases, whose name is their key. An index of a namespace keeps only the others, and
-- finds them here instead of reading all (docs/decisions/0035).
create index entity_shown_otherwise on entity (ns, entity)
    where type <> all ('{date,identifier,phrase,term}'::text[]) or name <> key;
