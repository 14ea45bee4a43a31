"""Aliases and merges by hand: their effect on searches and pages, and that undoing a merge leaves no trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import msgspec
import psycopg
import pytest

from retrieval.engine import Trivet
from retrieval.errors import Conflict, InvalidInput, NotFound
from retrieval.types.entity import AliasChange
from retrieval.types.memory import EntityInput, MemoryInput, RelationInput
from retrieval.types.search import ContextRequest, Mode, SearchRequest
from tests.integration.entities.test_entity_service import DAY, fact
from tests.serving import settings_for

NS = "family"

FAMILY = [
    fact(0, "Melanie Brown bought a house.", "Melanie Brown"),
    fact(1, "She and Caroline painted it.", "Melanie Brown", "Caroline"),
    fact(2, "Tess sings on Fridays.", "Tess"),
    fact(3, "Tess met Oscar.", "Tess", "Oscar"),
    fact(4, "Both names are known.", "Tess", "Melanie Brown"),
    fact(5, "They like each other.", relations=[
        RelationInput(source="Tess", type="friend_of", target="Oscar"),
        RelationInput(source="Melanie Brown", type="friend_of", target="Oscar"),
        RelationInput(source="Tess", type="known_as", target="Melanie Brown"),
    ]),
    fact(6, "Nothing of this.", "Zoe"),
]  # fmt: skip


@pytest.fixture
async def family(trivet: Trivet) -> Trivet:
    results = await trivet.add(NS, FAMILY)
    assert {result.status for result in results} == {"created"}
    return trivet


@pytest.fixture
async def beside(family: Trivet, database_url: str) -> AsyncIterator[Trivet]:
    """Another process of the same database, which has the namespace loaded."""
    async with Trivet.open(settings_for(database_url)) as engine:
        await found(engine, "Tess")
        yield engine


async def id_of(engine: Trivet, name: str) -> str:
    listed = (await engine.entities.list(NS, words=True, limit=1_000)).entities
    return next(entity.id for entity in listed if entity.name == name)


async def found(engine: Trivet, query: str) -> set[str]:
    """The memories that the graph leg finds without a hop: those that mention the query's entities."""
    answer = await engine.search(NS, SearchRequest(query=query, mode=Mode.GRAPH, max_hops=0, top_k=50))
    assert not answer.degraded
    return {result.id for result in answer.results}


async def test_what_is_merged_is_found_by_each_name_in_every_process(family: Trivet, beside: Trivet) -> None:
    for engine in (family, beside):
        assert await found(engine, "Tess") == {"m2", "m3", "m4", "m5"}
    tess, melanie = await id_of(family, "Tess"), await id_of(family, "Melanie Brown")
    receipt = await family.entities.merge(NS, tess, melanie)
    assert receipt.entity.id == melanie
    assert receipt.entity.mentions == 6
    for engine in (family, beside):
        for name in ("Tess", "Melanie Brown", "Melanie"):
            assert await found(engine, name) == {"m0", "m1", "m2", "m3", "m4", "m5"}, name
        page = await engine.entities.page(NS, tess)
        assert (page.id, page.name, page.mentions, page.aliases) == (melanie, "Melanie Brown", 6, ["Tess"])
        assert [(each.merge_id, each.id, each.name) for each in page.merged] == [(receipt.merge_id, tess, "Tess")]
        assert [(each.source.name, each.type, each.memories) for each in page.relations] == [
            ("Melanie Brown", "friend_of", 1)
        ]
        assert "Tess" not in {each.name for each in (await engine.entities.list(NS)).entities}
        assert [each.name for each in (await engine.entities.list(NS, q="tess")).entities] == ["Melanie Brown"]
    await family.entities.separate(NS, receipt.merge_id)
    for engine in (family, beside):
        assert await found(engine, "Tess") == {"m2", "m3", "m4", "m5"}
        assert (await engine.entities.page(NS, tess)).name == "Tess"


