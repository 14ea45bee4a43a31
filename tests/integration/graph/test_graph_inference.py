"""Relations around some entities, stated and inferred, on the real tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

import httpx
import pytest
from psycopg import AsyncConnection

from graph import inference, store
from graph.forward_chaining import DECAY, StatedRelation
from graph.graph_rows import DocGraph, GivenRelation
from graph.inference import EACH_WAY, FAR, MAX_INFERRED, NEAR, JoinedEdge, joined, sentence
from graph.names import entity_id
from graph.rules import DEFAULT_RULES, Atom, Rule, inverse, symmetric, transitive
from retrieval.engine import Trivet
from retrieval.errors import InvalidInput
from retrieval.store import namespaces
from retrieval.store.pool import Pool
from retrieval.store.visibility import seen_by
from retrieval.types.memory import MemoryInput, RelationInput
from retrieval.types.namespace import CustomRule, InverseRule, NamespaceSettings, RuleInput
from retrieval.types.search import Filters, SearchOptions
from tests.serving import problem_of
from tests.snapshot import add_graphs, graph_of

NS = 7
_DELETE: LiteralString = "delete from memory where ns = %(ns)s and doc = %(doc)s"

ANN, BOB, CAT, DAN, EVE = map(entity_id, ("ann", "bob", "cat", "dan", "eve"))
NAMES = {entity_id(name): name.title() for name in ("ann", "bob", "cat", "dan", "eve")}
GRANDPARENT = Rule("grandparent", (Atom("x", "parent_of", "y"), Atom("y", "parent_of", "z")), Atom("x", "gp_of", "z"))


async def add(conn: AsyncConnection[Any], *relations: tuple[str, str, str], first: int = 1, ns: int = NS) -> None:
    """Memories of one relation each, numbered from `first`."""
    graphs = [DocGraph(doc, relations=[GivenRelation(*relation)]) for doc, relation in enumerate(relations, first)]
    await add_graphs(conn, ns, graphs)


async def around(
    conn: AsyncConnection[Any],
    active: Mapping[int, float],
    rules: Sequence[Rule] = (),
    *,
    ns: int = NS,
    eligible: LiteralString = "true",
    known: Sequence[int] = (),
    **params: Any,
) -> list[JoinedEdge]:
    graph, seen = await graph_of(conn, ns, eligible, **params)
    return joined(graph, seen, active, rules=rules, known=known)


def shown(edges: Sequence[JoinedEdge]) -> list[str]:
    return [sentence(edge, NAMES) for edge in edges]


def followed(edges: Sequence[JoinedEdge]) -> list[str]:
    return shown([edge for edge in edges if edge.rule is not None])


async def test_relations_of_memories_added_since_a_search_began_do_not_count(conn: AsyncConnection[Any]) -> None:
    """Its mask is shorter than the graph then."""
    await add(conn, ("ann", "met", "bob"), ("ann", "met", "cat"), ("bob", "met", "dan"))
    graph, seen = await graph_of(conn, NS)
    assert shown(joined(graph, seen[:2], {ANN: 1.0}, rules=[])) == ["Ann —met→ Bob"]


async def test_stated_relations_both_ways(conn: AsyncConnection[Any]) -> None:
    await add(conn, ("ann", "met", "bob"), ("cat", "Likes", "ann"), ("cat", "met", "dan"), ("ann", "met", "bob"))
    assert await around(conn, {ANN: 0.5}) == [
        JoinedEdge(*edge, 0.5, (stated,), None)
        for edge, stated in sorted(
            [
                ((BOB, ANN, "met", True), StatedRelation(ANN, "met", BOB, 4)),
                ((CAT, ANN, "Likes", False), StatedRelation(CAT, "Likes", ANN, 2)),
            ]
        )
    ]
    assert await around(conn, {ANN: 0.5}, known=[BOB, CAT]) == []
    assert await around(conn, {EVE: 1.0}, DEFAULT_RULES) == []
    assert await around(conn, {}, DEFAULT_RULES) == []


async def test_strongest_first_and_once_for_each_active_end(conn: AsyncConnection[Any]) -> None:
    await add(conn, ("ann", "met", "bob"), ("bob", "met", "cat"))
    found = await around(conn, {ANN: 0.4, BOB: 0.8}, [symmetric("met")])
    ends = [(edge.joined_to, edge.entity, round(edge.strength, 3), edge.rule) for edge in found]
    assert ends[:2] == [(BOB, other, 0.8, None) for other in sorted((ANN, CAT))]
    assert ends[2:4] == [(BOB, other, 0.72, "symmetric") for other in sorted((ANN, CAT))]
    assert ends[4:] == [(ANN, BOB, 0.4, None), (ANN, BOB, 0.36, "symmetric")]


@pytest.mark.parametrize(
    ("stated", "rules", "expected"),
    [
        (
            [("bob", "married to", "ann")],
            [symmetric("married_to")],
            "Ann —married to→ Bob, since Bob —married to→ Ann (symmetric)",
        ),
        (
            [("bob", "parent of", "ann")],
            inverse("parent_of", "child_of"),
            "Ann —child of→ Bob, since Bob —parent of→ Ann (inverse)",
        ),
        (
            [("ann", "part of", "bob"), ("bob", "part of", "cat")],
            [transitive("part_of")],
            "Ann —part of→ Cat, since Ann —part of→ Bob and Bob —part of→ Cat (transitive)",
        ),
        (
            [("cat", "parent of", "bob"), ("bob", "parent of", "ann")],
            [GRANDPARENT],
            "Cat —gp of→ Ann, since Cat —parent of→ Bob and Bob —parent of→ Ann (grandparent)",
        ),
    ],
)
async def test_each_kind_of_rule(
    conn: AsyncConnection[Any], stated: list[tuple[str, str, str]], rules: Sequence[Rule], expected: str
) -> None:
    """The conclusion appears with its evidence, and only with rules."""
    await add(conn, *stated)
    found = await around(conn, {ANN: 1.0}, rules)
    assert followed(found) == [expected]
    [edge] = [edge for edge in found if edge.rule is not None]
    assert {step.doc for step in edge.derivation} == set(range(1, len(stated) + 1))
    assert edge.strength == pytest.approx(DECAY)
    assert followed(await around(conn, {ANN: 1.0})) == []


async def test_default_rules_work_together(conn: AsyncConnection[Any]) -> None:
    """A part of a part, stated from both sides."""
    await add(conn, ("ann", "part of", "bob"), ("cat", "has part", "bob"))
    found = await around(conn, {ANN: 1.0}, DEFAULT_RULES)
    assert {(edge.entity, edge.relation, edge.forward) for edge in found if edge.entity == CAT} == {
        (CAT, "part_of", True),
        (CAT, "has_part", False),
    }
    assert min(edge.strength for edge in found) == pytest.approx(DECAY**3)


async def test_relations_two_steps_away_are_read_and_no_further(conn: AsyncConnection[Any]) -> None:
    await add(conn, ("ann", "in", "bob"), ("bob", "in", "cat"), ("cat", "in", "dan"))
    assert {edge.entity for edge in await around(conn, {ANN: 1.0}, [transitive("in")])} == {BOB, CAT}
    assert {edge.entity for edge in await around(conn, {CAT: 1.0}, [transitive("in")])} == {ANN, BOB, DAN}


async def test_an_inference_goes_with_any_memory_it_stands_on(conn: AsyncConnection[Any]) -> None:
    """And changes its evidence if another memory states the same."""
    await add(conn, ("ann", "in", "bob"), ("bob", "in", "cat"), ("bob", "in", "cat"))
    for gone, evidence in ((None, {1, 3}), (3, {1, 2}), (2, None)):
        if gone is not None:
            await conn.execute(_DELETE, {"ns": NS, "doc": gone})
            await store.write(conn, NS, (), removed=[gone])
        found = [edge for edge in await around(conn, {ANN: 1.0}, [transitive("in")]) if edge.rule is not None]
        assert [{step.doc for step in edge.derivation} for edge in found] == ([] if evidence is None else [evidence])


async def test_a_premise_that_the_query_may_not_see_proves_nothing(conn: AsyncConnection[Any]) -> None:
    """Whether it is near or far."""
    await add(conn, ("ann", "in", "bob"), ("bob", "in", "cat"), ("bob", "near", "ann"))
    rules = [transitive("in"), symmetric("near")]
    assert len(followed(await around(conn, {ANN: 1.0}, rules))) == 2
    for hidden, left in ((1, 1), (2, 1), (3, 1)):
        found = await around(conn, {ANN: 1.0}, rules, eligible="m.doc <> %(hidden)s", hidden=hidden)
        assert hidden not in {step.doc for edge in found for step in edge.derivation}
        assert len(followed(found)) == left
    seen = seen_by(SearchOptions(filters=Filters(tags_any=["t1", "t3"])))
    assert shown(await around(conn, {ANN: 1.0}, rules, eligible=seen.sql, **seen.parameters)) == shown(
        await around(conn, {ANN: 1.0}, rules, eligible="m.doc <> 2")
    )


async def test_nothing_comes_from_another_namespace(conn: AsyncConnection[Any]) -> None:
    """Neither a relation nor half of a derivation, although entities and memories have the same numbers."""
    await add(conn, ("ann", "in", "bob"), ("eve", "in", "dan"))
    await add(conn, ("dan", "in", "cat"), ("bob", "in", "cat"), ns=NS + 1)
    assert shown(await around(conn, {ANN: 1.0}, [transitive("in")])) == ["Ann —in→ Bob"]
    assert shown(await around(conn, {ANN: 1.0}, [transitive("in")], ns=NS + 1)) == []


async def test_hubs_stay_bounded(conn: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand relations each way at an active entity, and at one beside it."""
    spokes = [("ann", "in", f"out {at}") for at in range(1_000)] + [(f"in {at}", "in", "ann") for at in range(1_000)]
    await add(conn, *spokes, ("bob", "in", "ann"))
    for active in ({ANN: 1.0}, {BOB: 1.0}):
        found = await around(conn, active, [transitive("in"), symmetric("in")])
        stated = {step for edge in found for step in edge.derivation}
        assert len(stated) <= NEAR + FAR
        assert len({(e.entity, e.relation, e.forward) for e in found if e.rule is not None}) <= MAX_INFERRED
        assert len([e for e in found if e.rule is None]) <= 2 * EACH_WAY
    assert len(await around(conn, {ANN: 1.0})) == 2 * EACH_WAY
    for name, most in {"NEAR": 5, "FAR": 3, "MAX_INFERRED": 4}.items():
        monkeypatch.setattr(inference, name, most)
    found = await around(conn, {BOB: 1.0}, [transitive("in")])
    assert len(found) <= 1 + 4
    assert {len(edge.derivation) for edge in found} == {1, 2}


