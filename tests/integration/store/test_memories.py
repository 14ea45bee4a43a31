"""Adding, reading, changing and deleting memories: every leg follows, at once and completely."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from retrieval.engine import Trivet
from retrieval.errors import Conflict, InvalidInput, NotFound
from retrieval.legs import vector
from retrieval.ranking import rescoring
from retrieval.types.memory import EntityInput, MemoryInput, MemoryPatch, RelationInput
from retrieval.types.namespace import NamespaceInput, NamespaceSettings, QueryLogSettings
from retrieval.types.search import Filters, Mode, SearchRequest

INDEX_TABLES = [
    "memory",
    "turn",
    "bm25_tail",
    "bm25_segment",
    "bm25_posting",
    "bm25_tombstone",
    "entity",
    "entity_alias",
    "entity_token",
    "mention",
    "relation",
]


async def ids(trivet: Trivet, query: str, namespace: str = "n", **fields: Any) -> list[str]:
    response = await trivet.search(namespace, SearchRequest(query=query, **fields))
    assert response.degraded == []
    return [result.id for result in response.results]


async def add(trivet: Trivet, *memories: MemoryInput, namespace: str = "n") -> list[str]:
    return [result.status for result in await trivet.add(namespace, memories)]


def rows_of(database_url: str) -> dict[str, int]:
    """How many rows every table of a namespace's contents has."""
    with psycopg.connect(database_url) as conn:
        counts = {}
        for table in INDEX_TABLES:
            row = conn.execute(f"select count(*) from {table}").fetchone()
            assert row is not None
            counts[table] = row[0]
        return counts


async def test_every_leg_sees_a_write_when_it_returns(trivet: Trivet) -> None:
    """Read your writes, in every mode."""
    await add(trivet, MemoryInput(id="a", text="Caroline adopted a Maine Coon called Biscuit."))
    for mode in Mode:
        assert await ids(trivet, "What is the name of Caroline's Maine Coon?", mode=mode) == ["a"]


async def test_statuses(trivet: Trivet) -> None:
    """Created, unchanged, updated, rejected: each memory by itself."""
    assert await add(trivet, MemoryInput(id="a", text="tea"), MemoryInput(id="b", text="coffee")) == ["created"] * 2
    results = await trivet.add(
        "n",
        [
            MemoryInput(id="a", text="tea"),
            MemoryInput(id="b", text="espresso"),
            MemoryInput(id="c", text="  "),
            MemoryInput(id="d", text="water", supersedes="d"),
            MemoryInput(id="e", text="milk"),
            MemoryInput(id="e", text="juice"),
            MemoryInput(id="f", text="nul \x00 byte"),
            InvalidInput("must be text", loc=("memories", 7, "text")),
        ],
    )
    assert [result.status for result in results] == ["unchanged", "updated"] + ["rejected"] * 2 + ["created"] + (
        ["rejected"] * 3
    )
    fields = [(result.error or "").partition(":")[0] for result in results]
    assert fields == ["", "", "text", "supersedes", "", "id", "text", "text"]
    assert (await trivet.get("n", "e")).text == "milk"


async def test_changes_of_one_memory_at_once_are_all_made(trivet: Trivet) -> None:
    await add(trivet, MemoryInput(id="a", text="tea"))
    fields: list[dict[str, Any]] = [{"title": "Drinks"}, {"speaker": "Ana"}, {"tags": ["hot"]}, {"text": "green tea"}]
    await asyncio.gather(*(trivet.patch("n", "a", MemoryPatch(**each)) for each in fields * 5))
    memory = await trivet.get("n", "a")
    for name, value in ((name, value) for each in fields for name, value in each.items()):
        assert getattr(memory, name) == value


async def test_generated_ids_sort_by_time(trivet: Trivet) -> None:
    """A memory without an id gets a UUIDv7."""
    first, second = await trivet.add("n", [MemoryInput(text="one"), MemoryInput(text="two")])
    assert first.id is not None
    assert second.id is not None
    assert first.id[14] == "7"
    assert (await trivet.get("n", first.id)).text == "one"