async def test_a_merge_holds_for_what_is_written_later_and_undone_it_goes_where_it_says(
    family: Trivet, beside: Trivet
) -> None:
    tess, melanie = await id_of(family, "Tess"), await id_of(family, "Melanie Brown")
    receipt = await family.entities.merge(NS, tess, melanie)
    await beside.add(NS, [fact(7, "Tess sold it.", "Tess"), fact(8, "Melanie Brown wept.", "Melanie Brown")])
    for engine in (family, beside):
        assert {"m7", "m8"} < await found(engine, "Tess")
    await family.entities.separate(NS, receipt.merge_id)
    for engine in (family, beside):
        assert await found(engine, "Tess") == {"m2", "m3", "m4", "m5", "m7"}
        assert (await engine.entities.page(NS, melanie)).mentions == 5


async def test_a_context_pack_relates_memories_by_what_entities_are_merged_into(family: Trivet) -> None:
    request = ContextRequest(query="Who met whom, and who bought and painted a house?", min_relevance=0)
    assert {"Tess", "Melanie Brown"} <= {*(await family.context(NS, request)).related}
    await family.entities.merge(NS, await id_of(family, "Tess"), await id_of(family, "Melanie Brown"))
    related = (await family.context(NS, request)).related
    assert "Melanie Brown" in related
    assert "Tess" not in related


async def test_a_merge_outlives_the_memories_of_its_entities(family: Trivet) -> None:
    zoe, oscar = await id_of(family, "Zoe"), await id_of(family, "Oscar")
    receipt = await family.entities.merge(NS, zoe, oscar)
    await family.delete(NS, "m6")
    assert (await family.entities.page(NS, zoe)).name == "Oscar"
    await family.add(NS, [fact(6, "Zoe is back.", "Zoe")])
    assert "m6" in await found(family, "Oscar")
    await family.delete(NS, "m6")
    await family.entities.separate(NS, receipt.merge_id)
    with pytest.raises(NotFound):
        await family.entities.page(NS, zoe)


async def test_merges_of_merges_are_undone_in_any_order(family: Trivet) -> None:
    names = ("Zoe", "Tess", "Melanie Brown", "Oscar")
    zoe, tess, melanie, oscar = [await id_of(family, name) for name in names]
    before = await everything(family)
    first = await family.entities.merge(NS, zoe, tess)
    second = await family.entities.merge(NS, tess, melanie)
    third = await family.entities.merge(NS, melanie, oscar)
    assert [(await family.entities.page(NS, each)).name for each in (zoe, tess, melanie)] == ["Oscar"] * 3
    await family.entities.separate(NS, second.merge_id)
    shown = [(await family.entities.page(NS, each)).name for each in (zoe, tess, melanie)]
    assert shown == ["Tess", "Tess", "Oscar"]
    await family.entities.separate(NS, first.merge_id)
    await family.entities.separate(NS, third.merge_id)
    assert await everything(family) == before


async def test_what_cannot_be_merged(family: Trivet) -> None:
    tess, melanie = await id_of(family, "Tess"), await id_of(family, "Melanie Brown")
    with pytest.raises(Conflict):
        await family.entities.merge(NS, tess, tess)
    with pytest.raises(NotFound):
        await family.entities.merge(NS, tess, "0" * 16)
    with pytest.raises(NotFound):
        await family.entities.separate(NS, "no such merge")
    receipt = await family.entities.merge(NS, tess, melanie)
    for pair in ((tess, melanie), (melanie, tess)):
        with pytest.raises(Conflict):
            await family.entities.merge(NS, *pair)
    await family.entities.separate(NS, receipt.merge_id)
    with pytest.raises(NotFound):
        await family.entities.separate(NS, receipt.merge_id)


async def test_an_alias_is_found_in_every_process_and_counts_for_what_comes(family: Trivet, beside: Trivet) -> None:
    caroline = await id_of(family, "Caroline")
    assert await found(beside, "Who saw Lina?") == set()
    changed = await family.entities.change_aliases(NS, caroline, AliasChange(add=["Lina", "Lina", "Caroline"]))
    assert changed.aliases == ["Lina"]
    for engine in (family, beside):
        assert await found(engine, "Who saw Lina?") == {"m1"}
    await family.add(NS, [MemoryInput(id="later", text="Yesterday I met Lina in Rome.")])
    for engine in (family, beside):
        assert await found(engine, "Caroline") == {"m1", "later"}
    removed = await family.entities.change_aliases(NS, caroline, AliasChange(remove=["lina"]))
    assert removed.aliases == []
    for engine in (family, beside):
        assert await found(engine, "Who saw Lina?") == {"later"}
        assert await found(engine, "Caroline") == {"m1"}


