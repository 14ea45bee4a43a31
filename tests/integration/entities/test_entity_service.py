"""Entities: lists, pages, neighbours, paths, the whole graph, from the memories that a search may see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graph.visible import RECENT
from retrieval.engine import Trivet
from retrieval.entities import pages, service, view
from retrieval.errors import InvalidInput, NotFound
from retrieval.types.memory import EntityInput, MemoryInput, MemoryPatch, RelationInput
from retrieval.types.search import Filters, SearchOptions

DAY = datetime(2024, 3, 1, 12, tzinfo=UTC)
NS = "town"


def fact(number: int, text: str, *names: str, **fields: Any) -> MemoryInput:
    """A memory that mentions these names, one day after the one before."""
    return MemoryInput(
        id=f"m{number}", text=text, created_at=DAY + timedelta(days=number),
        entities=[EntityInput(name=name, type="person") for name in names], **fields,
    )  # fmt: skip


TOWN = [
    fact(0, "Ana met Bela at the market.", "Ana", "Bela", tags=["walk"]),
    fact(1, "Bela met Cleo.", "Bela", "Cleo"),
    fact(2, "Cleo met Dora.", "Cleo", "Dora"),
    fact(3, "Ana met Bela again.", "Ana", "Bela"),
    fact(4, "Dora works for Cleo.", relations=[RelationInput(source="Dora", type="works_at", target="Cleo")]),
    fact(5, "Emil is far away.", "Emil"),
    fact(6, "Ana called.", "Ana", kind="message", speaker="Ana"),
]


@pytest.fixture
async def town(trivet: Trivet) -> Trivet:
    """A namespace of a few people."""
    results = await trivet.add(NS, TOWN)
    assert {result.status for result in results} == {"created"}
    return trivet


async def ids_of(engine: Trivet, *names: str) -> list[str]:
    listed = (await engine.entities.list(NS, words=True, limit=1_000)).entities
    by_name = {entity.name: entity.id for entity in listed}
    return [by_name[name] for name in names]


async def test_the_most_mentioned_come_first(town: Trivet) -> None:
    listed = (await town.entities.list(NS)).entities
    counts = {entity.name: entity.mentions for entity in listed}
    assert counts == {"Ana": 3, "Bela": 3, "Cleo": 3, "Dora": 2, "Emil": 1}
    assert [entity.mentions for entity in listed] == [3, 3, 3, 2, 1]
    assert {entity.type for entity in listed} == {"person"}


async def test_words_are_listed_where_they_are_asked_for(town: Trivet) -> None:
    assert "market" not in {each.name for each in (await town.entities.list(NS)).entities}
    for listed in (
        await town.entities.list(NS, words=True),
        await town.entities.list(NS, q="Mark"),
        await town.entities.list(NS, types=["term"]),
    ):
        assert "market" in {each.name for each in listed.entities}


async def test_pages_of_a_list_are_the_whole_list(town: Trivet) -> None:
    whole = (await town.entities.list(NS, words=True, limit=1_000)).entities
    found, cursor = [], None
    while True:
        page = await town.entities.list(NS, words=True, cursor=cursor, limit=2)
        assert len(page.entities) <= 2
        found += page.entities
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == whole
    assert len(whole) > 6


async def test_a_cursor_that_no_page_gave_is_refused(town: Trivet, subtests: pytest.Subtests) -> None:
    for cursor in ("", "3", "x.0000000000000000", "3.000000000000000g", "-3.0000000000000000"):
        with subtests.test(cursor=cursor):
            with pytest.raises(InvalidInput) as refused:
                await town.entities.list(NS, cursor=cursor)
            assert refused.value.loc == ("cursor",)


async def test_names_are_found_by_a_part_of_them_or_of_an_alias(town: Trivet) -> None:
    frida = MemoryInput(text="Frida paints.", entities=[EntityInput(name="Frida Kahlo", aliases=["La Heroína"])])
    await town.add(NS, [frida])
    for part in ("a kah", "KAHLO", "heroína", "HEROINA", "la her", "káhlo"):
        assert [each.name for each in (await town.entities.list(NS, q=part)).entities] == ["Frida Kahlo"], part
    for name in ("東京ガス", "हिन्दी"):
        await town.add(NS, [MemoryInput(text="New.", entities=[EntityInput(name=name)])])
        assert [each.name for each in (await town.entities.list(NS, q=name[1:])).entities] == [name]
    for name, part in (("Łukasz Żak", "lukasz zak"), ("محمد", "مُحَمَّد")):
        await town.add(NS, [MemoryInput(text="New.", entities=[EntityInput(name=name)])])
        assert [each.name for each in (await town.entities.list(NS, q=part)).entities] == [name]
    assert (await town.entities.list(NS, q="nobody")).entities == []
    assert (await town.entities.list(NS, q="kahlo", types=["person"])).entities == []
    with pytest.raises(InvalidInput):
        await town.entities.list(NS, q=" \u200b")


async def test_a_page_says_what_is_known(town: Trivet) -> None:
    (cleo,) = await ids_of(town, "Cleo")
    page = await town.entities.page(NS, cleo)
    assert (page.id, page.name, page.type, page.mentions) == (cleo, "Cleo", "person", 3)
    assert [memory.id for memory in page.memories] == ["m4", "m2", "m1"]
    assert (page.first_mentioned_at, page.last_mentioned_at) == (TOWN[1].created_at, TOWN[4].created_at)
    (relation,) = page.relations
    assert (relation.source.name, relation.type, relation.target.name) == ("Dora", "works_at", "Cleo")
    assert (relation.memories, relation.evidence) == (1, ["m4"])
    assert [(met.name, met.memories, met.evidence) for met in page.met_with] == [
        ("Dora", 2, ["m4", "m2"]), ("Bela", 1, ["m1"])
    ]  # fmt: skip
    assert page.profile == [
        "Dora —works at→ Cleo",
        "2024-03-05: Dora works for Cleo.",
        "2024-03-03: Cleo met Dora.",
        "2024-03-02: Bela met Cleo.",
    ]
    assert not page.truncated
    assert page.merged == []


async def test_the_memories_of_a_page_come_in_pages(town: Trivet) -> None:
    (ana,) = await ids_of(town, "Ana")
    found, cursor = [], None
    for _ in range(3):
        page = await town.entities.page(NS, ana, cursor=cursor, limit=1)
        found += [memory.id for memory in page.memories]
        cursor = page.next_cursor
    assert (found, cursor) == (["m6", "m3", "m0"], None)
    with pytest.raises(InvalidInput):
        await town.entities.page(NS, ana, cursor="m3")


async def test_only_visible_memories_are_evidence(town: Trivet) -> None:
    past = datetime(2024, 1, 1, tzinfo=UTC)
    await town.add(
        NS,
        [
            fact(7, "Ana met Fina, until now.", "Ana", "Fina", expires_at=past + timedelta(days=90)),
            fact(8, "Ana left.", "Ana", supersedes="m6"),
        ],
    )
    (ana,) = await ids_of(town, "Ana")
    page = await town.entities.page(NS, ana)
    assert [memory.id for memory in page.memories] == ["m8", "m3", "m0"]
    assert "Fina" not in {met.name for met in page.met_with}
    assert "Fina" not in {each.name for each in (await town.entities.list(NS)).entities}
    options = SearchOptions(as_of=DAY + timedelta(days=7, hours=1))
    then = await town.entities.page(NS, ana, options)
    assert [memory.id for memory in then.memories] == ["m7", "m6", "m3", "m0"]
    assert "Fina" in {met.name for met in then.met_with}
    superseded = await town.entities.page(NS, ana, SearchOptions(include_superseded=True))
    assert [memory.id for memory in superseded.memories] == ["m8", "m6", "m3", "m0"]
    tagged = await town.entities.page(NS, ana, SearchOptions(filters=Filters(tags_any=["walk"])))
    assert [memory.id for memory in tagged.memories] == ["m0"]
    fina = next(met.id for met in then.met_with if met.name == "Fina")
    forgotten = await town.entities.page(NS, fina)
    assert (forgotten.mentions, forgotten.memories, forgotten.met_with, forgotten.profile) == (0, [], [], [])
    assert forgotten.first_mentioned_at is None


async def test_what_is_deleted_is_gone_with_its_entities(town: Trivet) -> None:
    (emil,) = await ids_of(town, "Emil")
    await town.delete(NS, "m5")
    with pytest.raises(NotFound):
        await town.entities.page(NS, emil)


async def test_an_id_of_no_entity_is_not_found(town: Trivet, subtests: pytest.Subtests) -> None:
    for unknown in ("", "0123456789abcdef", "0123456789ABCDEF", "Ana", "1" * 17, "..", "０" * 16):
        for namespace in (NS, "nowhere"):
            with subtests.test(unknown=unknown, namespace=namespace), pytest.raises(NotFound):
                await town.entities.page(namespace, unknown)


async def test_neighbours_come_by_distance(town: Trivet) -> None:
    (ana,) = await ids_of(town, "Ana")
    near = await town.entities.neighbors(NS, ana)
    assert [(each.name, each.hops) for each in near.neighbors] == [("Bela", 1)]
    assert (near.neighbors[0].mentions, near.neighbors[0].strength) == (3, 1.0)
    (edge,) = near.edges
    assert (edge.type, edge.memories, edge.evidence) == (None, 2, ["m3", "m0"])
    far = await town.entities.neighbors(NS, ana, hops=3)
    assert [(each.name, each.hops) for each in far.neighbors] == [("Bela", 1), ("Cleo", 2), ("Dora", 3)]
    assert {edge.type for edge in far.edges} == {None, "works_at"}
    strengths = [each.strength for each in far.neighbors]
    assert strengths == sorted(strengths, reverse=True)
    assert not far.truncated
    cut = await town.entities.neighbors(NS, ana, hops=3, limit=1)
    assert [each.name for each in cut.neighbors] == ["Bela"]
    assert cut.truncated
    assert len(cut.edges) == 1


async def test_neighbours_from_which_the_next_hop_does_not_start_are_told(
    town: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MAX_EXPANDED", 1)
    (bela,) = await ids_of(town, "Bela")
    assert not (await town.entities.neighbors(NS, bela)).truncated
    assert (await town.entities.neighbors(NS, bela, hops=2)).truncated


async def test_a_tie_has_the_evidence_of_the_end_that_knows_more(town: Trivet) -> None:
    """Of an entity with many memories only the latest are read."""
    alone = [fact(number, "Emil is alone.", "Emil") for number in range(101, 100 + RECENT)]
    both = [fact(number, "Emil met Fay.", "Emil", "Fay") for number in (100, 100 + RECENT)]
    await town.add(NS, [both[0], *alone, both[1]])
    (emil,) = await ids_of(town, "Emil")
    for hops, memories in ((1, 1), (2, 2)):
        (edge,) = (await town.entities.neighbors(NS, emil, hops=hops)).edges
        assert edge.memories == memories


async def test_paths_lead_over_those_who_met(town: Trivet) -> None:
    ana, bela, dora, emil = await ids_of(town, "Ana", "Bela", "Dora", "Emil")
    (path,) = (await town.entities.paths(NS, ana, dora)).paths
    assert [each.name for each in path.entities] == ["Ana", "Bela", "Cleo", "Dora"]
    assert [(edge.type, edge.evidence) for edge in path.edges] == [
        (None, ["m3", "m0"]), (None, ["m1"]), (None, ["m4", "m2"]), ("works_at", ["m4"])
    ]  # fmt: skip
    assert (await town.entities.paths(NS, ana, dora, max_hops=2)).paths == []
    assert (await town.entities.paths(NS, ana, emil, max_hops=4)).paths == []
    (direct,) = (await town.entities.paths(NS, bela, ana, max_hops=1)).paths
    assert [each.name for each in direct.entities] == ["Bela", "Ana"]
    with pytest.raises(InvalidInput) as refused:
        await town.entities.paths(NS, ana, ana)
    assert refused.value.loc == ("target",)


async def test_the_whole_graph_has_communities_and_centrality(town: Trivet) -> None:
    whole = await town.entities.graph(NS)
    by_name = {node.name: node for node in whole.nodes}
    assert set(by_name) == {"Ana", "Bela", "Cleo", "Dora", "Emil"}
    assert by_name["Ana"].community == by_name["Bela"].community
    assert by_name["Cleo"].community == by_name["Dora"].community != by_name["Ana"].community
    assert sum(node.centrality for node in whole.nodes) == pytest.approx(1, abs=1e-4)
    assert min(whole.nodes, key=lambda node: node.centrality).name == "Emil"
    stated = [edge for edge in whole.edges if edge.type is not None]
    assert [(edge.source, edge.target, edge.evidence) for edge in stated] == [
        (by_name["Dora"].id, by_name["Cleo"].id, ["m4"])
    ]
    assert sorted(edge.memories for edge in whole.edges if edge.type is None) == [1, 2, 2]
    assert not whole.truncated
    few = await town.entities.graph(NS, limit=2)
    assert len(few.nodes) == 2
    assert few.truncated
    assert await town.entities.graph(NS) == whole
    nothing = await town.entities.graph(NS, SearchOptions(as_of=DAY - timedelta(days=1)))
    assert (nothing.nodes, nothing.edges, nothing.truncated) == ([], [], False)


async def test_the_deadline_cuts_and_says_so(town: Trivet, monkeypatch: pytest.MonkeyPatch) -> None:
    ana, dora = await ids_of(town, "Ana", "Dora")
    monkeypatch.setattr(view, "DEADLINE_S", -1.0)
    near = await town.entities.neighbors(NS, ana, hops=3)
    assert (near.neighbors, near.truncated) == ([], True)
    found = await town.entities.paths(NS, ana, dora)
    assert (found.paths, found.truncated) == ([], True)


async def test_words_take_no_places_of_names(town: Trivet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A speaker's topics exceed a limit, and none of them is shown."""
    (ana,) = await ids_of(town, "Ana")
    await town.add(NS, [fact(7, "Ana talked about gardens, kitchens, bicycles and mountains.", "Ana")])
    monkeypatch.setattr(view, "MAX_TIES", 3)
    monkeypatch.setattr(pages, "MAX_TIES", 3)
    near = await town.entities.neighbors(NS, ana)
    assert ([each.name for each in near.neighbors], near.truncated) == (["Bela"], False)
    page = await town.entities.page(NS, ana)
    assert ([met.name for met in page.met_with], page.truncated) == (["Bela"], False)
    assert (await town.entities.neighbors(NS, ana, words=True)).truncated