async def test_replacing_leaves_nothing_of_the_old_text(trivet: Trivet, database_url: str) -> None:
    """The old words, entities and aliases are gone from every leg."""
    old = MemoryInput(
        id="a",
        text="Zebulon bought a harpsichord",
        entities=[EntityInput(name="Zebulon", type="person", aliases=["Zeb"])],
        relations=[RelationInput(source="Zebulon", type="owns", target="harpsichord")],
    )
    await add(trivet, old)
    await add(trivet, MemoryInput(id="a", text="Quentin sold a trombone"))
    assert await ids(trivet, "harpsichord Zebulon", mode=Mode.BM25) == []
    assert await ids(trivet, "Zebulon Zeb", mode=Mode.GRAPH) == []
    assert await ids(trivet, "trombone Quentin", mode=Mode.BM25) == ["a"]
    assert (rows_of(database_url)["memory"], rows_of(database_url)["relation"]) == (1, 0)


async def test_a_delete_leaves_nothing(trivet: Trivet, database_url: str) -> None:
    """No row in any index, whether packed or not."""
    memories = [
        MemoryInput(id=f"m{at}", text=f"Bartholomew wrote letter {at} to Persephone", speaker="Bartholomew")
        for at in range(6)
    ]
    await add(trivet, *memories)
    await trivet.delete("n", "m0")
    assert "m0" not in await ids(trivet, "Bartholomew letter 0 Persephone")
    with pytest.raises(NotFound):
        await trivet.get("n", "m0")
    with pytest.raises(NotFound):
        await trivet.delete("n", "m0")
    assert await trivet.delete_many("n", filters=Filters(speaker=["Bartholomew"])) == 5
    assert set(rows_of(database_url).values()) == {0}


async def test_delete_by_filter_wants_a_filter(trivet: Trivet) -> None:
    """An empty filter would delete everything."""
    await add(trivet, MemoryInput(id="a", text="tea", tags=["x"]), MemoryInput(id="b", text="tea", tags=["y"]))
    with pytest.raises(InvalidInput, match="empty"):
        await trivet.delete_many("n", filters=Filters())
    assert await trivet.delete_many("n", filters=Filters(tags_any=["x"])) == 1
    assert await ids(trivet, "tea") == ["b"]


async def test_patch_changes_what_it_names(trivet: Trivet) -> None:
    """Other fields stay; changed text is found by every leg; null clears."""
    await add(
        trivet,
        MemoryInput(
            id="a", text="Olga likes rye bread", speaker="Olga", tags=["food"], metadata={"n": 1}, title="Bread"
        ),
    )
    patched = await trivet.patch("n", "a", MemoryPatch(text="Olga likes sourdough", title=None))
    assert (patched.text, patched.title, patched.speaker, patched.tags) == (
        "Olga likes sourdough",
        None,
        "Olga",
        ["food"],
    )
    assert await ids(trivet, "sourdough", mode=Mode.BM25) == ["a"]
    assert await ids(trivet, "rye", mode=Mode.BM25) == []
    created_at = patched.created_at
    again = await trivet.patch("n", "a", MemoryPatch(tags=["bread"]))
    assert (again.tags, again.created_at) == (["bread"], created_at)
    with pytest.raises(InvalidInput):
        await trivet.patch("n", "a", MemoryPatch(supersedes="a"))
    with pytest.raises(NotFound):
        await trivet.patch("n", "zzz", MemoryPatch(text="x"))


async def test_concurrent_patches_both_hold(trivet: Trivet) -> None:
    """Two concurrent changes of different fields of one memory are both kept."""
    await add(trivet, MemoryInput(id="a", text="start"))
    await asyncio.gather(
        trivet.patch("n", "a", MemoryPatch(tags=["t"])), trivet.patch("n", "a", MemoryPatch(metadata={"k": "v"}))
    )
    memory = await trivet.get("n", "a")
    assert (memory.tags, memory.metadata) == (["t"], {"k": "v"})