USING = [
    fact(10, "Yesterday Zippy came to Rome."),
    fact(11, "He left.", relations=[RelationInput(source="Zippy", type="works_at", target="Acme")]),
    fact(12, "I saw Zippy, and later Robert Smith."),
    fact(13, "We were at home.", kind="message", speaker="Zippy"),
]
BY_NAME = fact(14, "Today Robert Smith came to Rome.")


async def give(engine: Trivet, *, by_hand: bool) -> None:
    """Make Zippy an alias of Robert Smith, by hand or by a memory."""
    given = EntityInput(name="Robert Smith", aliases=[] if by_hand else ["Zippy"])
    await engine.add(NS, [MemoryInput(id="giving", text="New.", entities=[given])])
    if by_hand:
        await engine.entities.change_aliases(NS, await id_of(engine, "Robert Smith"), AliasChange(add=["Zippy"]))


async def take_away(engine: Trivet, *, by_hand: bool) -> None:
    if by_hand:
        await engine.entities.change_aliases(NS, await id_of(engine, "Robert Smith"), AliasChange(remove=["Zippy"]))
    await engine.delete(NS, "giving")


@pytest.mark.parametrize("by_hand", [False, True])
async def test_an_alias_that_is_taken_away_leaves_nothing_behind(
    family: Trivet, beside: Trivet, database_url: str, by_hand: bool
) -> None:
    """Texts that used it mention their literal name, in the tables and in every index, as if it had never existed."""
    await give(family, by_hand=by_hand)
    await family.add(NS, [*USING, BY_NAME])
    for engine in (family, beside):
        assert await found(engine, "Robert Smith") == {"giving", "m10", "m11", "m12", "m13", "m14"}
    await take_away(family, by_hand=by_hand)
    for engine in (family, beside):
        assert await found(engine, "Robert Smith") == {"m12", "m14"}
        assert await found(engine, "Who saw Zippy?") == {"m10", "m11", "m12", "m13"}
    page = await beside.entities.page(NS, await id_of(beside, "Zippy"))
    assert [(each.source.name, each.target.name) for each in page.relations] == [("Zippy", "Acme")]
    followed = await everything(beside)
    async with Trivet.open(settings_for(database_url)) as fresh:
        assert await everything(fresh) == followed
    left = await rows(database_url)
    for memory in (*USING, BY_NAME):
        await family.delete(NS, memory.id or "")
    await family.add(NS, [*USING, BY_NAME])
    again = await rows(database_url)
    assert {table: len(found) for table, found in again.items()} == {table: len(found) for table, found in left.items()}
    assert [name for *name, _ in again["entity"]] == [name for *name, _ in left["entity"]]


async def test_an_alias_goes_though_all_who_gave_it_are_deleted_at_once(family: Trivet) -> None:
    """And while texts that use it are written."""
    for _ in range(4):
        given = EntityInput(name="Robert Smith", aliases=["Zippy"])
        givers = [MemoryInput(id=f"g{number}", text=f"New {number}.", entities=[given]) for number in range(4)]
        await family.add(NS, [*givers, fact(20, "Today Robert Smith came to Rome."), fact(10, "I met Zippy.")])
        things = enumerate(("boat", "kite", "lamp", "sofa"), 11)
        writing = [family.add(NS, [fact(number, f"Zippy bought a {thing}.")]) for number, thing in things]
        await asyncio.gather(*(family.delete(NS, each.id or "") for each in givers), *writing)
        assert await found(family, "Robert Smith") == {"m20"}
        assert await found(family, "Who saw Zippy?") == {"m10", "m11", "m12", "m13", "m14"}
        for number in (10, 11, 12, 13, 14):
            await family.delete(NS, f"m{number}")


async def test_an_alias_is_taken_away_while_texts_use_it(family: Trivet) -> None:
    """Writers that wait for each other in a circle start again."""
    for round_ in range(3):
        await give(family, by_hand=True)
        texts = [MemoryInput(id=f"x{at}", text=f"Zippy bought {round_}{at} kites.") for at in range(12)]
        await family.add(NS, texts[:6])
        smith = await id_of(family, "Robert Smith")
        taking = family.entities.change_aliases(NS, smith, AliasChange(remove=["Zippy"]))
        writing = [family.add(NS, [each]) for each in texts[6:]]
        deleting = [family.delete(NS, each.id or "") for each in texts[:6]]
        await asyncio.gather(taking, *writing, *deleting)
        assert await found(family, "Robert Smith") == {"giving"}
        for each in texts[6:]:
            await family.delete(NS, each.id or "")


