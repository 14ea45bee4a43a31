"""A bounded walk from a query's entities to the memories around them.

Hop 0 takes the memories that mention the seeds. Each further hop takes the best memories so far,
goes to the entities that they mention and to those joined to the last ones by a relation, keeps
the most telling, and takes their memories. Personalised PageRank on what was collected says how
near each memory is. Every step is one statement with a limit on each fan, so that a hub with a
million mentions costs what one with a hundred does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic
from typing import Any, LiteralString

import numpy as np
from psycopg import AsyncConnection

from graph.arrays import array_text
from graph.linking import Seed
from graph.neighbourhood import Edges, Met, Neighbourhood, Step


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """How far a walk may go.

    Attributes:
        max_hops: hops beyond the memories that mention the seeds.
        entities_per_hop: most entities expanded in the first hop, half as many in each further one.
        memories_per_entity: most memories taken of an entity, the latest first.
        memories_per_hop: best memories whose entities the first hop looks at, then half as many.
        nodes: most memories and entities altogether.
        scanned_per_seed, scanned_per_entity: most mentions read to find eligible memories.
        time_s: no further hop starts after this long.
    """

    max_hops: int = 2
    entities_per_hop: int = 6
    memories_per_entity: int = 32
    memories_per_hop: int = 6
    nodes: int = 160
    scanned_per_seed: int = 2_048
    scanned_per_entity: int = 256
    time_s: float = 0.1


@dataclass(frozen=True, slots=True)
class Reached:
    """A memory that the walk came to: activation in (0, 1], the best has 1."""

    doc: int
    activation: float


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk found, best first, and how it got there."""

    reached: Sequence[Reached]
    hops: int
    neighbourhood: Neighbourhood

    def path(self, doc: int) -> tuple[str, ...]:
        """Names of the entities that led to a memory, from a seed on."""
        return self.neighbourhood.path(doc)


_FAN: LiteralString = """
    hit as materialized (
        select f.entity, x.doc, x.weight from fan f
        cross join lateral (
            select n.doc, n.weight from (
                select doc, weight from mention where ns = %(ns)s and entity = f.entity
                order by doc desc limit %(scanned)s
            ) as n
            join memory m on m.ns = %(ns)s and m.doc = n.doc
            where {eligible}
            order by n.doc desc limit %(memories_per_entity)s
        ) as x
    )
"""
_SEED: LiteralString = (
    """
    with fan as materialized (
        select * from unnest(%(entities)s::bigint[], %(scores)s::float8[], %(hubs)s::boolean[])
            as f (entity, score, hub)
    ), """
    + _FAN
    + """
    , kept as materialized (
        select doc from hit join fan using (entity)
        group by doc order by sum(score * weight) desc, doc desc limit %(nodes)s
    ), edge as (
        select entity, doc, weight from hit
        union
        select f.entity, k.doc, n.weight from fan f cross join kept k
        cross join lateral (
            select weight from mention where ns = %(ns)s and entity = f.entity and doc = k.doc limit 1
        ) as n
        where f.hub
    )
    select string_agg(int8send(entity), ''), string_agg(int4send(doc), ''), string_agg(float4send(weight), ''),
        coalesce((select next_doc from namespace where ns = %(ns)s), 0),
        exists (select from relation where ns = %(ns)s)
    from edge
    """
)
"""Hop 0: the seeds' memories, and for hubs their edges to the memories of the other seeds."""

_JOIN: LiteralString = """
    select r.entity, a.entity, sum(a.strength)::float8
    from unnest(%(active)s::bigint[], %(strengths)s::float8[]) as a (entity, strength)
    cross join lateral (
        (select target as entity, doc from relation where ns = %(ns)s and source = a.entity limit 32)
        union
        (select source, doc from relation where ns = %(ns)s and target = a.entity limit 32)
    ) as r
    join memory m on m.ns = %(ns)s and m.doc = r.doc
    where r.entity <> all(%(known)s::bigint[]) and {eligible}
    group by r.entity, a.entity
    order by 3, 2, 1
"""
"""Entities joined to the active ones by a relation whose evidence is eligible; strongest last."""

_HOP: LiteralString = (
    """
    with top as materialized (
        select * from unnest(%(docs)s::integer[], %(activations)s::float8[]) as t (doc, activation)
    ), touched as materialized (
        select n.entity, n.doc, n.weight, t.activation
        from top t join mention n on n.ns = %(ns)s and n.doc = t.doc
    ), near as (
        select entity, sum(activation * weight) as pull from touched
        where entity <> all(%(known)s::bigint[])
        group by entity order by pull desc, entity limit 4 * %(entities_per_hop)s
    ), pulled as (
        select entity, sum(pull) as pull, bool_or(joined) as joined from (
            select entity, pull, false as joined from near
            union all
            select *, true from unnest(%(joined)s::bigint[], %(pulls)s::float8[])
        ) as found
        group by entity
    ), counted as materialized (
        select p.entity, p.pull, p.joined, (
            select count(*) from (
                select from mention n where n.ns = %(ns)s and n.entity = p.entity limit %(cap)s) as few
        )::integer as mentions
        from pulled p
    ), fan as materialized (
        select entity, mentions,
            pull * ln(1 + %(memories)s::float8 / greatest(mentions, 1)) / ln(1 + greatest(mentions, 1)) as strength
        from counted where mentions > 1 or joined
        order by strength desc, entity limit %(entities_per_hop)s
    ), """
    + _FAN
    + """
    , edge as (
        select entity, doc, weight from hit
        union
        select entity, doc, weight from touched where entity in (select entity from fan)
    ), named as (
        select f.entity, e.name, f.mentions, f.strength
        from fan f join entity e on e.ns = %(ns)s and e.entity = f.entity
    )
    select string_agg(int8send(entity), ''), string_agg(int4send(doc), ''), string_agg(float4send(weight), ''),
        (select array_agg(entity order by strength desc, entity) from named),
        (select array_agg(name order by strength desc, entity) from named),
        (select array_agg(mentions order by strength desc, entity) from named),
        (select array_agg(strength order by strength desc, entity) from named)
    from edge
    """
)
"""A further hop: entities of the best memories and those joined, the most telling, their memories."""


