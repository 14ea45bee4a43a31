"""Feedback: stored once, bounded, read in order of time, of its namespace alone."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from classifier.intents import Intent
from retrieval.errors import Conflict, InvalidInput, NotFound
from retrieval.ingest.service import Ingest
from retrieval.journal.query_log import AnsweredSearch, entry_of
from retrieval.journal.service import JournalService, relevant_of
from retrieval.journal.writer import JournalWriter
from retrieval.store import feedback, namespaces, query_log
from retrieval.store.pool import Pool
from retrieval.types.journal import Feedback, FeedbackReceipt, FeedbackRequest
from retrieval.types.memory import MemoryInput
from retrieval.types.namespace import NamespaceSettings, QueryLogSettings
from retrieval.types.search import Filters, SearchRequest
from tests.turns import hashed

AS_OF = datetime(2024, 5, 1, tzinfo=UTC)


@pytest.fixture
async def records(pool: Pool) -> JournalService:
    """On namespaces `n` and `other`, which have the memories a, b and c each."""
    ingest = Ingest(pool, hashed())
    for name in ("n", "other"):
        await ingest.add(name, [MemoryInput(id=memory_id, text=f"text {memory_id}") for memory_id in "abc"])
    return JournalService(pool, JournalWriter(pool))


def said(**fields: Any) -> FeedbackRequest:
    """A click on the second of two."""
    return FeedbackRequest(**{"query": "Where?", "shown": ["a", "b"], "clicked": ["b"], **fields})


async def stored(records: JournalService, name: str) -> list[Feedback]:
    """All of a namespace, as sent."""
    return (await records.list_feedback(name, cursor=None, limit=100)).feedback


async def log_search(pool: Pool, search_id: str, settings: QueryLogSettings, ids: str = "ba", ns: str = "n") -> None:
    request = SearchRequest(query="Where?", as_of=AS_OF, query_timestamp=AS_OF, filters=Filters(kind=["memory"]))
    searched = AnsweredSearch(
        search_id=search_id, request=request, profile="default@3", intent=None, ids=list(ids), scores=[0.5] * len(ids),
        total_ms=1.0,
    )  # fmt: skip
    async with pool.connection() as conn:
        found = await namespaces.find(conn, ns)
        await query_log.record(conn, found.ns, entry_of(searched, settings, b"key"), settings)


async def test_a_search_may_be_judged_before_it_is_logged(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry is written in the background, and feedback waits for it."""
    await Ingest(pool, hashed()).add("n", [MemoryInput(id="a", text="text a")])
    async with pool.connection() as conn:
        await namespaces.put(conn, "n", NamespaceSettings(query_log=QueryLogSettings()))
        found = await namespaces.find(conn, "n")
    record = query_log.record

    async def slow(*given: Any) -> None:
        await asyncio.sleep(0.2)
        await record(*given)

    monkeypatch.setattr(query_log, "record", slow)
    journal = JournalWriter(pool)
    request = SearchRequest(query="Where?")
    search = AnsweredSearch(
        search_id="s1", request=request, profile="default@3", intent=None, ids=["a"], scores=[0.5], total_ms=1.0
    )
    journal.log_search(found, search)
    receipt = await JournalService(pool, journal).add_feedback("n", FeedbackRequest(search_id="s1", relevant=["a"]))
    assert receipt.stored
    await journal.aclose()


async def test_what_is_stored_can_be_read(records: JournalService) -> None:
    """With every field."""
    request = said(
        id="f1",
        search_id="s1",
        relevant=["c", "c"],
        irrelevant=["a"],
        ratings={"b": 0.75},
        intent=Intent.PREFERENCE,
        profile="default@3",
        filters=Filters(speaker=["Ana"], created_after=AS_OF, metadata={"deep": {"list": [1, 2.5, None]}}),
        as_of=AS_OF,
        query_timestamp=AS_OF,
    )
    before = datetime.now(UTC)
    assert await records.add_feedback("n", request) == FeedbackReceipt(id="f1", stored=True)
    (judged,) = await stored(records, "n")
    assert before - timedelta(seconds=1) < judged.at < datetime.now(UTC) + timedelta(seconds=1)
    assert judged == Feedback(
        id="f1",
        at=judged.at,
        query="Where?",
        shown=["a", "b"],
        relevant=["c", "c"],
        irrelevant=["a"],
        clicked=["b"],
        ratings={"b": 0.75},
        intent="preference",
        profile="default@3",
        filters=request.filters,
        as_of=AS_OF,
        query_timestamp=AS_OF,
        search_id="s1",
    )
    (listed,) = (await records.list_feedback("n", cursor=None, limit=10)).feedback
    assert (listed.id, listed.filters, listed.ratings) == ("f1", request.filters, {"b": 0.75})