async def test_a_renamed_person_keeps_the_texts_of_the_alias(family: Trivet) -> None:
    await give(family, by_hand=False)
    await family.add(NS, USING)
    renamed = EntityInput(name="Robert Jones", aliases=["Zippy"])
    await family.add(NS, [MemoryInput(id="giving", text="New.", entities=[renamed])])
    assert await found(family, "Robert Jones") == {"giving", "m10", "m11", "m12", "m13"}
    assert await found(family, "Robert Smith") == {"giving", "m10", "m11", "m12", "m13"}


async def test_an_alias_that_is_still_given_keeps_its_texts(family: Trivet, beside: Trivet, database_url: str) -> None:
    """By another memory, by hand, or by the first one's replacement."""
    await give(family, by_hand=False)
    await family.add(NS, USING)
    before = (await rows(database_url))["mention"]
    other = EntityInput(name="ROBERT SMITH", aliases=["zippy!"])
    await family.add(NS, [MemoryInput(id="giving", text="Newer.", entities=[other])])
    await family.add(NS, [MemoryInput(id="too", text="Also new.", entities=[other])])
    await family.delete(NS, "giving")
    await family.entities.change_aliases(NS, await id_of(family, "Robert Smith"), AliasChange(add=["Zippy"]))
    await family.delete(NS, "too")
    for engine in (family, beside):
        assert await found(engine, "Who saw Zippy?") == {"m10", "m11", "m12", "m13"}
        assert await found(engine, "Robert Smith") == {"m10", "m11", "m12", "m13"}
    assert {*before} - {*(await rows(database_url))["mention"]} == {row for row in before if row[2] == 7}


async def test_the_name_that_only_a_deleted_memory_had_is_gone(family: Trivet) -> None:
    """Also if a text has the plural of an alias, or a different spelling of a date that is one."""
    acme = EntityInput(name="Acme", aliases=["story", "2024-05-05"])
    await family.add(NS, [MemoryInput(id="giving", text="New.", entities=[acme])])
    await family.add(NS, [fact(10, "They told stories."), fact(11, "On May 5, 2024 it rained.")])
    assert await found(family, "Acme") == {"giving", "m10", "m11"}
    await family.delete(NS, "giving")
    assert (await family.entities.list(NS, q="Acme")).entities == []
    assert [each.name for each in (await family.entities.list(NS, q="story")).entities] == ["story"]


async def test_aliases_that_are_refused(family: Trivet) -> None:
    tess, caroline = await id_of(family, "Tess"), await id_of(family, "Caroline")
    with pytest.raises(Conflict, match="merge"):
        await family.entities.change_aliases(NS, caroline, AliasChange(add=["Carol", "TESS"]))
    assert (await family.entities.page(NS, caroline)).aliases == [], "all or none"
    with pytest.raises(NotFound):
        await family.entities.change_aliases(NS, caroline, AliasChange(remove=["Carol"]))
    for change in (AliasChange(), AliasChange(add=["\u200b"]), AliasChange(add=["a\x00"])):
        with pytest.raises(InvalidInput):
            await family.entities.change_aliases(NS, caroline, change)
    await family.entities.merge(NS, tess, caroline)
    kept = await family.entities.change_aliases(NS, tess, AliasChange(add=["Tess", "Lina"]))
    assert kept.aliases == ["Lina", "Tess"]


async def test_an_entity_named_by_hand_stays_until_that_is_taken_back(family: Trivet) -> None:
    zoe = await id_of(family, "Zoe")
    await family.entities.change_aliases(NS, zoe, AliasChange(add=["Zozo"]))
    await family.delete(NS, "m6")
    page = await family.entities.page(NS, zoe)
    assert (page.mentions, page.aliases) == (0, ["Zozo"])
    assert "Zoe" not in {each.name for each in (await family.entities.list(NS)).entities}
    removed = await family.entities.change_aliases(NS, zoe, AliasChange(remove=["Zozo"]))
    assert removed.aliases == []
    with pytest.raises(NotFound):
        await family.entities.page(NS, zoe)