@lru_cache(maxsize=8)
def _with(sql: LiteralString, eligible: LiteralString) -> LiteralString:
    """The statement with the predicate in place, blanks squeezed: psycopg caches only short ones."""
    return " ".join(sql.replace("{eligible}", eligible).split())


async def walk(
    conn: AsyncConnection[Any],
    ns: int,
    seeds: Sequence[Seed],
    *,
    eligible: LiteralString,
    params: Mapping[str, Any],
    bounds: Bounds,
) -> Walk:
    """The memories around the seeds, nearest first.

    Args:
        conn: any; nothing is written.
        ns: number of the namespace.
        seeds: as `graph.linking.link` gives them, at least one.
        eligible: SQL over `memory m`; a memory that does not meet it is neither returned nor
            walked through, and a relation whose evidence does not meet it is not followed.
        params: the parameters of `eligible`.
        bounds: the caps. With `max_hops` 0 only memories that mention a seed are returned.
    """
    started = monotonic()
    common = {**params, "ns": ns, "memories_per_entity": bounds.memories_per_entity}
    row = await _one(conn, _with(_SEED, eligible), common | _seed_params(seeds, bounds))
    memories, has_relations = max(int(row[3]), 1), bool(row[4])
    near = Neighbourhood(seeds, memories, max_nodes=bounds.nodes)
    near.add(Step(near.frontier, _edges(row)))
    hops = 0
    while hops < bounds.max_hops and near.frontier and near.room > 0 and monotonic() - started < bounds.time_s:
        joined = await _joined(conn, near, eligible, common) if has_relations else {}
        top = near.best(_narrowed(bounds.memories_per_hop, hops))
        hop_params = {
            **common,
            **_hop_params(near, top, joined),
            "memories": memories,
            "scanned": bounds.scanned_per_entity,
            "cap": bounds.memories_per_entity + 1,
            "entities_per_hop": _narrowed(bounds.entities_per_hop, hops),
        }
        row = await _one(conn, _with(_HOP, eligible), hop_params)
        if not row[3]:
            break
        strongest = max(row[6]) or 1.0
        met = [
            Met(entity, name, mentions, strength / strongest, joined.get(entity, (None, 0.0))[0])
            for entity, name, mentions, strength in zip(*row[3:7], strict=True)
        ]
        near.add(Step(met, _edges(row), dict(top)))
        hops += 1
    reached = [Reached(doc, activation) for doc, activation in near.activations()]
    return Walk(reached, hops, near)


def _narrowed(width: int, hops: int) -> int:
    """Half as wide with every hop, but not a single file: one wrong step would end the walk."""
    return max(min(width, 2), width >> hops)


async def _joined(
    conn: AsyncConnection[Any], near: Neighbourhood, eligible: LiteralString, common: Mapping[str, Any]
) -> dict[int, tuple[int, float]]:
    """Entities that relations join to the last ones: the strongest of these, and its pull."""
    params = {
        **common,
        "active": array_text(met.entity for met in near.frontier),
        "strengths": array_text(met.strength for met in near.frontier),
        "known": array_text(near.entities),
    }
    rows = await (await conn.execute(_with(_JOIN, eligible), params)).fetchall()
    return {entity: (source, pull) for entity, source, pull in rows}


def _seed_params(seeds: Sequence[Seed], bounds: Bounds) -> dict[str, Any]:
    return {
        "entities": array_text(seed.entity for seed in seeds),
        "scores": array_text(seed.score for seed in seeds),
        "hubs": array_text(seed.mentions > bounds.memories_per_entity for seed in seeds),
        "scanned": bounds.scanned_per_seed,
        "nodes": bounds.nodes,
    }


def _hop_params(
    near: Neighbourhood, top: Sequence[tuple[int, float]], joined: Mapping[int, tuple[int, float]]
) -> dict[str, Any]:
    return {
        "docs": array_text(doc for doc, _ in top),
        "activations": array_text(activation for _, activation in top),
        "joined": array_text(joined),
        "pulls": array_text(pull for _, pull in joined.values()),
        "known": array_text(near.entities),
    }


async def _one(conn: AsyncConnection[Any], sql: LiteralString, params: Mapping[str, Any]) -> tuple[Any, ...]:
    row = await (await conn.execute(sql, params, binary=True)).fetchone()
    if row is None:
        raise RuntimeError("an aggregate without groups gave no row")
    return tuple(row)


def _edges(row: Sequence[Any]) -> Edges:
    """Entities, memories and weights of the edges, from the bytes that Postgres packed."""
    entities, docs, weights = (row[at] or b"" for at in range(3))
    return (
        np.frombuffer(entities, dtype=">i8").astype(np.int64),
        np.frombuffer(docs, dtype=">i4").astype(np.int64),
        np.frombuffer(weights, dtype=">f4").astype(np.float64),
    )