async def test_it_is_in_order_of_time(records: JournalService) -> None:
    for name in ("f1", "f2", "f3"):
        await records.add_feedback("n", said(id=name))
    first, second, third = await stored(records, "n")
    assert [first.id, second.id, third.id] == ["f1", "f2", "f3"]
    assert first.at < second.at < third.at


async def test_the_same_again_is_stored_once(records: JournalService) -> None:
    """In whatever order the ids of a judgement come; with other content it is a conflict."""
    await records.add_feedback("n", said(id="f1", relevant=["a", "c"]))
    again = await records.add_feedback("n", said(id="f1", relevant=["c", "a"]))
    assert again == FeedbackReceipt(id="f1", stored=False)
    for other in (said(id="f1", relevant=["a"]), said(id="f1", relevant=["a", "c"], shown=["b", "a"])):
        with pytest.raises(Conflict, match="'f1'"):
            await records.add_feedback("n", other)
    assert len(await stored(records, "n")) == 1
    assert (await records.add_feedback("other", said(id="f1"))).stored, "ids are the namespace's own"


async def test_without_an_id_each_is_its_own(records: JournalService) -> None:
    made = [(await records.add_feedback("n", said())).id for _ in range(3)]
    assert len(set(made)) == 3
    assert made == sorted(made), "in order of time"


async def test_the_same_from_many_at_once_is_stored_once(records: JournalService) -> None:
    receipts = await asyncio.gather(*(records.add_feedback("n", said(id="f1")) for _ in range(8)))
    assert sorted(receipt.stored for receipt in receipts) == [False] * 7 + [True]
    assert len(await stored(records, "n")) == 1


