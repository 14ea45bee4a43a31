"""The query log in the database: off by default, bounded by number and age, redactable, written beside searches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from postgres.connection import Connection
from retrieval.errors import InvalidInput
from retrieval.journal import writer as journal_module
from retrieval.journal.query_log import AnsweredSearch, entry_of
from retrieval.journal.service import JournalService
from retrieval.journal.writer import JournalWriter
from retrieval.store import namespaces, query_log
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.types.journal import LoggedQuery, QueryPage
from retrieval.types.namespace import NamespaceSettings, QueryLogSettings
from retrieval.types.search import Filters, SearchRequest


async def namespace(pool: Pool, settings: QueryLogSettings | None, name: str = "n") -> Namespace:
    """A namespace with this setting of its log."""
    async with pool.connection() as conn:
        await namespaces.put(conn, name, NamespaceSettings(query_log=settings))
        return await namespaces.find(conn, name)


def searched(search_id: str, query: str = "Where?", **fields: Any) -> AnsweredSearch:
    given = {"profile": "default@3", "intent": "fact_lookup", "ids": ["b", "a"], "scores": [0.5, 0.25], "total_ms": 4.5}
    return AnsweredSearch(search_id=search_id, **{"request": SearchRequest(query=query), **given, **fields})


async def logged(pool: Pool, name: str = "n") -> list[LoggedQuery]:
    return (await JournalService(pool, JournalWriter(pool)).list_queries(name, cursor=None, limit=1_000)).queries


async def write(pool: Pool, ns: Namespace, *entries: AnsweredSearch) -> None:
    journal = JournalWriter(pool)
    for entry in entries:
        journal.log_search(ns, entry)
        await journal.aclose()


async def test_nothing_is_logged_unless_the_owner_wants_it(pool: Pool) -> None:
    off, on = await namespace(pool, None, "off"), await namespace(pool, QueryLogSettings(), "on")
    await write(pool, off, searched("s1"))
    await write(pool, on, searched("s2"))
    assert await logged(pool, "off") == []
    assert [entry.id for entry in await logged(pool, "on")] == ["s2"]


async def test_an_entry_comes_back_as_it_was_written(pool: Pool) -> None:
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    filters = Filters(tags_all=["chat"], created_before=at, metadata={"a": [1, None]})
    request = SearchRequest(query="Where is ana@example.org?", filters=filters, as_of=at, query_timestamp=at)
    search = AnsweredSearch(
        search_id="s1", request=request, profile="p@1", intent=None, ids=["b"], scores=[0.0163], total_ms=4.25, at=at
    )
    await write(pool, await namespace(pool, QueryLogSettings()), search)
    assert await logged(pool) == [entry_of(search, QueryLogSettings(), b"")]


async def test_no_text_is_kept_where_all_is_redacted(pool: Pool) -> None:
    """Repeats are recognised by a hash with the namespace's own key."""
    settings = QueryLogSettings(redact=("all",))
    for name in ("n", "other"):
        entries = [searched("s1", "Where?"), searched("s2", "Who?"), searched("s3", "Where?")]
        await write(pool, await namespace(pool, settings, name), *entries)
    first, second, third = await logged(pool)
    assert {first.query, second.query, third.query} == {None}
    assert first.query_hash == third.query_hash != second.query_hash
    assert first.query_hash != (await logged(pool, "other"))[0].query_hash


async def test_the_oldest_falls_out_of_a_full_log(pool: Pool) -> None:
    """Of this namespace only; a lowered bound applies from the next trimming."""
    small = await namespace(pool, QueryLogSettings(max_entries=3))
    other = await namespace(pool, QueryLogSettings(), "o")
    for number in range(6):
        await write(pool, small, searched(f"s{number}"))
        await write(pool, other, searched(f"s{number}"))
    assert [entry.id for entry in await logged(pool)] == ["s3", "s4", "s5"]
    assert len(await logged(pool, "o")) == 6
    async with pool.connection() as conn:
        assert await query_log.trim(conn) == 0
        await namespace(pool, QueryLogSettings(max_entries=1))
        assert await query_log.trim(conn) == 2
    assert [entry.id for entry in await logged(pool)] == ["s5"]
    assert len(await logged(pool, "o")) == 6


