"""Invariants for every set of relations and rules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from graph.forward_chaining import Edge, InferredRelation, Key, StatedRelation, infer
from graph.rules import Atom, Rule, RuleError, inverse, symmetric, transitive

NAMES = ("r", "s", "t")
VARIABLES = ("x", "y", "z", "w")
relations = st.sampled_from(NAMES)
variables = st.sampled_from(VARIABLES)
atoms = st.builds(Atom, variables, relations, variables)
stated = st.builds(
    StatedRelation, st.integers(0, 4), st.sampled_from(["r", "s", "t", "T"]), st.integers(0, 4), st.integers(0, 6)
)
graphs = st.lists(stated, max_size=10)


@st.composite
def custom(draw: st.DrawFn) -> Rule:
    """Any valid rule: connected premises, each tied to the ones before it."""
    while True:
        when = draw(st.lists(atoms, min_size=1, max_size=3))
        bound = sorted({variable for atom in when for variable in atom.variables})
        ends = st.sampled_from(bound)
        try:
            return Rule("custom", tuple(when), Atom(draw(ends), draw(relations), draw(ends)))
        except RuleError:
            continue


rule_sets = st.lists(
    st.one_of(
        st.builds(symmetric, relations),
        st.builds(transitive, relations),
        st.builds(lambda pair: inverse(*pair)[0], st.tuples(relations, relations).filter(lambda p: p[0] != p[1])),
        custom(),
    ),
    max_size=4,
)


def unbounded(edges: list[StatedRelation], rules: list[Rule]) -> list[InferredRelation]:
    return infer(edges, rules, max_inferred=10_000, max_rounds=1_000, max_tried=10**9)


def naive_rounds(edges: list[StatedRelation], rules: list[Rule]) -> Iterator[set[Key]]:
    """The additions of each round if every rule is tried on every choice of entities."""
    known = {edge.key for edge in edges}
    entities = sorted({end for source, _, target in known for end in (source, target)})
    while True:
        new: set[Key] = set()
        for rule in rules:
            used = sorted({variable for atom in rule.when for variable in atom.variables})
            for values in product(entities, repeat=len(used)):
                bound = dict(zip(used, values, strict=True))
                if all((bound[a.source_var], a.relation, bound[a.target_var]) in known for a in rule.when):
                    source, target = bound[rule.then.source_var], bound[rule.then.target_var]
                    if source != target:
                        new.add((source, rule.then.relation, target))
        if new <= known:
            return
        yield new - known
        known |= new


@given(graphs, rule_sets)
def test_as_much_as_by_trying_everything_and_as_early(edges: list[StatedRelation], rules: list[Rule]) -> None:
    """The rounds of the naive fixpoint are the depths."""
    found = unbounded(edges, rules)
    rounds = {key: depth for depth, new in enumerate(naive_rounds(edges, rules), start=1) for key in new}
    assert {edge.key: edge.depth for edge in found} == rounds
    assert len(found) == len(rounds)


@given(st.lists(st.builds(StatedRelation, st.integers(0, 7), st.just("r"), st.integers(0, 7), st.just(1)), max_size=20))
def test_transitive_is_the_transitive_closure(edges: list[StatedRelation]) -> None:
    graph = nx.DiGraph([(edge.source, edge.target) for edge in edges])
    closure = nx.transitive_closure(graph, reflexive=None)
    found = {(edge.source, edge.target) for edge in unbounded(edges, [transitive("r")])}
    assert found == {pair for pair in closure.edges if pair[0] != pair[1]} - set(graph.edges)


@given(graphs, rule_sets, st.integers(0, 12), st.integers(0, 3), st.integers(0, 60), st.randoms())
def test_the_order_of_the_input_does_not_matter(
    edges: list[StatedRelation],
    rules: list[Rule],
    max_inferred: int,
    max_rounds: int,
    max_tried: int,
    random: Random,
) -> None:
    """Not even if the bounds cut."""

    def found() -> list[InferredRelation]:
        return infer(edges, rules, max_inferred=max_inferred, max_rounds=max_rounds, max_tried=max_tried)

    before = found()
    random.shuffle(edges)
    random.shuffle(rules)
    assert found() == before


@given(graphs, rule_sets, st.integers(0, 12), st.integers(0, 4), st.integers(0, 60))
def test_bounds_are_kept_and_only_cut(
    edges: list[StatedRelation], rules: list[Rule], max_inferred: int, max_rounds: int, max_tried: int
) -> None:
    found = infer(edges, rules, max_inferred=max_inferred, max_rounds=max_rounds, max_tried=max_tried)
    assert len(found) <= max_inferred
    assert all(edge.depth <= max_rounds for edge in found)
    assert {edge.key for edge in found} <= {edge.key for edge in unbounded(edges, rules)}
    assert [edge.depth for edge in found] == sorted(edge.depth for edge in found)


@given(graphs, rule_sets)
def test_a_derivation_stands_on_its_evidence_alone(edges: list[StatedRelation], rules: list[Rule]) -> None:
    """The evidence alone implies the same, no deeper; the rule derives it from the premises."""
    known: dict[Key, Edge] = {edge.key: edge for edge in edges}
    for edge in unbounded(edges, rules):
        assert set(edge.evidence) <= set(edges)
        assert edge.depth == 1 + max(premise.depth for premise in edge.premises)
        assert all(premise.key in known for premise in edge.premises)
        again = {other.key: other for other in unbounded(list(edge.evidence), rules)}
        assert again[edge.key].depth == edge.depth
        known[edge.key] = edge
