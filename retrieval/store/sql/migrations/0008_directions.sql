-- One index of vectors serves all namespaces. So that a search meets its own namespace's only, each vector enters
-- it with 16 further components that depend on the namespace alone and have length 1/2: the inner product of two
-- memories of one namespace is 1/4 more than that of their embeddings, of two namespaces about the same, as the
-- mean of eight unrelated cosines is near 0. What is ordered by it is ordered by similarity.
create function namespace_direction(ns integer) returns halfvec
    language sql immutable parallel safe
    return (array[
        cos(ns * sqrt(2)) / sqrt(32), sin(ns * sqrt(2)) / sqrt(32),
        cos(ns * sqrt(3)) / sqrt(32), sin(ns * sqrt(3)) / sqrt(32),
        cos(ns * sqrt(5)) / sqrt(32), sin(ns * sqrt(5)) / sqrt(32),
        cos(ns * sqrt(7)) / sqrt(32), sin(ns * sqrt(7)) / sqrt(32),
        cos(ns * sqrt(11)) / sqrt(32), sin(ns * sqrt(11)) / sqrt(32),
        cos(ns * sqrt(13)) / sqrt(32), sin(ns * sqrt(13)) / sqrt(32),
        cos(ns * sqrt(17)) / sqrt(32), sin(ns * sqrt(17)) / sqrt(32),
        cos(ns * sqrt(19)) / sqrt(32), sin(ns * sqrt(19)) / sqrt(32)
    ])::halfvec;

drop index memory_embedding;
create index memory_embedding on memory
    using hnsw (((embedding || namespace_direction(ns))::halfvec(400)) halfvec_ip_ops)
    with (m = 16, ef_construction = 128);

-- A vector stays in its row however long the text is: what is long goes elsewhere.
alter table memory alter embedding set storage plain;