async def test_many_writers_keep_to_the_bound(pool: Pool) -> None:
    """All entries that fit are stored, each once."""
    ns = await namespace(pool, QueryLogSettings(max_entries=5))
    settings = QueryLogSettings(max_entries=5)

    async def one(number: int) -> None:
        async with pool.connection() as conn:
            await query_log.record(conn, ns.ns, entry_of(searched(f"s{number}"), settings, b""), settings)

    await asyncio.gather(*(one(number) for number in range(40)))
    await one(40)
    found = [entry.id for entry in await logged(pool)]
    assert len(found) == 5
    assert found[-1] == "s40"


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        (QueryLogSettings(max_age_days=7), ["6 days"]),
        (QueryLogSettings(max_age_days=None), ["31 days", "8 days", "6 days"]),
        (None, ["8 days", "6 days"]),
    ],
)
async def test_old_entries_go(pool: Pool, settings: QueryLogSettings | None, left: list[str]) -> None:
    """After switching off, as the default settings say; also those after one from when the clock was ahead."""
    ages = (-365, 31, 8, 6)
    now = datetime.now(UTC)
    entries = [searched(f"{days} days", at=now - timedelta(days=days)) for days in ages]
    await write(pool, await namespace(pool, QueryLogSettings()), *entries)
    await namespace(pool, settings)
    async with pool.connection() as conn:
        assert await query_log.trim(conn) == len(ages[1:]) - len(left)
        assert await query_log.trim(conn) == 0
    assert [entry.id for entry in await logged(pool)] == ["-365 days", *left]


async def test_deleting(pool: Pool) -> None:
    """Some by their searches' ids, or all; of this namespace only."""
    for name in ("n", "other"):
        await write(pool, await namespace(pool, QueryLogSettings(), name), *(searched(f"s{n}") for n in range(4)))
    records = JournalService(pool, JournalWriter(pool))
    assert await records.delete_queries("n", ids=["s1", "s3", "s9"]) == 2
    assert [entry.id for entry in await logged(pool)] == ["s0", "s2"]
    assert await records.delete_queries("n", ids=[]) == 0
    assert await records.delete_queries("n") == 2
    assert len(await logged(pool, "other")) == 4


async def test_deleting_waits_for_what_is_being_written(pool: Pool) -> None:
    found = await namespace(pool, QueryLogSettings())
    journal = JournalWriter(pool)
    records = JournalService(pool, journal)
    listing = records.list_queries("n", cursor=None, limit=9)
    for acting in (records.delete_queries("n"), records.redact_queries("n", "where"), listing):
        for number in range(5):
            journal.log_search(found, searched(f"s{number}"))
        done = await acting
        assert (len(done.queries) if isinstance(done, QueryPage) else done) == 5
        await records.delete_queries("n")


async def test_taking_the_text_out_of_what_is_stored(pool: Pool) -> None:
    """By what it contains, or by the searches' ids; the rest of the entry stays."""
    queries = ["Where is ANA?", "Where is Berta?", "100% of anas", "Who?"]
    for name in ("n", "other"):
        entries = [searched(f"s{n}", query) for n, query in enumerate(queries)]
        await write(pool, await namespace(pool, QueryLogSettings(), name), *entries)
    records = JournalService(pool, JournalWriter(pool))
    assert await records.redact_queries("n", "ana") == 2
    assert await records.redact_queries("n", "ana") == 0
    assert await records.redact_queries("n", "%") == 0, "no pattern"
    found = await logged(pool)
    assert [entry.query for entry in found] == [None, "Where is Berta?", None, "Who?"]
    assert [entry.filters for entry in found] == [None, Filters(), None, Filters()]
    assert (await logged(pool))[0].query_chars == len(queries[0])
    async with pool.connection() as conn:
        ns = (await namespaces.find(conn, "n")).ns
        assert await query_log.redact(conn, ns, ["s0", "s3"]) == 1
    assert [entry.query for entry in await logged(pool)] == [None, "Where is Berta?", None, None]
    assert [entry.query for entry in await logged(pool, "other")] == queries
    with pytest.raises(InvalidInput, match="empty"):
        await records.redact_queries("n", "")