async def test_concurrent_writers_of_the_same_ids(trivet: Trivet, database_url: str) -> None:
    """Neither deadlock nor loss nor duplicate, whatever the order of the ids."""
    batches = [[MemoryInput(id=f"m{at}", text=f"version {writer} of {at}") for at in range(20)] for writer in range(4)]
    for reverse, batch in enumerate(batches):
        if reverse % 2:
            batch.reverse()
    results = await asyncio.gather(*(trivet.add("n", batch) for batch in batches), return_exceptions=True)
    assert all(isinstance(result, list | Conflict) for result in results)
    assert any(isinstance(result, list) for result in results)
    assert rows_of(database_url)["memory"] == 20
    assert rows_of(database_url)["bm25_tail"] == 20


async def test_superseded_memories_step_back(trivet: Trivet) -> None:
    """Left out unless asked for, whichever of the two comes first, and back when the newer one goes."""
    await add(trivet, MemoryInput(id="new", text="Ana lives in Porto", supersedes="old"))
    await add(trivet, MemoryInput(id="old", text="Ana lives in Lisbon"))
    assert await ids(trivet, "Where does Ana live?") == ["new"]
    assert sorted(await ids(trivet, "Where does Ana live?", include_superseded=True)) == ["new", "old"]
    assert (await trivet.get("n", "old")).superseded_by == ["new"]
    await trivet.delete("n", "new")
    assert await ids(trivet, "Where does Ana live?") == ["old"]


async def test_as_of_answers_as_it_stood(trivet: Trivet) -> None:
    """Created, superseded, expired: each as of the requested moment."""

    def at(day: int) -> datetime:
        return datetime(2024, 1, day, tzinfo=UTC)

    await add(
        trivet,
        MemoryInput(id="lisbon", text="Ana lives in Lisbon", created_at=at(1)),
        MemoryInput(id="porto", text="Ana lives in Porto", created_at=at(10), supersedes="lisbon"),
        MemoryInput(id="guest", text="Ana has a guest", created_at=at(3), expires_at=at(5)),
    )
    for mode in Mode:
        assert set(await ids(trivet, "Ana", mode=mode)) == {"porto"}
        assert set(await ids(trivet, "Ana", mode=mode, as_of=at(4))) == {"lisbon", "guest"}
        assert set(await ids(trivet, "Ana", mode=mode, as_of=at(6))) == {"lisbon"}
        assert set(await ids(trivet, "Ana", mode=mode, as_of=at(1) - timedelta(days=1))) == set()


FILTERS = [
    (Filters(tags_all=["red", "big"]), {"a"}),
    (Filters(tags_any=["blue", "big"]), {"a", "b"}),
    (Filters(kind=["chunk"]), {"c"}),
    (Filters(session_id=["s1", "s2"]), {"a", "b"}),
    (Filters(document_id=["d"]), {"c"}),
    (Filters(speaker=["Bo"]), {"b"}),
    (Filters(created_after=datetime(2024, 1, 1, tzinfo=UTC)), {"b", "c"}),
    (Filters(created_before=datetime(2024, 1, 3, tzinfo=UTC), tags_any=["red"]), {"a"}),
    (Filters(metadata={"deep": {"x": 1}}), {"c"}),
    (Filters(speaker=["nobody"]), set()),
]


async def test_filters_hold_in_every_mode(trivet: Trivet) -> None:
    """All memories that match are returned, and no others."""
    await add(
        trivet,
        MemoryInput(
            id="a",
            text="Otto painted the barn",
            tags=["red", "big"],
            session_id="s1",
            created_at=datetime(2024, 1, 1, tzinfo=UTC),
        ),
        MemoryInput(
            id="b",
            text="Otto painted the fence",
            tags=["blue"],
            session_id="s2",
            speaker="Bo",
            created_at=datetime(2024, 1, 2, tzinfo=UTC),
        ),
        MemoryInput(
            id="c",
            text="Otto painted the boat",
            kind="chunk",
            document_id="d",
            metadata={"deep": {"x": 1, "y": 2}},
            created_at=datetime(2024, 1, 3, tzinfo=UTC),
        ),
    )
    for mode in Mode:
        for filters, expected in FILTERS:
            assert set(await ids(trivet, "What did Otto paint?", mode=mode, filters=filters)) == expected


