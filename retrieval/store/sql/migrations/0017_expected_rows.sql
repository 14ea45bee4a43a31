-- A statement is planned once for all namespaces, for as many rows as they have on average. Where most are tiny, that is
-- so few that PostgreSQL would look for some rows of a large one by reading all of it. It is told to expect 1,000 rows
-- of every table instead: a thousandth of the table's rows are distinct namespaces (docs/decisions/0031).
do $$
declare
    name text;
begin
    foreach name in array array['memory', 'turn', 'supersession', 'new_embedding', 'memory_change', 'bm25_tail',
        'bm25_segment', 'bm25_posting', 'bm25_tombstone', 'entity', 'entity_alias', 'entity_token', 'entity_merge',
        'mention', 'relation', 'query_log', 'feedback', 'shadow_run']
    loop
        execute format('alter table %I alter column ns set (n_distinct = -0.001)', name);
        -- What is known of the table counts until it is analysed; of one without rows nothing must be known, or what is
        -- planned before it is filled reads all of it.
        if (select reltuples > 0 from pg_class where oid = name::regclass) then
            execute format('analyze %I', name);
        end if;
    end loop;
end $$;
