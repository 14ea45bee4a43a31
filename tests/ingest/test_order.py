"""Ingest's guarantees for concurrent calls: their order, and that none fails because of another."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg
import pytest
from msgspec import structs
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from retrieval.errors import InvalidInput, StoreUnavailable
from retrieval.ingest import service, transaction
from retrieval.ingest.analysis import Analyser
from retrieval.ingest.checks import drafts_of
from retrieval.ingest.group_commit import MOST_MEMORIES, GroupCommit, WriteBatch
from retrieval.ingest.ordering import KeyedFifo
from retrieval.ingest.service import Ingest
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.types.memory import MemoryInput, MemoryPatch, SharedPatch
from retrieval.types.namespace import NamespaceSettings
from retrieval.types.search import Filters
from tests.processes import PATIENCE_S
from tests.turns import (
    CountingEmbedder,
    HashedEmbedder,
    check_turns,
    hashed,
    own_vector,
    sessions_of,
    stored_turns,
    uncached,
)


class SlowAtFirst(HashedEmbedder):
    """Answers faster with each call, so that later calls are ready before earlier ones."""

    def __init__(self) -> None:
        self._pause_s = 0.5

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, one per row."""
        self._pause_s /= 2
        await asyncio.sleep(self._pause_s)
        return await super().embed_documents(texts)


@pytest.fixture
def ingest(pool: Pool) -> Ingest:
    return Ingest(pool, uncached(SlowAtFirst()))


class Transactions:
    """Those that store memories.

    Attributes:
        ids: of each, as they begin.
        is_shared: one of several memories has begun.
    """

    def __init__(self) -> None:
        self.ids: list[list[str]] = []
        self.is_shared = asyncio.Event()
        self._missing = 0
        self._all_wait = asyncio.Event()

    def wait_for(self, batches: int) -> None:
        """Make the next transaction wait until `batches` batches, including its own, are ready to be written."""
        self._missing = batches
        self._all_wait.clear()

    def comes(self) -> None:
        """A batch is ready to be written."""
        self._missing -= 1
        if self._missing <= 0:
            self._all_wait.set()

    async def begins(self, ids: list[str]) -> None:
        """One that stores these memories begins."""
        self.ids.append(ids)
        if len(ids) > 1:
            self.is_shared.set()
        await self._all_wait.wait()


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> Transactions:
    begun, share, store = Transactions(), GroupCommit.store, transaction.store

    async def sharing(self: GroupCommit, namespace: Any, batch: Any) -> Any:
        begun.comes()
        return await share(self, namespace, batch)

    async def noting(conn: Any, namespace: Any, analysed: Any, **kwargs: Any) -> Any:
        await begun.begins([item.id for item in analysed])
        return await store(conn, namespace, analysed, **kwargs)

    monkeypatch.setattr(GroupCommit, "store", sharing)
    monkeypatch.setattr(transaction, "store", noting)
    return begun


def turn(memory_id: str, session_id: str | None, text: str | None = None) -> MemoryInput:
    return MemoryInput(id=memory_id, text=text or f"text of {memory_id}", session_id=session_id)


