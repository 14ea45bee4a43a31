"""Entities joined to those of a walk by relations, stated or inferred at the moment of the query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import AsyncConnection

from graph.arrays import array_text
from graph.chaining import DECAY, Edge, Inferred, Stated, infer
from graph.predicate import with_predicate
from graph.rules import Rule, fold_relation


@dataclass(frozen=True, kw_only=True, slots=True)
class JoinBounds:
    """How much `joined` reads and infers.

    Attributes:
        near, far: most stated relations read of the active entities, and of those one step further.
        each_way: most of one entity as their source, and as many as their target; fewer of each where many
            share `near` or `far`.
        scanned: most rows read for each relation that may be taken, to find eligible ones.
        entities: most entities from which the second step goes on, the most strongly joined first.
        inferred, rounds: as `max_inferred` and `max_rounds` of `graph.chaining.infer`.
    """

    near: int = 160
    far: int = 96
    each_way: int = 32
    scanned: int = 8
    entities: int = 32
    inferred: int = 256
    rounds: int = 3


@dataclass(frozen=True, slots=True)
class JoinedEdge:
    """A relation of an active entity.

    Attributes:
        entity: the other end.
        joined_to: the active entity.
        relation: its name, as stated or as the rule has it.
        forward: whether `joined_to` is the source.
        strength: of the active entity, times 0.9 ** depth of the inference; undiminished if stated.
        derivation: the stated relations that it comes down to; of a stated one itself, from the latest memory.
        rule: name of the rule applied last; None if stated.
    """

    entity: int
    joined_to: int
    relation: str
    forward: bool
    strength: float
    derivation: tuple[Stated, ...]
    rule: str | None


# The inner limits keep hubs cheap: they take what an index offers first, and stop when enough is eligible.
_READ: LiteralString = """
    select source, type, target, doc from unnest(%(entities)s::bigint[]) with ordinality as e (entity, place)
    cross join lateral (
        select *, row_number() over () as rank from (
            select n.* from (
                select source, type, target, doc from relation
                where ns = %(ns)s and source = e.entity limit %(scanned)s
            ) as n
            join memory m on m.ns = %(ns)s and m.doc = n.doc
            where {eligible} limit %(each_way)s
        ) as outgoing
        union all
        select *, row_number() over () from (
            select n.* from (
                select source, type, target, doc from relation
                where ns = %(ns)s and target = e.entity limit %(scanned)s
            ) as n
            join memory m on m.ns = %(ns)s and m.doc = n.doc
            where {eligible} limit %(each_way)s
        ) as incoming
    ) as r
    order by rank, place, source, type, target, doc limit %(most)s