async def test_filters_hold_before_the_cut(conn: AsyncConnection[Any]) -> None:
    """The visible relations are found among more hidden ones."""
    await add(conn, *[("ann", "met", f"e{at}") for at in range(100)])
    found = await around(conn, {ANN: 1.0}, eligible="m.doc <= %(top)s", top=3)
    assert sorted(step.doc for edge in found for step in edge.derivation) == [1, 2, 3]


async def test_every_active_entity_gets_its_share(conn: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first relations of each entity come before the second ones, so that a hub does not displace the others."""
    await add(conn, *[("ann", "met", f"e{at}") for at in range(50)], ("bob", "met", "cat"), ("bob", "met", "dan"))
    monkeypatch.setattr(inference, "NEAR", 4)
    found = await around(conn, {ANN: 1.0, BOB: 0.1})
    assert sorted(edge.joined_to for edge in found) == sorted([ANN, ANN, BOB, BOB])


async def test_settings_are_kept_and_old_ones_have_the_default_rules(trivet: Trivet, pool: Pool) -> None:
    rules: list[RuleInput] = [
        InverseRule(relation="parent of", inverse="child of"),
        CustomRule(name="gp", when=[("x", "parent of", "y"), ("y", "parent of", "z")], then=("x", "gp of", "z")),
    ]
    info = await trivet.put_namespace("n", NamespaceSettings(rules=rules))
    assert info.settings.rules == rules
    async with pool.connection() as conn:
        stored = await namespaces.find(conn, "n")
        assert [rule.name for rule in stored.settings.graph_rules()] == ["inverse", "inverse", "gp"]
        await conn.execute("update namespace set settings = '{\"language\": \"english\"}' where name = 'n'")
        assert (await namespaces.find(conn, "n")).settings.graph_rules() == DEFAULT_RULES
    bad = CustomRule(name="b", when=[("x", "r", "y")], then=("x", "s", "z"))
    with pytest.raises(InvalidInput, match="'z'") as refused:
        await trivet.put_namespace("n", NamespaceSettings(rules=[bad]))
    assert refused.value.loc == ("rules", 0, "then")


async def test_the_rules_of_one_namespace_are_not_another_ones(trivet: Trivet, pool: Pool) -> None:
    """The same memories in both; inference follows the settings of each."""
    likes = MemoryInput(id="a", text="x", relations=[RelationInput(source="Bob", type="likes", target="Ann")])
    both = CustomRule(name="returned", when=[("x", "likes", "y")], then=("y", "likes", "x"))
    for name, settings in (("own", NamespaceSettings(rules=[both])), ("other", NamespaceSettings())):
        await trivet.put_namespace(name, settings)
        await trivet.add(name, [likes])
    async with pool.connection() as conn:
        found = {}
        for name in ("own", "other"):
            row = await namespaces.find(conn, name)
            found[name] = followed(await around(conn, {ANN: 1.0}, row.settings.graph_rules(), ns=row.ns))
    assert found == {"own": ["Ann —likes→ Bob, since Bob —likes→ Ann (returned)"], "other": []}


async def test_rules_over_http(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """Rules are returned as set; a bad rule is a 422 that names its place."""
    rules: list[dict[str, Any]] = [
        {"kind": "symmetric", "relation": "married_to"},
        {"kind": "inverse", "relation": "parent_of", "inverse": "child_of"},
        {"kind": "transitive", "relation": "located_in"},
        {"kind": "custom", "name": "gp", "when": [["x", "p", "y"], ["y", "p", "z"]], "then": ["x", "gp", "z"]},
    ]
    for given in (rules, [], None):
        answer = await client.put("/v1/namespaces/n", json={"rules": given})
        assert answer.status_code == 200, answer.text
        assert (await client.get("/v1/namespaces/n")).json()["settings"]["rules"] == given
    custom = rules[3]
    for bad, loc in (
        ({"kind": "reflexive", "relation": "a"}, [0, "kind"]),
        ({"kind": "symmetric"}, [0, "relation"]),
        ({"kind": "symmetric", "relation": " "}, [0]),
        ({**custom, "when": []}, [0, "when"]),
        ({**custom, "when": [["x", "p"]]}, [0, "when", 0]),
        ({**custom, "when": [["x", "p", "y"], ["z", "p", "w"]]}, [0, "when"]),
        ({**custom, "then": ["x", "gp", "w"]}, [0, "then"]),
        ({**custom, "more": 1}, [0, "more"]),
    ):
        with subtests.test(bad=bad):
            problem = problem_of(await client.put("/v1/namespaces/n", json={"rules": [bad]}), 422)
            assert [fault["loc"] for fault in problem["errors"]] == [["rules", *loc]]  # type: ignore[attr-defined]
    assert (await client.get("/openapi.json")).json()["components"]["schemas"]["CustomRule"]