async def test_selective_filters_are_not_starved(trivet: Trivet) -> None:
    """The one memory that meets the filter is found behind hundreds that fit the query better."""
    crowd = [MemoryInput(id=f"m{at:03}", text=f"Otto painted barn number {at}", tags=["crowd"]) for at in range(400)]
    await add(trivet, *crowd, MemoryInput(id="rare", text="Otto once painted a very small boat", tags=["rare"]))
    for mode in Mode:
        assert await ids(trivet, "Otto painted barn", mode=mode, filters=Filters(tags_all=["rare"])) == ["rare"]


async def test_namespace_deletion_answers_a_receipt(trivet: Trivet, database_url: str) -> None:
    """The receipt counts the deleted data, and not a row is left."""
    await add(trivet, MemoryInput(id="a", text="Ingrid met Nils in Oslo"), MemoryInput(id="b", text="Nils cooks"))
    receipt = await trivet.delete_namespace("n")
    assert receipt.deleted["memories"] == 2
    assert receipt.deleted["mentions"] > 0
    assert set(rows_of(database_url).values()) == {0}
    with pytest.raises(NotFound):
        await trivet.delete_namespace("n")


async def test_namespace_settings(trivet: Trivet) -> None:
    """The language is changed only while nothing was analysed with it."""
    info = await trivet.put_namespace("n", NamespaceSettings(language="german"))
    assert (info.settings.language, info.memories) == ("german", 0)
    await add(trivet, MemoryInput(id="a", text="Die Katzen schliefen auf den Bäumen"))
    assert await ids(trivet, "Katze Baum", mode=Mode.BM25) == ["a"]
    with pytest.raises(Conflict):
        await trivet.put_namespace("n", NamespaceSettings(language="english"))
    kept = await trivet.put_namespace("n", NamespaceInput(query_log=QueryLogSettings()))  # names no language
    assert (kept.settings.language, (await trivet.get_namespace("n")).settings) == ("german", kept.settings)
    changed = await trivet.put_namespace("n", NamespaceInput(rules=[]))  # names no query log
    assert changed.settings == NamespaceSettings(language="german", query_log=QueryLogSettings(), rules=[])
    ended = await trivet.put_namespace("n", NamespaceInput(query_log=None))
    assert ended.settings == NamespaceSettings(language="german", rules=[])
    with pytest.raises(InvalidInput, match="klingon"):
        await trivet.put_namespace("m", NamespaceSettings(language="klingon"))
    assert [info.name for info in await trivet.list_namespaces()] == ["n"]


async def test_a_change_of_settings_takes_no_number_of_a_namespace(trivet: Trivet, database_url: str) -> None:
    """There are 2,147,483,647; here none is left."""
    await trivet.put_namespace("n", NamespaceInput())
    with psycopg.connect(database_url) as db:
        db.execute("select setval(pg_get_serial_sequence('namespace', 'ns'), 2147483647)")
    assert (await trivet.put_namespace("n", NamespaceInput(rules=[]))).settings.rules == []


async def test_namespaces_of_some_names_are_listed_without_counting_the_others(trivet: Trivet) -> None:
    for name in ("a", "b", "c"):
        await trivet.put_namespace(name, NamespaceSettings())
    listed = await trivet.list_namespaces(["c", "none", "a", "b\0", "\ud800"])
    assert [info.name for info in listed] == ["a", "c"]


async def test_listing_pages_through_everything_once(trivet: Trivet) -> None:
    """In the order of insertion, by cursor, with filters."""
    memories = [MemoryInput(id=f"m{at}", text=f"text {at}", tags=["even"] if at % 2 == 0 else []) for at in range(7)]
    for memory in memories:
        await add(trivet, memory)
    seen: list[str] = []
    cursor = None
    while True:
        page = await trivet.list("n", Filters(), cursor=cursor, limit=3)
        seen += [memory.id for memory in page.memories]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"m{at}" for at in range(7)]
    even = await trivet.list("n", Filters(tags_all=["even"]), cursor=None, limit=10)
    assert [memory.id for memory in even.memories] == ["m0", "m2", "m4", "m6"]
    with pytest.raises(InvalidInput):
        await trivet.list("n", Filters(), cursor="; drop table memory", limit=1)