"""
"""Eligible relations of some entities: the first of each, then the second of each, and so on."""


async def joined(
    conn: AsyncConnection[Any],
    ns: int,
    active: Mapping[int, float],
    *,
    rules: Sequence[Rule],
    known: Collection[int] = (),
    eligible: LiteralString,
    params: Mapping[str, Any],
    bounds: JoinBounds | None = None,
) -> list[JoinedEdge]:
    """The relations of the active entities, stated and inferred, in one statement or two.

    Args:
        conn: any; nothing is written.
        ns: number of the namespace.
        active: entities with their strength.
        rules: those in force; with none only stated relations are found.
        known: entities that are not wanted at the other end.
        eligible: SQL over `memory m`; a relation counts only if a memory that meets it states it, and an
            inferred one only if that is so of all that it comes down to.
        params: the parameters of `eligible`.
        bounds: the caps.

    Returns:
        Strongest first. Two entities may be joined by several edges, one backwards to the other included,
        and an edge between two active entities comes once for each.
    """
    bounds = bounds or JoinBounds()
    common = {**params, "ns": ns}
    strongest = sorted(active, key=lambda entity: (-active[entity], entity))
    stated = await _read(conn, eligible, common, strongest, bounds, most=bounds.near)
    onward = _onward(stated, active, rules)[: bounds.entities]
    if onward:
        stated += await _read(conn, eligible, common, onward, bounds, most=bounds.far)
    latest = {edge.key: edge for edge in sorted(stated, key=lambda edge: (edge.doc, edge))}
    inferred = infer(latest.values(), rules, max_inferred=bounds.inferred, max_rounds=bounds.rounds)
    every: list[Edge] = [*latest.values(), *inferred]
    edges = [found for edge in every for found in _touching(edge, active, known)]
    return sorted(edges, key=lambda e: (-e.strength, e.joined_to, e.entity, e.relation, e.forward))


async def _read(
    conn: AsyncConnection[Any],
    eligible: LiteralString,
    common: Mapping[str, Any],
    entities: Sequence[int],
    bounds: JoinBounds,
    *,
    most: int,
) -> list[Stated]:
    """At most `most` relations, of each entity up to twice its share each way, as others have fewer."""
    if not entities:
        return []
    each_way = min(bounds.each_way, max(1, 2 * most // len(entities)))
    params = {
        **common,
        "entities": array_text(entities),
        "each_way": each_way,
        "scanned": bounds.scanned * each_way,
        "most": most,
    }
    rows = await (await conn.execute(with_predicate(_READ, eligible), params)).fetchall()
    return [Stated(*row) for row in rows]


def _onward(stated: Iterable[Stated], active: Mapping[int, float], rules: Iterable[Rule]) -> list[int]:
    """Where relations further out could matter to a rule, the most strongly joined first.

    The premises of a conclusion hang together, so its evidence is a connected set of relations that rules
    speak of; and a rule with one premise alone looks no further than at it.
    """
    if not any(len(rule.when) > 1 for rule in rules):
        return []
    wanted = {atom.relation for rule in rules for atom in rule.when}
    pull: dict[int, float] = {}
    for edge in stated:
        if fold_relation(edge.relation) in wanted:
            for entity, other in ((edge.source, edge.target), (edge.target, edge.source)):
                if entity not in active:
                    pull[entity] = pull.get(entity, 0.0) + active.get(other, 0.0)
    return sorted(pull, key=lambda entity: (-pull[entity], entity))


def _touching(edge: Edge, active: Mapping[int, float], known: Collection[int]) -> Iterable[JoinedEdge]:
    rule = edge.rule if isinstance(edge, Inferred) else None
    for forward, here, there in ((True, edge.source, edge.target), (False, edge.target, edge.source)):
        if here in active and there not in known and here != there:
            strength = active[here] * DECAY**edge.depth
            yield JoinedEdge(there, here, edge.relation, forward, strength, edge.evidence, rule)


def sentence(edge: JoinedEdge, names: Mapping[int, str]) -> str:
    """An edge in words, with what it follows from.

    Args:
        edge: any.
        names: of the entities of the edge and of its derivation; one left out is shown as its number.

    >>> names = {1: "Ann", 2: "Team X", 3: "Acme"}
    >>> steps = Stated(1, "part_of", 2, 7), Stated(2, "part_of", 3, 8)
    >>> sentence(JoinedEdge(3, 1, "part_of", True, 0.9, steps, "transitive"), names)
    'Ann —part of→ Acme, since Ann —part of→ Team X and Team X —part of→ Acme (transitive)'
    >>> sentence(JoinedEdge(1, 2, "part of", False, 1.0, steps[:1], None), names)
    'Ann —part of→ Team X'
    """
    ends = (edge.joined_to, edge.entity) if edge.forward else (edge.entity, edge.joined_to)
    said = _said(ends[0], edge.relation, ends[1], names)
    if edge.rule is None:
        return said
    *rest, last = (_said(step.source, step.relation, step.target, names) for step in edge.derivation)
    return f"{said}, since {' and '.join([', '.join(rest), last] if rest else [last])} ({edge.rule})"


def _said(source: int, relation: str, target: int, names: Mapping[int, str]) -> str:
    first, second = (names.get(entity, str(entity)) for entity in (source, target))
    return f"{first} —{relation.replace('_', ' ')}→ {second}"
