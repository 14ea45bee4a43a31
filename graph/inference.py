"""Entities related to those of a walk, by stated relations or by relations inferred at query time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from graph.adjacency import Adjacency, is_in_mask
from graph.forward_chaining import BY_MEMORY, DECAY, Edge, InferredRelation, StatedRelation, infer
from graph.rules import Rule, fold_relation

NEAR, FAR = 160, 96
"""Most stated relations read around the active entities, and one step further out."""

EACH_WAY = 32
"""Most relations of one entity as source, and as many as target; fewer if many entities share `NEAR` or `FAR`."""

SCANNED = 8
"""Most rows read per relation taken, to find eligible ones."""

ENTITIES = 32
"""Most entities expanded in the second step, the most strongly related first."""

MAX_INFERRED, MAX_ROUNDS = 256, 3
"""Limits of `graph.forward_chaining.infer`."""


class JoinedEdge(msgspec.Struct, frozen=True):
    """A relation of an active entity.

    Attributes:
        entity: the other end.
        joined_to: the active entity.
        relation: its name, as stated or as in the rule.
        forward: whether `joined_to` is the source.
        strength: of the active entity, times 0.9 ** depth of the inference.
        derivation: the stated relations it rests on; a stated relation itself, from the latest memory.
        rule: name of the rule applied last; None if stated.
    """

    entity: int
    joined_to: int
    relation: str
    forward: bool
    strength: float
    derivation: tuple[StatedRelation, ...]
    rule: str | None


def joined(
    graph: Adjacency,
    eligible: NDArray[np.bool_],
    active: Mapping[int, float],
    *,
    rules: Sequence[Rule],
    known: Collection[int] = (),
) -> list[JoinedEdge]:
    """The stated and inferred relations of the active entities, strongest first.

    `active` has the strength of each of them. Two entities may be joined by several edges, in either direction, and an
    edge between two active entities is returned once for each. A relation counts only if all memories that it rests on
    are `eligible` (by slot); `known` entities are excluded as the other end.
    """
    strongest = sorted(active, key=lambda entity: (-active[entity], entity))
    stated = _stated(graph, eligible, strongest, most=NEAR)
    if not stated:
        return []
    onward = _onward(stated, active, rules)[:ENTITIES]
    stated += _stated(graph, eligible, onward, most=FAR)
    latest = {edge.key: edge for edge in sorted(stated, key=BY_MEMORY)}
    inferred = infer(latest.values(), rules, max_inferred=MAX_INFERRED, max_rounds=MAX_ROUNDS)
    every: list[Edge] = [*latest.values(), *inferred]
    edges = [found for edge in every for found in _touching(edge, active, known)]
    return sorted(edges, key=lambda e: (-e.strength, e.joined_to, e.entity, e.relation, e.forward))


def _stated(
    graph: Adjacency, eligible: NDArray[np.bool_], entities: Sequence[int], *, most: int
) -> list[StatedRelation]:
    """At most `most` relations, round-robin: the first of each entity, then the second of each, and so on.

    An entity may use up to twice its share in each direction, as others have fewer.
    """
    each_way = min(EACH_WAY, max(1, 2 * most // max(len(entities), 1)))
    ranked: list[tuple[int, int, StatedRelation]] = []
    for place, entity in enumerate(graph.relations.related(entities)):
        for way in graph.relations.of_entity(entity):
            there = (edge for edge in way[: SCANNED * each_way] if is_in_mask(edge.doc, eligible))
            ranked += [(rank, place, edge) for rank, edge in enumerate(islice(there, each_way))]
    ranked.sort()
    return [edge for _, _, edge in ranked[:most]]


def _onward(stated: Iterable[StatedRelation], active: Mapping[int, float], rules: Iterable[Rule]) -> list[int]:
    """The entities at which further relations could matter to a rule, the most strongly related first.

    The premises of a rule share variables, so the evidence of a conclusion is a connected set of relations named by
    the rules. A rule with a single premise needs no further relations.
    """
    wanted = _premises(tuple(rules))
    pull: dict[int, float] = {}
    for edge in stated if wanted else ():
        if fold_relation(edge.relation) in wanted:
            for entity, other in ((edge.source, edge.target), (edge.target, edge.source)):
                if entity not in active:
                    pull[entity] = pull.get(entity, 0.0) + active.get(other, 0.0)
    return sorted(pull, key=lambda entity: (-pull[entity], entity))


@lru_cache(maxsize=64)
def _premises(rules: tuple[Rule, ...]) -> frozenset[str]:
    """The relation names in the premises of the rules; empty if every rule has a single premise."""
    if not any(len(rule.when) > 1 for rule in rules):
        return frozenset()
    return frozenset(atom.relation for rule in rules for atom in rule.when)


def _touching(edge: Edge, active: Mapping[int, float], known: Collection[int]) -> Iterable[JoinedEdge]:
    rule = edge.rule if isinstance(edge, InferredRelation) else None
    for forward, here, there in ((True, edge.source, edge.target), (False, edge.target, edge.source)):
        if here in active and there not in known and here != there:
            strength = active[here] * DECAY**edge.depth
            yield JoinedEdge(there, here, edge.relation, forward, strength, edge.evidence, rule)


def sentence(edge: JoinedEdge, names: Mapping[int, str]) -> str:
    """An edge in words, with its derivation; an entity without a name is shown by its number.

    >>> names = {1: "Ann", 2: "Team X", 3: "Acme"}
    >>> steps = StatedRelation(1, "part_of", 2, 7), StatedRelation(2, "part_of", 3, 8)
    >>> sentence(JoinedEdge(3, 1, "part_of", True, 0.9, steps, "transitive"), names)
    'Ann —part of→ Acme, since Ann —part of→ Team X and Team X —part of→ Acme (transitive)'
    >>> sentence(JoinedEdge(1, 2, "part of", False, 1.0, steps[:1], None), names)
    'Ann —part of→ Team X'
    """
    ends = (edge.joined_to, edge.entity) if edge.forward else (edge.entity, edge.joined_to)
    text = triple_text(ends[0], edge.relation, ends[1], names)
    if edge.rule is None:
        return text
    *rest, last = (triple_text(step.source, step.relation, step.target, names) for step in edge.derivation)
    return f"{text}, since {' and '.join([', '.join(rest), last] if rest else [last])} ({edge.rule})"


def triple_text(source: int, relation: str, target: int, names: Mapping[int, str]) -> str:
    """A relation in words; an entity without a name is shown by its number."""
    first, second = (names.get(entity, str(entity)) for entity in (source, target))
    return f"{first} —{relation.replace('_', ' ')}→ {second}"
