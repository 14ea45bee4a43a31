"""Rules: which are valid, and what they infer from a few relations."""

from __future__ import annotations

import pytest

from graph.forward_chaining import InferredRelation, StatedRelation, infer
from graph.inference import JoinedEdge, sentence
from graph.rules import (
    DEFAULT_RULES,
    MAX_RULES,
    Atom,
    Rule,
    RuleError,
    fold_relation,
    inverse,
    symmetric,
    transitive,
)
from retrieval.errors import InvalidInput
from retrieval.types.namespace import (
    CustomRule,
    InverseRule,
    NamespaceSettings,
    RuleInput,
    SymmetricRule,
    TransitiveRule,
)

ANN, BOB, CAT, DAN, EVE = range(1, 6)
GRANDPARENT = Rule("grandparent", (Atom("x", "parent_of", "y"), Atom("y", "parent_of", "z")), Atom("x", "gp", "z"))


def inferred(edges: list[StatedRelation], *rules: Rule) -> list[InferredRelation]:
    return infer(edges, rules, max_inferred=100, max_rounds=10)


def said(edges: list[InferredRelation]) -> list[tuple[int, str, int]]:
    return [edge.key for edge in edges]


@pytest.mark.parametrize(
    ("name", "when", "then", "loc"),
    [
        (" ", [("x", "r", "y")], ("y", "r", "x"), ("name",)),
        ("r", [], ("y", "r", "x"), ("when",)),
        ("r", [("x", "r", "y")] * 4, ("y", "r", "x"), ("when",)),
        ("r", [("x", "r", "y"), ("y", "- _", "z")], ("x", "r", "z"), ("when", 1)),
        ("r", [("", "r", "y")], ("y", "s", "y"), ("when", 0)),
        ("r", [("x", "r", "y")], ("y", " ", "x"), ("then",)),
        ("r", [("x", "r", "y")], ("x", "r", "z"), ("then",)),
        ("r", [("x", "r", "y"), ("z", "r", "w")], ("x", "r", "z"), ("when",)),
        ("r", [("x", "r", "y")], ("x", "s", "x"), ("then",)),
        ("r", [("x", "r of", "y")], ("x", "R-of", "y"), ("then",)),
        ("r", [("x", "r", "y"), ("y", "r", "z")], ("y", "r", "z"), ("then",)),
    ],
)
def test_a_rule_that_cannot_be_used_says_where(
    name: str, when: list[tuple[str, str, str]], then: tuple[str, str, str], loc: tuple[str | int, ...]
) -> None:
    """Alone it is a `RuleError`, in settings an `InvalidInput` with the place in the list before it."""
    with pytest.raises(RuleError) as refused:
        Rule(name, tuple(Atom(*atom) for atom in when), Atom(*then))
    assert refused.value.loc == loc
    settings = NamespaceSettings(rules=[SymmetricRule(relation="ok"), CustomRule(name=name, when=when, then=then)])
    with pytest.raises(InvalidInput) as invalid:
        settings.graph_rules()
    assert invalid.value.loc == ("rules", 1, *loc)


def test_settings_name_rules_that_say_nothing() -> None:
    """The fields of the short forms are not those of the rule they stand for, whose variables are not told."""
    for bad in (SymmetricRule(relation="-"), InverseRule(relation="a", inverse=" "), TransitiveRule(relation="_")):
        with pytest.raises(InvalidInput, match="a relation must") as invalid:
            NamespaceSettings(rules=[bad]).graph_rules()
        assert invalid.value.loc == ("rules", 0)


def test_settings_hold_64_rules_of_which_an_inverse_is_two() -> None:
    pairs: list[RuleInput] = [InverseRule(relation=f"r{at}", inverse=f"s{at}") for at in range(33)]
    assert len(NamespaceSettings(rules=pairs[:32]).graph_rules()) == MAX_RULES
    with pytest.raises(InvalidInput, match="there are 66") as invalid:
        NamespaceSettings(rules=pairs).graph_rules()
    assert invalid.value.loc == ("rules",)


def test_the_default_rules_are_in_force_unless_something_is_set() -> None:
    assert len(DEFAULT_RULES) <= MAX_RULES
    assert NamespaceSettings().graph_rules() == DEFAULT_RULES
    assert NamespaceSettings(rules=[]).graph_rules() == ()
    assert len(set(DEFAULT_RULES)) == len(DEFAULT_RULES)


@pytest.mark.parametrize(
    ("stated", "follows"),
    [
        ("married to", ["married_to"]),
        ("parent_of", ["child_of"]),
        ("Works At", ["employs"]),
        ("works-for", ["employs", "works_at"]),
        ("owned by", ["owns"]),
        ("likes", []),
    ],
)
def test_default_rules(stated: str, follows: list[str]) -> None:
    assert [edge.relation for edge in inferred([StatedRelation(ANN, stated, BOB, 7)], *DEFAULT_RULES)] == follows


def test_names_of_relations_are_compared_folded() -> None:
    assert fold_relation("  Is  Part-of_") == "is_part_of"
    edges = [StatedRelation(ANN, "Married to", BOB, 7), StatedRelation(BOB, "MARRIED-TO", ANN, 8)]
    assert inferred(edges, symmetric("married_to")) == []