async def test_limits_cut_and_say_so(town: Trivet, monkeypatch: pytest.MonkeyPatch) -> None:
    (bela,) = await ids_of(town, "Bela")
    monkeypatch.setattr(view, "MAX_TIES", 1)
    near = await town.entities.neighbors(NS, bela)
    assert ([each.name for each in near.neighbors], near.truncated) == (["Ana"], True)
    monkeypatch.setattr(pages, "MAX_MET", 1)
    page = await town.entities.page(NS, bela)
    assert ([met.name for met in page.met_with], page.truncated) == (["Ana"], True)
    for limit, left in (("MAX_EDGES", 1), ("MAX_DOCS", 0)):  # the latest memory mentions one entity alone
        with monkeypatch.context() as patch:
            patch.setattr(service, limit, 1)
            whole = await town.entities.graph(NS)
            assert (sum(edge.type is None for edge in whole.edges), whole.truncated) == (left, True)


async def test_a_namespace_does_not_see_another(town: Trivet) -> None:
    await town.add("elsewhere", [fact(0, "Ana met Zita.", "Ana", "Zita")])
    (ana,) = await ids_of(town, "Ana")
    there = await town.entities.page("elsewhere", ana)
    assert ([memory.snippet for memory in there.memories], there.mentions) == (["Ana met Zita."], 1)
    receipt = await town.entities.merge("elsewhere", ana, next(met.id for met in there.met_with))
    assert (await town.entities.page(NS, ana)).mentions == 3
    with pytest.raises(NotFound):
        await town.entities.separate(NS, receipt.merge_id)
    assert (await town.entities.page("elsewhere", ana)).name == "Zita"


