"""Forward chaining: the relations that follow from stated ones by rules, each with its derivation.

Semi-naive evaluation (Bancilhon and Ramakrishnan, SIGMOD 1986, doi:10.1145/16856.16859): each round joins only the
edges of the previous round with all known ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import msgspec

from graph.rules import Atom, Rule, fold_relation

DECAY = 0.9
"""The confidence of an inferred relation is DECAY ** depth; a stated one has 1."""

MAX_TRIED = 4_096
"""Default limit on the edges that a call tries as premises: a few milliseconds of work."""

Key: TypeAlias = tuple[int, str, int]
"""Source, folded relation, target."""


class StatedRelation(NamedTuple):
    """A relation that a memory states, at depth 0."""

    source: int
    relation: str
    target: int
    doc: int

    @property
    def depth(self) -> int:
        """The number of rules applied: 0."""
        return 0

    @property
    def key(self) -> Key:
        """The statement itself, whichever memory makes it."""
        return self.source, fold_relation(self.relation), self.target

    @property
    def evidence(self) -> tuple[StatedRelation, ...]:
        """The edge itself."""
        return (self,)


BY_MEMORY = itemgetter(3, 0, 1, 2)
"""Sorts stated relations by the memory that states them."""


class InferredRelation(msgspec.Struct, frozen=True):
    """A relation inferred by a rule.

    Attributes:
        source, relation, target: the conclusion; the relation's name is folded.
        rule: name of the rule applied last.
        premises: in the order of the rule's premises.
        evidence: the stated relations that it rests on, each once, in the order of the premises.
        depth: 1 + the depth of the deepest premise.
    """

    source: int
    relation: str
    target: int
    rule: str
    premises: tuple[Edge, ...]
    evidence: tuple[StatedRelation, ...]
    depth: int

    @property
    def key(self) -> Key:
        """The conclusion, however it was inferred."""
        return self.source, self.relation, self.target


Edge: TypeAlias = StatedRelation | InferredRelation


def infer(
    edges: Iterable[StatedRelation],
    rules: Sequence[Rule],
    *,
    max_inferred: int,
    max_rounds: int,
    max_tried: int = MAX_TRIED,
) -> list[InferredRelation]:
    """Everything that follows from the edges, within the limits; independent of the order of the input.

    Of several derivations of an edge the shallowest is kept, then the one with the least evidence. A relation stated
    by several memories is taken from the latest.

    Returns edges between two distinct entities that are not stated, each once; by depth, at most `max_rounds`, then by
    size of the evidence, at most `max_inferred`. The search stops after `max_tried` edges tried as premises.

    >>> from graph.rules import transitive
    >>> stated = [StatedRelation(1, "part of", 2, 7), StatedRelation(2, "part of", 3, 8)]
    >>> [found] = infer(stated, [transitive("part_of")], max_inferred=10, max_rounds=4)
    >>> found.key, found.rule, found.depth, [edge.doc for edge in found.evidence]
    ((1, 'part_of', 3), 'transitive', 1, [7, 8])
    """
    plans = _plans(tuple(rules))
    facts = _Facts(plans, tries=iter(range(max_tried)))
    for stated in sorted(edges, key=BY_MEMORY, reverse=True):
        facts.add(stated)
    inferred: list[InferredRelation] = []
    fresh: Sequence[Edge] = list(facts.known.values())
    for depth in range(1, max_rounds + 1):
        found: dict[Key, tuple[_Rank, InferredRelation]] = {}
        for rule, premises, (source, target) in facts.matches(fresh):
            key = source, rule.then.relation, target
            if source == target or key in facts.known:
                continue
            evidence = tuple(dict.fromkeys(stated for premise in premises for stated in premise.evidence))
            rank = len(evidence), rule, tuple(premise.key for premise in premises)
            if key not in found or rank < found[key][0]:
                found[key] = rank, InferredRelation(*key, rule.name, premises, evidence, depth)
        ranked = sorted(found.items(), key=lambda item: (item[1][0][0], item[0]))
        fresh = new = [edge for _, (_, edge) in ranked[: max_inferred - len(inferred)]]
        if not new:
            break
        for edge in new:
            facts.add(edge)
        inferred += new
    return inferred


_Rank: TypeAlias = tuple[int, Rule, tuple[Key, ...]]
_Plans: TypeAlias = Mapping[str, Sequence[tuple[Rule, tuple[int, ...], bool]]]
_Choice: TypeAlias = tuple[Mapping[int, Edge], Mapping[str, int]]
"""Premises by their index in the rule, and the entities bound to its variables."""


@lru_cache(maxsize=64)
def _plans(rules: tuple[Rule, ...]) -> _Plans:
    """For each relation, the rules that have it as a premise and how to apply them.

    That is, the order in which to match the other premises, and whether the conclusion keeps the direction.
    """
    plans: dict[str, list[tuple[Rule, tuple[int, ...], bool]]] = {}
    for rule in sorted(set(rules)):
        for place, atom in enumerate(rule.when):
            plan = rule, rule.join_order(place), atom.source_var == rule.then.source_var
            plans.setdefault(atom.relation, []).append(plan)
    return plans


class _Facts:
    """Known edges by key, and by either end if a rule needs that; searches stop when `tries` is exhausted."""

    def __init__(self, plans: _Plans, *, tries: Iterator[int]) -> None:
        self._plans = plans
        self.known: dict[Key, Edge] = {}
        self._of_source: dict[tuple[int, str], list[Edge]] = defaultdict(list)
        self._of_target: dict[tuple[str, int], list[Edge]] = defaultdict(list)
        self._tries = tries

    def add(self, edge: Edge) -> None:
        """Add an edge unless one with the same key is known."""
        source, relation, target = key = edge.key
        if self.known.setdefault(key, edge) is not edge or relation not in self._plans:
            return
        self._of_source[source, relation].append(edge)
        self._of_target[relation, target].append(edge)

    def matches(self, fresh: Iterable[Edge]) -> Iterator[tuple[Rule, tuple[Edge, ...], tuple[int, int]]]:
        """Each match of a rule with a fresh edge (all of one depth): the premises and the ends of the conclusion."""
        for edge in fresh:
            source, relation, target = edge.key
            for rule, order, straight in self._plans.get(relation, ()):
                if len(order) == 1:  # its two variables are those of the conclusion
                    if next(self._tries, None) is not None:
                        yield rule, (edge,), (source, target) if straight else (target, source)
                    continue
                for chosen, bound in self._choose(rule, order, [edge], {}, {}):
                    premises = tuple(chosen[place] for place in range(len(order)))
                    yield rule, premises, (bound[rule.then.source_var], bound[rule.then.target_var])

    def _choose(
        self,
        rule: Rule,
        order: Sequence[int],
        offered: Sequence[Edge],
        chosen: Mapping[int, Edge],
        bound: Mapping[str, int],
    ) -> Iterator[_Choice]:
        """Try each offered edge as the next premise and match the remaining ones."""
        place = order[len(chosen)]
        atom = rule.when[place]
        for edge in offered:
            if next(self._tries, None) is None:
                return
            # Premises before the first fresh one must be older, or each fresh premise would yield the same match.
            if chosen and place < order[0] and edge.depth == chosen[order[0]].depth:
                continue
            extended = _bind(atom, edge, bound)
            if extended is None:
                continue
            choice = {**chosen, place: edge}
            if len(choice) == len(order):
                yield choice, extended
            else:
                following = self._fitting(rule.when[order[len(choice)]], extended)
                yield from self._choose(rule, order, following, choice, extended)

    def _fitting(self, atom: Atom, bound: Mapping[str, int]) -> Sequence[Edge]:
        """The edges that an atom may match, with one or both of its variables bound."""
        source, target = bound.get(atom.source_var), bound.get(atom.target_var)
        if source is None:
            return () if target is None else self._of_target.get((atom.relation, target), ())
        if target is None:
            return self._of_source.get((source, atom.relation), ())
        edge = self.known.get((source, atom.relation, target))
        return () if edge is None else (edge,)


def _bind(atom: Atom, edge: Edge, bound: Mapping[str, int]) -> Mapping[str, int] | None:
    """The bindings extended by those of an edge; None if they conflict."""
    extended = dict(bound)
    for variable, entity in zip(atom.variables, (edge.source, edge.target), strict=True):
        if extended.setdefault(variable, entity) != entity:
            return None
    return extended
