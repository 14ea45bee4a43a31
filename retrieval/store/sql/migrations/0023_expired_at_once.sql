-- A memory may no longer end before it begins. Those that had expired when they were sent, without `created_at`, did: as
-- they would be stored now, they begin as they end. They are never found, as before.
with changed as (
    update memory set created_at = expires_at where expires_at < created_at returning ns, doc
)
insert into memory_change (ns, docs) select ns, array_agg(doc) from changed group by ns;