async def test_who_is_called_alike_is_another(trivet: Trivet) -> None:
    """Nicolas is not Nicola, and a name that a caller gave a type is nobody's alias."""
    given = [EntityInput(name="Nicolas", type="person"), EntityInput(name="Maria", type="person")]
    await trivet.add(NS, [MemoryInput(id="a", text="New.", entities=given)])
    await trivet.add(
        NS, [MemoryInput(id="b", text="New.", entities=[EntityInput(name="Ana Silva", aliases=["Maria"])])]
    )
    said = {"c": "Nicola is allergic to peanuts.", "d": "Maria is allergic to nuts.", "e": "Andreas has a new phone."}
    await trivet.add(NS, [MemoryInput(id=id_, text=text) for id_, text in said.items()])

    async def mentioned(name: str) -> list[str]:
        (entity,) = await ids_of(trivet, name)
        return [memory.id for memory in (await trivet.entities.page(NS, entity)).memories]

    assert await mentioned("Nicolas") == ["a"]
    assert await mentioned("Nicola") == ["c"]
    assert await mentioned("Ana Silva") == ["b"]
    assert await mentioned("Maria") == ["d", "a"]
    assert await mentioned("Andreas") == ["e"]


async def test_a_name_with_accents_begins_a_sentence(trivet: Trivet) -> None:
    await trivet.add(NS, [MemoryInput(id="a", text="José has a new car.")])
    assert [entity.name for entity in (await trivet.entities.list(NS)).entities] == ["José"]


