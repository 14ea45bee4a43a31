"""The steps of a walk, each one statement with a limit on each fan.

A hub with a million mentions costs what one with a hundred does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

import numpy as np
from psycopg import AsyncConnection

from graph.arrays import array_text
from graph.inference import JoinedEdge
from graph.linking import MENTIONS_CAP, Seed
from graph.neighbourhood import Edges, Met
from graph.predicate import with_predicate


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """How far a walk may go.

    Attributes:
        max_hops: hops beyond the memories that mention the seeds.
        enough: memories after which no further hop is made beyond the first.
        memories_per_seed: most memories taken of a seed, the latest first.
        memories_per_entity: the same of any other entity.
        entities_per_hop: most entities expanded in the first hop, half as many in each further one.
        memories_per_hop: best memories whose entities the first hop looks at, then half as many.
        mentions_per_memory: most entities looked at of each of them, the weightiest.
        nodes: most memories and entities altogether.
        scanned_per_seed, scanned_per_entity: most mentions read to find eligible memories.
        time_s: no further hop starts after this long.
    """

    max_hops: int = 2
    enough: int = 40
    memories_per_seed: int = 32
    memories_per_entity: int = 16
    entities_per_hop: int = 16
    memories_per_hop: int = 6
    mentions_per_memory: int = 10
    nodes: int = 320
    scanned_per_seed: int = 2_048
    scanned_per_entity: int = 256
    time_s: float = 0.1


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
        exists (select from relation where ns = %(ns)s and source = any(%(entities)s::bigint[]))
            or exists (select from relation where ns = %(ns)s and target = any(%(entities)s::bigint[]))
    from edge
    """
)
"""Hop 0: the seeds' memories, and for hubs their edges to the memories of the other seeds."""

_HOP: LiteralString = (
    """
    with top as materialized (
        select * from unnest(%(docs)s::integer[], %(activations)s::float8[]) as t (doc, activation)
    ), touched as materialized (
        select n.entity, t.doc, n.weight, t.activation
        from top t cross join lateral (
            select entity, weight from mention where ns = %(ns)s and doc = t.doc
            order by weight desc, entity limit %(mentions_per_memory)s
        ) as n
    ), near as (
        select entity, max(activation * weight * weight) as pull from touched
        where entity <> all(%(known)s::bigint[])
        group by entity order by pull desc, entity limit 3 * %(entities_per_hop)s / 2
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
        select entity, mentions, pull * ln(1 + %(memories)s::float8 / greatest(mentions, 1)) as strength
        from counted where mentions > 1 or joined
        order by strength desc, entity limit %(entities_per_hop)s
    ), """
    + _FAN
    + """
    , edge as (
        select entity, doc, weight from hit
        union
        select entity, doc, weight from touched
        where entity in (select entity from fan) or entity = any(%(known)s::bigint[])
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
"""A further hop: the most telling entities of some memories and those joined, with their memories.

A mention's weight counts squared: a name leads further than a word.
"""


@dataclass(frozen=True, slots=True)
class View:
    """What a walk may see: the memories of a namespace that meet a predicate.

    Attributes:
        ns: number of the namespace.
        memories: its size, or an upper bound of it.
        eligible: SQL over `memory m`; a memory that does not meet it is neither returned nor walked
            through, and a relation whose evidence does not meet it is not followed.
        params: the parameters of `eligible`.
    """

    ns: int
    memories: int
    eligible: LiteralString
    params: Mapping[str, Any]


async def of_seeds(conn: AsyncConnection[Any], view: View, seeds: Sequence[Seed], bounds: Bounds) -> tuple[Edges, bool]:
    """The edges between the seeds and their memories, and whether any relation joins the seeds to others."""
    params = {
        "entities": array_text(seed.entity for seed in seeds),
        "scores": array_text(seed.score for seed in seeds),
        "hubs": array_text(seed.mentions > bounds.memories_per_seed for seed in seeds),
        "scanned": bounds.scanned_per_seed,
        "memories_per_entity": bounds.memories_per_seed,
        "nodes": bounds.nodes,
    }
    row = await _one(conn, _SEED, view, params)
    return _edges(row), bool(row[3])


async def onward(
    conn: AsyncConnection[Any],
    view: View,
    top: Mapping[int, float],
    joined: Mapping[int, JoinedEdge],
    *,
    known: Sequence[int],
    entities: int,
    bounds: Bounds,
) -> tuple[list[Met], Edges]:
    """The entities to which some memories and relations lead, most telling first, and their edges.

    Args:
        conn: any; nothing is written.
        view: what may be seen.
        top: memories with the strength in which they activate what they mention.
        joined: entities that relations lead to, with the strongest one.
        known: entities already met.
        entities: most of them.
        bounds: the caps.

    Returns:
        Entities, the strongest with strength 1, and the edges between them and memories.
    """
    params = {
        "docs": array_text(top),
        "activations": array_text(top.values()),
        "joined": array_text(joined),
        "pulls": array_text(edge.strength for edge in joined.values()),
        "known": array_text(known),
        "memories": view.memories,
        "memories_per_entity": bounds.memories_per_entity,
        "mentions_per_memory": bounds.mentions_per_memory,
        "scanned": bounds.scanned_per_entity,
        "cap": MENTIONS_CAP,
        "entities_per_hop": entities,
    }
    row = await _one(conn, _HOP, view, params)
    if not row[3]:
        return [], _edges(row)
    strongest = max(row[6]) or 1.0
    met = [
        Met(entity, name, mentions, strength / strongest, joined.get(entity))
        for entity, name, mentions, strength in zip(*row[3:7], strict=True)
    ]
    return met, _edges(row)


async def _one(
    conn: AsyncConnection[Any], sql: LiteralString, view: View, params: Mapping[str, Any]
) -> tuple[Any, ...]:
    parameters = {**view.params, **params, "ns": view.ns}
    row = await (await conn.execute(with_predicate(sql, view.eligible), parameters, binary=True)).fetchone()
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