async def test_a_name_is_taken_out_wherever_it_stands(pool: Pool) -> None:
    """Also in filters, and however its accents are encoded; not in the names of filters."""
    said = {
        "decomposed": SearchRequest(query="Where is Luci\u0301a?"),
        "speaker": SearchRequest(query="Where?", filters=Filters(speaker=["Ana", "LUCÍA"])),
        "quoted": SearchRequest(query="Where?", filters=Filters(metadata={"of": ['the "Lucía"']})),
        "key": SearchRequest(query="Where?", filters=Filters(metadata={"lucía": True})),
        "other": SearchRequest(query="Where?", filters=Filters(speaker=["Ana"])),
    }
    entries = [searched(search_id, request=request) for search_id, request in said.items()]
    await write(pool, await namespace(pool, QueryLogSettings()), *entries)
    records = JournalService(pool, JournalWriter(pool))
    assert await records.redact_queries("n", '"Lucía"') == 1
    assert await records.redact_queries("n", "Lucía") == 3
    assert await records.redact_queries("n", "metadata") == 0
    found = await logged(pool)
    assert [(entry.id, entry.query) for entry in found if entry.filters or entry.query] == [("other", "Where?")]


async def test_a_hash_goes_with_the_text(pool: Pool) -> None:
    """It would reveal whether a guessed text was asked again."""
    await write(pool, await namespace(pool, QueryLogSettings(redact=("all",))), searched("s1"))
    async with pool.connection() as conn:
        assert await query_log.redact(conn, (await namespaces.find(conn, "n")).ns, ["s1"]) == 1
    assert (await logged(pool))[0].query_hash is None


async def test_pages(pool: Pool) -> None:
    await write(pool, await namespace(pool, QueryLogSettings()), *(searched(f"s{n}") for n in range(5)))
    records = JournalService(pool, JournalWriter(pool))
    first = await records.list_queries("n", cursor=None, limit=3)
    assert [entry.id for entry in first.queries] == ["s0", "s1", "s2"]
    second = await records.list_queries("n", cursor=first.next_cursor, limit=3)
    assert ([entry.id for entry in second.queries], second.next_cursor) == (["s3", "s4"], None)


async def test_a_namespace_that_is_gone_gets_no_entry(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    """Nor is it restored or reported as an error."""
    for settings in (QueryLogSettings(), QueryLogSettings(redact=("all",))):
        ns = await namespace(pool, settings)
        async with pool.connection() as conn:
            await namespaces.delete(conn, "n")
        await write(pool, ns, searched("s1"))
        async with pool.connection() as conn:
            for table in ("select 1 from query_log", "select 1 from journal", "select 1 from namespace"):
                assert await (await conn.execute(table)).fetchone() is None
    assert caplog.records == []


async def test_a_failing_log_is_a_warning_without_the_query(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    ns = await namespace(pool, QueryLogSettings())
    async with pool.connection() as conn:
        await conn.execute("alter table query_log rename to moved")
    await write(pool, ns, searched("s1", "Where is Zacharias?"))
    (warning,) = caplog.records
    assert (warning.levelno, warning.getMessage()) == (
        logging.WARNING,
        "a search was not written to the journal: UndefinedTable",
    )
    assert "Zacharias" not in caplog.text


async def test_what_comes_too_fast_is_dropped_and_counted(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While the database does not keep up; waiting entries are written eventually, at most two at a time."""
    monkeypatch.setattr(journal_module, "MOST_WAITING", 5)
    ns, slow = await namespace(pool, QueryLogSettings()), SlowPool(pool)
    journal = JournalWriter(slow)  # type: ignore[arg-type]
    for number in range(8):
        journal.log_search(ns, searched(f"s{number}"))
    assert journal.dropped == 3
    await journal.aclose()
    assert sorted(entry.id for entry in await logged(pool)) == ["s0", "s1", "s2", "s3", "s4"]
    assert slow.most == 2
    assert [record.getMessage() for record in caplog.records] == ["the journal falls behind: entries are dropped"]


class SlowPool:
    """Takes its time, and counts how many connections are out."""

    def __init__(self, pool: Pool) -> None:
        self.most = 0
        self._out = 0
        self._pool = pool

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """One of the pool's."""
        self._out += 1
        self.most = max(self.most, self._out)
        await asyncio.sleep(0.01)
        async with self._pool.connection() as conn:
            yield conn
        self._out -= 1