@pytest.mark.parametrize("at_once", [False, True])
async def test_who_is_named_without_a_type_keeps_the_one_that_was_given(trivet: Trivet, at_once: bool) -> None:
    for order in (["person", None], [None, "person"]):
        typed = {None: EntityInput(name="Ana"), "person": EntityInput(name="Ana", type="person")}
        said = [MemoryInput(id=f"{type_}", text="x", entities=[typed[type_]]) for type_ in order]
        for batch in [said] if at_once else [[each] for each in said]:
            await trivet.add(NS, batch)
        assert [(each.name, each.type) for each in (await trivet.entities.list(NS)).entities] == [("Ana", "person")]
        await trivet.delete(NS, "None")
        assert [each.type for each in (await trivet.entities.list(NS)).entities] == ["person"]
        await trivet.delete(NS, "person")


async def test_a_type_goes_with_the_last_memory_that_gave_it(trivet: Trivet) -> None:
    async def types() -> dict[str, str]:
        return {each.name: each.type for each in (await trivet.entities.list(NS)).entities}

    def given(memory_id: str, name: str, type_: str) -> MemoryInput:
        return MemoryInput(id=memory_id, text="Of ANA.", entities=[EntityInput(name=name, type=type_)])

    await trivet.add(NS, [given("a", "Ana", "debtor"), given("b", "Bela", "debtor"), given("c", "ANA!", "debtor")])
    await trivet.delete(NS, "a")
    assert await types() == {"Ana": "debtor", "Bela": "debtor"}
    await trivet.delete(NS, "c")
    assert await types() == {"Ana": "thing", "Bela": "debtor"}
    await trivet.add(NS, [given("b", "Bela", "friend"), MemoryInput(text="Hello.", kind="message", speaker="Ana")])
    assert await types() == {"Ana": "speaker", "Bela": "friend"}
    await trivet.patch(NS, "b", MemoryPatch(entities=[EntityInput(name="Bela", type="person")]))
    await trivet.add(NS, [given("d", "Bela", "vendor")])
    assert await types() == {"Ana": "speaker", "Bela": "vendor"}
    await trivet.delete(NS, "d")
    assert await types() == {"Ana": "speaker", "Bela": "person"}