@pytest.mark.parametrize("text", ["🎉🎉🎉", "the of and", "!!!", "我喜欢北京烤鸭", "a" * 60_000])
async def test_odd_texts_can_be_stored_and_searched(trivet: Trivet, text: str) -> None:
    """Emoji, stop words, punctuation, scripts without spaces, one endless word."""
    assert await add(trivet, MemoryInput(id="odd", text=text), MemoryInput(id="other", text="plain words")) == (
        ["created", "created"]
    )
    for query in ("🎉", "the", "?", "北京", "plain"):
        for mode in Mode:
            assert set(await ids(trivet, query, mode=mode)) <= {"odd", "other"}
    assert "odd" in await ids(trivet, text[:200])


async def test_packed_and_unpacked_answer_alike(trivet: Trivet, database_url: str) -> None:
    """Compaction changes no score."""
    memories = [MemoryInput(id=f"m{at}", text=f"Rosa planted {at} tulips and {at * 7 % 5} roses") for at in range(40)]
    await add(trivet, *memories)
    request = SearchRequest(query="Rosa roses 4", mode=Mode.BM25, top_k=40)
    before = await trivet.search("n", request)
    await trivet.maintain()
    assert rows_of(database_url)["bm25_tail"] == 0
    after = await trivet.search("n", request)
    assert [(r.id, r.legs["bm25"]) for r in before.results] == [(r.id, r.legs["bm25"]) for r in after.results]
    await trivet.delete("n", "m4")
    assert "m4" not in await ids(trivet, "Rosa roses 4", mode=Mode.BM25, top_k=40)


async def test_a_namespace_that_cannot_be_packed_keeps_no_other_from_it(trivet: Trivet, database_url: str) -> None:
    """As on a damaged page; the failure is raised once everything else is done."""
    for namespace in "ab":
        await trivet.add(namespace, [MemoryInput(text=f"Rosa planted {at} tulips") for at in range(40)])
    with psycopg.connect(database_url) as db:
        [(damaged,)] = db.execute("select min(ns) from namespace").fetchall()
        db.execute(f"alter table bm25_segment add check (ns <> {damaged})")
    with pytest.raises(psycopg.errors.CheckViolation):
        await trivet.maintain()
    with psycopg.connect(database_url) as db:
        assert db.execute("select distinct ns from bm25_tail").fetchall() == [(damaged,)]


async def test_a_word_of_the_title_counts_for_more_than_one_of_the_text(trivet: Trivet) -> None:
    """Both have the same words equally often; with equal scores the ids would decide."""
    await add(
        trivet,
        MemoryInput(id="a", title="Pottery", text="They saw Lisbon."),
        MemoryInput(id="b", title="Lisbon", text="They saw pottery."),
    )
    assert await ids(trivet, "Lisbon", mode=Mode.BM25) == ["b", "a"]
    assert await ids(trivet, "pottery", mode=Mode.BM25) == ["a", "b"]


async def test_ef_search_says_how_many_vectors_are_compared(trivet: Trivet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector, "EXACT_UP_TO", 10)
    await add(trivet, *(MemoryInput(id=f"m{number}", text=f"the number {number}") for number in range(40)))
    compared = {}
    for ef_search in (1, 2, 200):
        request = SearchRequest(query="number", mode=Mode.VECTOR, ef_search=ef_search, explain=True)
        explanation = (await trivet.search("n", request)).explanation
        assert explanation
        compared[ef_search] = explanation.legs["vector"]["compared"]
    assert compared[1] < compared[2] < compared[200] == 40


async def test_the_rescorer_favours_the_time_that_the_query_speaks_of(
    trivet: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else: without the bonus all other scores are the same."""
    days = ("may", datetime(2023, 5, 8, tzinfo=UTC)), ("june", datetime(2023, 6, 8, tzinfo=UTC))
    await add(trivet, *(MemoryInput(id=each, text=f"Ana painted a {each}.", created_at=day) for each, day in days))
    request = SearchRequest(query="What did Ana paint in May 2023?", rescore=True, mode=Mode.HYBRID)
    favoured = (await trivet.answer("n", request)).rescorer_scores()
    monkeypatch.setattr(rescoring, "PERIOD_BONUS", 0.0)
    plain = (await trivet.answer("n", request)).rescorer_scores()
    assert favoured["may"] > plain["may"]
    assert favoured["june"] == plain["june"]