def test_each_kind_of_rule() -> None:
    assert said(inferred([StatedRelation(ANN, "near", BOB, 7)], symmetric("near"))) == [(BOB, "near", ANN)]
    both = [StatedRelation(ANN, "parent of", BOB, 7), StatedRelation(DAN, "child of", CAT, 8)]
    assert said(inferred(both, *inverse("parent_of", "child_of"))) == [(BOB, "child_of", ANN), (CAT, "parent_of", DAN)]
    chain = [StatedRelation(ANN, "in", BOB, 7), StatedRelation(BOB, "in", CAT, 8)]
    assert said(inferred(chain, transitive("in"))) == [(ANN, "in", CAT)]
    parents = [StatedRelation(ANN, "parent of", BOB, 7), StatedRelation(BOB, "parent of", CAT, 8)]
    assert said(inferred(parents, GRANDPARENT)) == [(ANN, "gp", CAT)]


def test_a_derivation_goes_down_to_what_memories_state() -> None:
    """A grandparent by way of a child_of: the premise is itself inferred."""
    edges = [StatedRelation(BOB, "child of", ANN, 7), StatedRelation(BOB, "parent of", CAT, 8)]
    found = {edge.key: edge for edge in inferred(edges, *inverse("parent_of", "child_of"), GRANDPARENT)}
    grand = found[ANN, "gp", CAT]
    assert [premise.key for premise in grand.premises] == [(ANN, "parent_of", BOB), (BOB, "parent_of", CAT)]
    assert grand.evidence == tuple(edges)
    assert (grand.rule, grand.depth) == ("grandparent", 2)


def test_the_shortest_derivation_wins() -> None:
    """First the least deep, then the least evidence; of memories that state the same the latest."""
    longer = [StatedRelation(ANN, "in", BOB, 1), StatedRelation(BOB, "in", CAT, 2), StatedRelation(CAT, "in", DAN, 3)]
    [found] = [e for e in inferred(longer, transitive("in")) if e.key == (ANN, "in", DAN)]
    assert (found.depth, len(found.evidence)) == (2, 3)
    shorter = [
        *longer,
        StatedRelation(ANN, "in", EVE, 4),
        StatedRelation(EVE, "in", DAN, 5),
        StatedRelation(EVE, "In", DAN, 9),
    ]
    [found] = [e for e in inferred(shorter, transitive("in")) if e.key == (ANN, "in", DAN)]
    assert (found.depth, sorted(edge.doc for edge in found.evidence)) == (1, [4, 9])
    via = Rule("via", (Atom("x", "in", "y"), Atom("y", "in", "z"), Atom("z", "in", "w")), Atom("x", "in", "w"))
    [found] = [e for e in inferred(shorter, via, transitive("in")) if e.key == (ANN, "in", DAN)]
    assert found.rule == "transitive"


def test_nothing_is_joined_to_itself_or_said_twice() -> None:
    circle = [StatedRelation(ANN, "in", BOB, 1), StatedRelation(BOB, "in", CAT, 2), StatedRelation(CAT, "in", ANN, 3)]
    found = inferred(circle, transitive("in"), symmetric("in"))
    assert sorted(said(found)) == [(ANN, "in", CAT), (BOB, "in", ANN), (CAT, "in", BOB)]
    assert inferred([StatedRelation(ANN, "in", ANN, 1)], symmetric("in"), transitive("in")) == []


def test_bounds() -> None:
    chain = [StatedRelation(at, "in", at + 1, at) for at in range(40)]
    whole = infer(chain, [transitive("in")], max_inferred=10_000, max_rounds=10, max_tried=10**6)
    assert len(whole) == 41 * 40 / 2 - 40
    assert {e.depth for e in infer(chain, [transitive("in")], max_inferred=10_000, max_rounds=2)} == {1, 2}
    assert infer(chain, [transitive("in")], max_inferred=60, max_rounds=10) == whole[:60]
    assert infer(chain, [transitive("in")], max_inferred=0, max_rounds=10) == []
    assert infer(chain, [transitive("in")], max_inferred=100, max_rounds=10, max_tried=0) == []
    assert 0 < len(infer(chain, [transitive("in")], max_inferred=100, max_rounds=10, max_tried=30)) <= 15


def test_a_sentence_reads_well() -> None:
    names = {ANN: "Ann", BOB: "Bob", CAT: "Cat", DAN: "Dan"}
    married = StatedRelation(BOB, "married to", ANN, 1)
    edge = JoinedEdge(BOB, ANN, "married_to", True, 0.9, (married,), "symmetric")
    assert sentence(edge, names) == "Ann —married to→ Bob, since Bob —married to→ Ann (symmetric)"
    steps = (StatedRelation(ANN, "in", BOB, 1), StatedRelation(BOB, "in", CAT, 2), StatedRelation(CAT, "in", EVE, 3))
    assert (
        sentence(JoinedEdge(ANN, EVE, "in", False, 0.8, steps, "transitive"), names)
        == "Ann —in→ 5, since Ann —in→ Bob, Bob —in→ Cat and Cat —in→ 5 (transitive)"
    )