async def everything(engine: Trivet) -> list[Any]:
    """The answers to some searches, and the whole graph."""
    answers: list[Any] = []
    for query in ("Tess", "Where does Melanie Brown live?", "Oscar's friends", "What did Caroline paint?"):
        for mode in (Mode.GRAPH, Mode.ADAPTIVE):
            request = SearchRequest(query=query, mode=mode, explain=True, query_timestamp=DAY)
            answer = msgspec.to_builtins(await engine.search(NS, request))
            answers.append({name: answer[name] for name in ("results", "weights", "explanation")})
    answers.append(msgspec.to_builtins(await engine.entities.graph(NS, words=True, limit=500)))
    return answers


async def rows(database_url: str) -> dict[str, list[Any]]:
    """All that is stored of entities."""
    tables = ("entity", "entity_alias", "entity_token", "entity_merge", "mention", "relation")
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as db:
        read = {table: await (await db.execute(f"select * from {table}")).fetchall() for table in tables}
    return {table: sorted(found) for table, found in read.items()}


async def test_a_merge_that_is_undone_leaves_no_trace(family: Trivet, beside: Trivet, database_url: str) -> None:
    """In the rows, in the index that followed both changes, and in one loaded afterwards."""
    names = [entity.name for entity in (await family.entities.list(NS)).entities]
    stored, answers = await rows(database_url), await everything(family)
    assert await everything(beside) == answers
    for name in names:
        for other in names:
            if name != other:
                one, two = await id_of(family, name), await id_of(family, other)
                receipt = await family.entities.merge(NS, one, two)
                assert await everything(beside) != answers
                await family.entities.separate(NS, receipt.merge_id)
                assert await everything(beside) == answers, (name, other)
    assert await rows(database_url) == stored
    async with Trivet.open(settings_for(database_url)) as later:
        assert await everything(later) == answers


async def test_merges_beside_writers_lose_nothing(family: Trivet, beside: Trivet, database_url: str) -> None:
    """Concurrent writes, deletions, merges and separations of the same entities: no deadlock, nothing left over."""
    before = await rows(database_url)
    names = ("Zoe", "Oscar", "Caroline", "Melanie Brown")
    zoe, oscar, caroline, melanie = [await id_of(family, name) for name in names]

    async def merge(engine: Trivet, one: str, other: str) -> None:
        with suppress(NotFound, Conflict):
            receipt = await engine.entities.merge(NS, one, other)
            await engine.entities.separate(NS, receipt.merge_id)

    async def rewrite(engine: Trivet, number: int) -> None:
        await engine.add(NS, [fact(number, "Zoe saw Oscar and Caroline.", "Zoe", "Oscar", "Caroline")])
        await engine.delete(NS, f"m{number}")

    async def name(engine: Trivet) -> None:
        with suppress(NotFound):  # the other one has removed it
            await engine.entities.change_aliases(NS, melanie, AliasChange(add=["Melly"]))
            await engine.entities.change_aliases(NS, melanie, AliasChange(remove=["Melly"]))

    for turn in range(5):
        work = [rewrite(engine, 100 + 2 * turn + place) for place, engine in enumerate((family, beside))]
        work += [merge(family, zoe, oscar), merge(beside, oscar, caroline), merge(beside, caroline, zoe)]
        await asyncio.gather(*work, name(family), name(beside))
    after = await rows(database_url)
    for table in ("entity", "entity_alias", "entity_merge", "mention", "relation"):
        assert after[table] == before[table], table


async def test_an_alias_given_to_merged_entities_stays_with_the_one_that_is_shown(family: Trivet) -> None:
    tess, caroline = await id_of(family, "Tess"), await id_of(family, "Caroline")
    receipt = await family.entities.merge(NS, tess, caroline)
    await family.entities.change_aliases(NS, tess, AliasChange(add=["Lina"]))
    await family.entities.separate(NS, receipt.merge_id)
    assert (await family.entities.page(NS, caroline)).aliases == ["Lina"]
    assert (await family.entities.page(NS, tess)).aliases == []
    assert await found(family, "Who saw Lina?") == {"m1"}