async def test_who_may_have_been_written_is_told_that_the_database_was_lost(
    pool: Pool, transactions: Transactions, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not a conflict with others, as after a lost connection it is unknown whether all were stored."""
    store, is_lost = transaction.store, False

    async def losing(conn: Any, namespace: Any, analysed: Any, **kwargs: Any) -> Any:
        nonlocal is_lost
        written = await store(conn, namespace, analysed, **kwargs)
        if len(analysed) > 1 and not is_lost:
            is_lost = True
            await conn.execute("select pg_terminate_backend(pg_backend_pid())")
        return written

    monkeypatch.setattr(transaction, "store", losing)
    ingest = Ingest(pool, hashed())
    texts = [f"text {at}" for at in range(6)]
    transactions.wait_for(len(texts))
    answers = await asyncio.gather(
        *(ingest.add("n", [MemoryInput(text=text)]) for text in texts), return_exceptions=True
    )
    assert {type(answer) for answer in answers} == {list, StoreUnavailable}
    with psycopg.connect(database_url) as db:
        assert sorted(text for (text,) in db.execute("select text from memory")) == texts


async def test_turns_of_a_session_stand_in_the_order_of_the_calls(ingest: Ingest, database_url: str) -> None:
    """Although the later calls are embedded first."""
    ids = [f"m{at}" for at in range(6)]
    await asyncio.gather(*(ingest.add("n", [turn(memory_id, "s")]) for memory_id in ids))
    turns = check_turns(database_url, {memory_id: f"text of {memory_id}" for memory_id in ids})
    assert [one.id for one in sessions_of(turns.values())["s"]] == ids


async def test_the_later_call_with_an_id_wins(ingest: Ingest, database_url: str) -> None:
    """And gets the status of a replacement."""
    answers = await asyncio.gather(*(ingest.add("n", [turn("a", None, f"version {at}")]) for at in range(4)))
    assert [answer[0].status for answer in answers] == ["created", "updated", "updated", "updated"]
    with psycopg.connect(database_url) as db:
        assert db.execute("select text from memory").fetchall() == [("version 3",)]


async def test_a_later_call_with_the_same_content_changes_nothing(ingest: Ingest, database_url: str) -> None:
    """As one that comes after the first is done: clients resend after a timeout."""
    answers = await asyncio.gather(*(ingest.add("n", [turn("a", None), turn(f"b{at}", None)]) for at in range(3)))
    first, *later = ([result.status for result in answer] for answer in answers)
    assert (first, later) == (["created", "created"], [["unchanged", "created"]] * 2)
    with psycopg.connect(database_url) as db:
        assert [id_ for (id_,) in db.execute("select id from memory order by doc")] == ["a", "b0", "b1", "b2"]


async def test_a_later_call_that_restores_what_is_stored_wins(ingest: Ingest, database_url: str) -> None:
    """Even if nothing differs from the stored version when it begins."""
    old, new = turn("a", None, "the old text"), turn("a", None, "the new text")
    await ingest.add("n", [old])
    answers = await asyncio.gather(ingest.add("n", [new]), ingest.add("n", [old]))
    assert [answer[0].status for answer in answers] == ["updated", "updated"]
    with psycopg.connect(database_url) as db:
        assert db.execute("select text from memory").fetchall() == [("the old text",)]


async def test_turns_move_to_another_session_in_their_order(pool: Pool, database_url: str) -> None:
    """Even if one of them has been rewritten, and so comes after the others."""
    ingest = Ingest(pool, hashed())
    ids = [f"m{at}" for at in range(4)]
    await ingest.add("n", [turn(memory_id, "s") for memory_id in ids])
    await ingest.patch("n", "m0", MemoryPatch(tags=["x"]))
    await ingest.update("n", SharedPatch(session_id="t"), filters=Filters(session_id=["s"]))
    turns = check_turns(database_url, {memory_id: f"text of {memory_id}" for memory_id in ids})
    assert [one.id for one in sessions_of(turns.values())["t"]] == ids


async def test_a_change_that_changes_nothing_writes_nothing(pool: Pool, database_url: str) -> None:
    """Even if the caller left out the time, which is stored."""
    ingest = Ingest(pool, hashed())
    await ingest.add("n", [MemoryInput(id="a", text="x", tags=["t"])])
    for memories in ({"ids": ["a"]}, {"filters": Filters(tags_all=["t"])}):
        receipt = await ingest.update("n", SharedPatch(tags=["t"]), **memories)
        assert (receipt.matched, receipt.updated) == (1, 0)
    await ingest.patch("n", "a", MemoryPatch(text="x"))
    with psycopg.connect(database_url) as db:
        assert db.execute("select doc from memory").fetchall() == [(0,)]


async def test_small_batches_that_wait_share_a_transaction(
    pool: Pool, transactions: Transactions, database_url: str
) -> None:
    """The first is written at once; those that came meanwhile are written together, as many as fit."""
    ingest = Ingest(pool, hashed())
    batches = [[turn(f"w{writer} {at}", f"s{writer}") for at in range(8)] for writer in range(12)]
    transactions.wait_for(len(batches))
    answers = await asyncio.gather(*(ingest.add("n", batch) for batch in batches))
    assert all(one.status == "created" for answer in answers for one in answer)
    assert max(map(len, transactions.ids)) <= MOST_MEMORIES
    assert len(transactions.ids) <= 4
    stored = sorted(name for ids in transactions.ids for name in ids)
    assert stored == sorted(one.id or "" for batch in batches for one in batch)
    check_turns(database_url, {one.id or "": one.text for batch in batches for one in batch})


async def test_patches_share_a_transaction(pool: Pool, transactions: Transactions, database_url: str) -> None:
    """Also of turns next to each other."""
    ingest = Ingest(pool, hashed())
    await ingest.add("n", [turn(f"t{at}", "s") for at in range(6)])
    transactions.ids.clear()
    texts = {f"t{at}": f"new text of {at}" for at in range(6)}
    transactions.wait_for(len(texts))
    changed = await asyncio.gather(*(ingest.patch("n", each, MemoryPatch(text=text)) for each, text in texts.items()))
    assert [memory.id for memory in changed] == [*texts]
    assert len(transactions.ids) < len(texts)
    check_turns(database_url, texts)


async def test_two_patches_of_one_memory_are_both_made(pool: Pool, database_url: str) -> None:
    """One after the other in any order, and writes of other memories in parallel."""
    ingest = Ingest(pool, hashed())
    await ingest.add("n", [turn(f"t{at}", "s") for at in range(6)])
    patches = [(f"t{at}", MemoryPatch(text=f"new text of {at}")) for at in range(6)] + [("t3", MemoryPatch(title="x"))]
    changed = await asyncio.gather(*(ingest.patch("n", memory_id, patch) for memory_id, patch in patches))
    assert [memory.id for memory in changed] == [memory_id for memory_id, _ in patches]
    check_turns(database_url, {"t3": "x\nnew text of 3"} | {f"t{at}": f"new text of {at}" for at in (0, 1, 2, 4, 5)})


async def test_what_keeps_its_text_keeps_its_embedding(pool: Pool, database_url: str) -> None:
    """Nothing is embedded for it, yet its vector and those of the turns after it are right."""
    embedder = CountingEmbedder()
    ingest = Ingest(pool, uncached(embedder))
    await ingest.add("n", [turn("t0", "s"), turn("t1", "s"), turn("t2", "s"), turn("note", None)])
    embedder.texts.clear()
    await ingest.patch("n", "t1", MemoryPatch(metadata={"a": 1}))
    await ingest.patch("n", "t0", MemoryPatch(tags=["b"]))
    await ingest.update("n", SharedPatch(metadata={"c": 2}), ids=["note", "t2"])
    again = [structs.replace(turn(name, session), tags=["again"]) for name, session in (("t1", "s"), ("note", None))]
    assert [each.status for each in await ingest.add("n", again)] == ["updated", "updated"]
    assert embedder.texts == []
    texts = {f"t{at}": f"text of t{at}" for at in range(3)}
    check_turns(database_url, texts)
    await ingest.patch("n", "t1", MemoryPatch(speaker="Ann"))
    assert embedder.texts == ["Ann: text of t1"]
    check_turns(database_url, texts | {"t1": "Ann: text of t1"})
    with psycopg.connect(database_url) as db:
        register_vector(db)
        [(same,)] = db.execute(
            "select embedding = %s::halfvec from memory where id = 'note'", (HalfVector(own_vector("text of note")),)
        ).fetchall()
    assert same


async def test_one_that_the_database_refuses_fails_alone(
    pool: Pool, transactions: Transactions, database_url: str
) -> None:
    """Those that shared its transaction are written nevertheless."""
    ingest = Ingest(pool, hashed())
    endless = random.Random(3).randbytes(20_000).hex()  # too long for an index, and for a request
    batches = [[turn(f"m{at}", None)] for at in range(6)]
    batches.insert(3, [turn(endless, None)])
    transactions.wait_for(len(batches))
    answers = await asyncio.gather(*(ingest.add("n", batch) for batch in batches), return_exceptions=True)
    assert [type(answer) for answer in answers] == [list] * 3 + [InvalidInput] + [list] * 3
    assert any(len(ids) > 1 for ids in transactions.ids)
    with psycopg.connect(database_url) as db:
        assert db.execute("select id from memory order by id").fetchall() == [(f"m{at}",) for at in range(6)]
    assert stored_turns(database_url) == {}


async def test_those_that_wait_together_get_no_connection_together(pool: Pool) -> None:
    """One after the other, each would wait for the connection that none before it got."""
    writes, namespace, pool.timeout = GroupCommit(pool), Namespace(1, "n", NamespaceSettings(), 0, 0), 0.05
    drafts = drafts_of([turn(f"m{at}", None) for at in range(6)], {})
    analysed = await Analyser(hashed()).analyse(drafts, namespace.settings, {})
    held = [await pool.getconn() for _ in range(pool.max_size)]
    batches = [WriteBatch(analysed=[each], before=(), expected={}) for each in analysed]
    answers = await asyncio.gather(*(writes.store(namespace, each) for each in batches), return_exceptions=True)
    assert {type(answer) for answer in answers} == {StoreUnavailable}
    assert pool.get_stats()["requests_errors"] == 2  # the first is written at once, the others together
    for conn in held:
        await pool.putconn(conn)


async def test_a_caller_who_goes_away_takes_nobody_along(pool: Pool, transactions: Transactions) -> None:
    """The one writing for others is cancelled; they write themselves."""
    ingest = Ingest(pool, hashed())
    transactions.wait_for(5)
    calls = [asyncio.create_task(ingest.add("n", [turn(f"m{at}", None)])) for at in range(5)]
    await transactions.is_shared.wait()
    leader = next(at for at in range(5) if f"m{at}" == transactions.ids[1][0])
    calls[leader].cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(answers[leader], asyncio.CancelledError)
    assert all(isinstance(answer, list) for at, answer in enumerate(answers) if at != leader)


async def test_a_caller_who_goes_away_after_the_commit_leaves_the_others_their_answer(
    pool: Pool, transactions: Transactions, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their memories are stored: they get no conflict, and nothing is written again."""
    store, calls = transaction.store, dict[str, asyncio.Task[Any]]()

    async def leaving(conn: Any, namespace: Any, analysed: Any, **kwargs: Any) -> Any:
        written = await store(conn, namespace, analysed, **kwargs)
        if len(analysed) > 1:
            calls[analysed[0].input.text].cancel()
            await asyncio.sleep(0)
        return written

    monkeypatch.setattr(transaction, "store", leaving)
    ingest = Ingest(pool, hashed())
    transactions.wait_for(6)
    calls |= {
        text: asyncio.create_task(ingest.add("n", [MemoryInput(text=text)])) for text in map("text {}".format, range(6))
    }
    answers = await asyncio.gather(*calls.values(), return_exceptions=True)
    left = [answer for answer in answers if not isinstance(answer, list)]
    assert [type(each) for each in left] == [asyncio.CancelledError]
    assert {result.status for answer in answers if isinstance(answer, list) for result in answer} == {"created"}
    with psycopg.connect(database_url) as db:
        assert db.execute("select text from memory order by text").fetchall() == [(text,) for text in calls]


async def test_precedence_waits_for_all_before_and_none_else() -> None:
    """One in the middle that ends early does not let later ones overtake the first."""
    order = KeyedFifo()
    with order.enter(["a"]) as first, order.enter(["b"]) as other:
        assert not await first()
        assert not await other()
        with order.enter(["a", "b"]):
            pass
        with order.enter(["b"]) as last:
            waiting = asyncio.create_task(last())
            await asyncio.sleep(0.01)
            assert not waiting.done()
    assert await asyncio.wait_for(waiting, 60)
    with order.enter(["a", "b"]) as anew:
        assert not await asyncio.wait_for(anew(), 60)


async def test_a_large_batch_is_checked_beside_the_event_loop(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checks yield to the event loop; a small batch with one of its ids comes after it."""
    at_work, go_on = threading.Event(), threading.Event()

    def waiting(batch: Sequence[Any], results: Any) -> Any:
        if len(batch) > 1:
            at_work.set()
            assert go_on.wait(timeout=PATIENCE_S)
        return drafts_of(batch, results)

    monkeypatch.setattr(service, "drafts_of", waiting)
    large = asyncio.create_task(ingest.add("n", [turn(f"m{number}", None) for number in range(100)]))
    await asyncio.to_thread(at_work.wait)
    small = asyncio.create_task(ingest.add("n", [turn("m7", None, "changed")]))
    await asyncio.sleep(0)
    go_on.set()
    assert [result.status for result in await large] == ["created"] * 100
    assert [result.status for result in await small] == ["updated"]