async def test_the_oldest_falls_out(records: JournalService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Feedback that is not stored, because it exists already or is refused, displaces nothing."""
    monkeypatch.setattr(feedback, "MAX_ROWS", 3)
    for number in range(5):
        await records.add_feedback("n", said(id=f"f{number}"))
        await records.add_feedback("other", said(id=f"f{number}", relevant=["a"]))
        await records.add_feedback("n", said(id=f"f{number}"))
        with pytest.raises(InvalidInput):
            await records.add_feedback("n", said(relevant=["z"]))
    for name in ("n", "other"):
        assert [judged.id for judged in await stored(records, name)] == ["f2", "f3", "f4"]


async def test_pages(records: JournalService) -> None:
    """Each entry once, oldest first."""
    for number in range(5):
        await records.add_feedback("n", said(id=f"f{number}"))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await records.list_feedback("n", cursor=cursor, limit=2)
        seen += [entry.id for entry in page.feedback]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == ["f0", "f1", "f2", "f3", "f4"]
    for made_up in ("x", "-1", "1" * 20, ""):
        with pytest.raises(InvalidInput) as refused:
            await records.list_feedback("n", cursor=made_up, limit=2)
        assert refused.value.loc == ("cursor",)


async def test_what_is_refused(records: JournalService, pool: Pool, subtests: pytest.Subtests) -> None:
    """With the place in the body and a reason; nothing is stored."""
    await log_search(pool, "of other", QueryLogSettings(), ns="other")
    bad: list[tuple[dict[str, Any], tuple[str | int, ...], str]] = [
        ({"clicked": []}, (), "judge at least one"),
        ({"query": None}, ("query",), "required"),
        ({"shown": None}, ("shown",), "required"),
        ({"query": " \n"}, ("query",), "blank"),
        ({"query": "a\x00b"}, ("query",), "null byte"),
        ({"shown": ["a", "b", "a"]}, ("shown", 2), "'a' is shown twice"),
        ({"clicked": ["a", "c"]}, ("clicked", 1), "'c' is not among those shown"),
        ({"relevant": ["a", "b"], "irrelevant": ["c", "b"]}, ("irrelevant", 1), "'b' is judged both"),
        ({"relevant": ["a", "y"], "ratings": {"z": 1.0}}, ("relevant",), "no memory 'y', 'z'$"),
        ({"irrelevant": ["z"]}, ("irrelevant",), "no memory 'z'$"),
        ({"relevant": list("defghijk")}, ("relevant",), "'d', 'e', 'f', 'g', 'h' and 3 more$"),
        ({"query": None, "search_id": "s9"}, ("search_id",), "not in the query log"),
        ({"shown": None, "search_id": "of other"}, ("search_id",), "not in the query log"),
    ]
    for fields, loc, message in bad:
        with subtests.test(fields=fields):
            with pytest.raises(InvalidInput, match=message) as refused:
                await records.add_feedback("n", said(**fields))
            assert refused.value.loc == loc
            assert await stored(records, "n") == []


async def test_memories_of_another_namespace_do_not_exist(records: JournalService, pool: Pool) -> None:
    await Ingest(pool, hashed()).add("other", [MemoryInput(id="secret", text="secret")])
    with pytest.raises(InvalidInput, match="no memory 'secret'"):
        await records.add_feedback("n", said(relevant=["secret"]))


async def test_missed_memories_may_be_judged(records: JournalService) -> None:
    """They were not shown, which is what the judgement says."""
    for judged in ({"relevant": ["c"]}, {"irrelevant": ["c"]}, {"ratings": {"c": 0.5}}):
        assert (await records.add_feedback("n", said(clicked=[], shown=["a"], **judged))).stored


async def test_a_logged_search_says_what_the_caller_leaves_out(records: JournalService, pool: Pool) -> None:
    """The caller's own fields take precedence."""
    await log_search(pool, "s1", QueryLogSettings())
    await records.add_feedback("n", FeedbackRequest(search_id="s1", clicked=["a"]))
    await records.add_feedback("n", said(search_id="s1", shown=["b", "c"], clicked=["c"], profile="mine@1"))
    logged, own = await stored(records, "n")
    assert (logged.query, logged.shown, logged.profile) == ("Where?", ["b", "a"], "default@3")
    assert (logged.as_of, logged.query_timestamp, logged.filters) == (AS_OF, AS_OF, Filters(kind=["memory"]))
    assert (own.shown, own.profile, own.filters) == (["b", "c"], "mine@1", Filters(kind=["memory"]))
    with pytest.raises(InvalidInput, match="'c' is not among those shown"):
        await records.add_feedback("n", FeedbackRequest(search_id="s1", clicked=["c"]))


async def test_a_logged_search_may_not_have_kept_enough(records: JournalService, pool: Pool) -> None:
    await log_search(pool, "no text", QueryLogSettings(redact=("all",)))
    await log_search(pool, "no results", QueryLogSettings(store_results=False))
    for search_id, missing in (("no text", "query"), ("no results", "shown")):
        with pytest.raises(InvalidInput, match="not kept in the query log") as refused:
            await records.add_feedback("n", FeedbackRequest(search_id=search_id, relevant=["c"]))
        assert refused.value.loc == (missing,)
    assert (await records.add_feedback("n", said(search_id="no text"))).stored


async def test_a_search_that_found_nothing_can_have_missed_something(records: JournalService, pool: Pool) -> None:
    await log_search(pool, "s1", QueryLogSettings(), ids="")
    await records.add_feedback("n", FeedbackRequest(search_id="s1", relevant=["c"]))
    assert (await stored(records, "n"))[0].shown == []


async def test_relevant_memories_by_search(records: JournalService, pool: Pool) -> None:
    """Ratings and judgements, the latest ones, of memories that the search may still find; a click is no evidence."""

    async def relevant() -> dict[str, list[str]]:
        searches = await records.judged_searches("n")
        return {each.search_id: relevant_of(each) for each in searches if each.search_id}

    await records.add_feedback("n", said(search_id="s1", relevant=["a", "b"], ratings={"c": 0.5}))
    await records.add_feedback("n", said(search_id="s1", irrelevant=["b"]))
    await records.add_feedback("n", said(search_id="s2", ratings={"a": 0.4}))
    await records.add_feedback("n", said(relevant=["a"]))
    await records.add_feedback("other", said(search_id="s3", relevant=["a"]))
    assert await relevant() == {"s1": ["a", "c"], "s2": []}
    await Ingest(pool, hashed()).delete("n", "a")
    assert await relevant() == {"s1": ["c"], "s2": []}
    assert (await stored(records, "n"))[0].relevant == ["a", "b"], "as it was said"
    await records.add_feedback("n", said(search_id="s2", relevant=["b"]))
    await records.add_feedback("n", said(search_id="s3", relevant=["c"], as_of=AS_OF))
    later = [MemoryInput(id="b", text="text b", expires_at=AS_OF), MemoryInput(id="d", text="text d", supersedes="c")]
    await Ingest(pool, hashed()).add("n", later)
    assert await relevant() == {"s1": [], "s2": [], "s3": ["c"]}


async def test_times_of_a_judged_query_count_from_when_it_was_judged(records: JournalService) -> None:
    """Unless it has another time: "yesterday" was another day then."""
    await records.add_feedback("n", said(query="Yesterday?", relevant=["a"]))
    await records.add_feedback("n", said(query="Today?", relevant=["a"], query_timestamp=AS_OF))
    (judged, _) = await stored(records, "n")
    assert [each.query_timestamp for each in await records.judged_queries("n")] == [judged.at, AS_OF]


async def test_a_search_is_judged_once_however_often_it_is_spoken_of(records: JournalService, pool: Pool) -> None:
    """Clicks add up, a memory's last judgement counts, deleted memories' are ignored; the ranking stays."""
    shown = ["c", "a", "b"]
    await records.add_feedback("n", said(search_id="s1", shown=shown, clicked=["b"], relevant=["a"]))
    await records.add_feedback("n", said(search_id="s1", shown=shown, clicked=["c"], ratings={"a": 0.25}))
    await records.add_feedback("n", said(search_id="s1", shown=shown, clicked=[], irrelevant=["b", "c"]))
    await records.add_feedback("n", said(search_id="s2", shown=shown, relevant=["c"]))
    await records.add_feedback("n", said(shown=shown, clicked=[], relevant=["a"]))
    await records.add_feedback("n", said(shown=shown, clicked=[], irrelevant=["a"]))
    await records.add_feedback("n", said(shown=["b", "a"], clicked=["b"]))
    await records.add_feedback("n", said(query="Who?", clicked=[], relevant=["c"]))
    await Ingest(pool, hashed()).delete("n", "c")
    first, second, unnamed, other, gone = await records.judged_searches("n")
    assert (first.shown, first.clicked, first.ratings) == (shown, ["b"], {"a": 0.25})
    assert (first.relevant, first.irrelevant) == ([], ["b"])
    assert (second.relevant, second.clicked) == ([], ["b"])
    assert (unnamed.relevant, unnamed.irrelevant) == ([], ["a"])
    assert (other.shown, other.clicked) == (["b", "a"], ["b"]), "the places are those of its own ranking"
    assert gone.relevant == []


async def test_deleting_all_of_a_namespace(records: JournalService) -> None:
    for name in ("n", "n", "other"):
        await records.add_feedback(name, said())
    assert await records.delete_feedback("n") == 2
    assert await stored(records, "n") == []
    assert len(await stored(records, "other")) == 1
    assert (await records.add_feedback("n", said())).stored


async def test_it_goes_with_its_namespace(records: JournalService, pool: Pool, database_url: str) -> None:
    """With the log and the shadow runs, and counted; nothing is left for a namespace of the same name."""
    await records.add_feedback("n", said())
    await records.add_feedback("other", said())
    await log_search(pool, "s1", QueryLogSettings())
    async with pool.connection() as conn:
        receipt = await namespaces.delete(conn, "n")
        assert (receipt.deleted["feedback"], receipt.deleted["queries"], receipt.deleted["shadow_runs"]) == (1, 1, 0)
        await namespaces.put(conn, "n", NamespaceSettings())
    assert await stored(records, "n") == []
    assert (await records.list_queries("n", cursor=None, limit=1)).queries == []
    assert len(await stored(records, "other")) == 1
    with psycopg.connect(database_url) as db:
        assert db.execute("select count(*) from journal").fetchone() == (1,)


async def test_an_unknown_namespace(records: JournalService) -> None:
    """Not found, and not created."""
    for asked in (
        records.add_feedback("nobody", said()),
        records.list_feedback("nobody", cursor=None, limit=1),
        records.judged_queries("nobody"),
        records.judged_searches("nobody"),
        records.delete_feedback("nobody"),
        records.list_queries("nobody", cursor=None, limit=1),
        records.delete_queries("nobody"),
        records.redact_queries("nobody", "x"),
    ):
        with pytest.raises(NotFound, match="'nobody'"):
            await asked
