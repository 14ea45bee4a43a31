"""Compaction with concurrent writers and readers: results always equal those of an index of the live texts."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postgres.connection import Connection
from retrieval.errors import StoreUnavailable
from retrieval.store import namespaces
from retrieval.store.bm25 import compaction, postings, segments
from retrieval.store.bm25.segments import Segment, Segments
from retrieval.store.migrate import bundled, migrate
from retrieval.store.pool import Pool, open_pool
from retrieval.text.analysis import analyze, term_id
from tests.bm25 import append, live_postings, remove, without_vectors
from tests.examples import share_of_examples

WORDS = ["ara", "bele", "cita", "dono", "eru", "fala"]
NAMESPACES = itertools.count(5_000)
Texts = Mapping[int, str]
Decoded = dict[str, dict[int, int]]
Hook = Callable[[], Awaitable[None]]


def oracle(texts: Texts) -> Decoded:
    """The postings of some texts."""
    postings: Decoded = {}
    for doc, text in texts.items():
        for word, count in Counter(analyze(text)).items():
            postings.setdefault(word, {})[doc] = count
    return postings


async def decoded(conn: Connection, ns: int, words: Collection[str] = WORDS) -> Decoded:
    """The database's postings of words, of existing memories."""
    by_term = {term_id(word): word for word in words}
    found: Decoded = {}
    for term, of_term in (await live_postings(conn, ns, list(by_term))).terms.items():
        assert (np.diff(of_term.docs) > 0).all()
        found[by_term[term]] = dict(zip(of_term.docs.tolist(), of_term.tfs.tolist(), strict=True))
    return found


async def count(conn: Connection, table: str, ns: int) -> int:
    row = await (await conn.execute(f"select count(*) from {table} where ns = %s", (ns,))).fetchone()
    assert row is not None
    return int(row[0])


def some_texts(first: int, number: int, *, seed: int = 0) -> dict[int, str]:
    rng = random.Random(seed + first)
    return {doc: " ".join(rng.choices(WORDS, k=rng.randint(0, 9))) for doc in range(first, first + number)}


@asynccontextmanager
async def before_transaction(number: int, hook: Hook) -> AsyncIterator[None]:
    """Run something at the beginning of a compaction's n-th transaction, from 1."""
    lock, calls = namespaces.lock, itertools.count(1)

    async def hooked(conn: Connection, ns: int) -> int:
        if next(calls) == number:
            await hook()
        return await lock(conn, ns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(namespaces, "lock", hooked)
        yield


async def kill(pool: Pool, victim: Connection) -> None:
    """End a connection from the server's side."""
    async with pool.connection() as other:
        await other.execute("select pg_terminate_backend(%s)", (victim.info.backend_pid,))


async def crashing(pool: Pool, ns: int, transaction: int) -> None:
    """A compaction that loses its connection in its n-th transaction, if it has that many."""
    try:
        async with pool.connection() as conn, before_transaction(transaction, lambda: kill(pool, conn)):
            await compaction.compact(conn, ns)
    except StoreUnavailable:
        pass


@settings(max_examples=share_of_examples(0.3), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_any_history_leaves_the_postings_of_the_live_texts(pool: Pool, data: st.DataObject) -> None:
    """Appends, deletes, compactions; deletes in flight during compactions that commit or not; crashes."""
    ns, number = next(NAMESPACES), 0
    live: dict[int, str] = {}
    for _ in range(data.draw(st.integers(1, 10))):
        action = data.draw(st.sampled_from(["append", "append", "remove", "compact", "crash", "in flight", "beside"]))
        gone = data.draw(st.sets(st.sampled_from(sorted(live)), min_size=1)) if live else set()
        async with pool.connection() as conn:
            if action == "append":
                new = {
                    number + at: " ".join(data.draw(st.lists(st.sampled_from(WORDS), max_size=5))) for at in range(4)
                }
                number += len(new)
                await append(conn, ns, new)
                live |= new
            elif action == "compact":
                await compaction.compact(conn, ns)
            elif action == "crash":
                await crashing(pool, ns, data.draw(st.integers(1, 6)))
            elif action == "remove":
                await remove(conn, ns, gone)
                live = {doc: text for doc, text in live.items() if doc not in gone}
            elif action == "in flight":  # a delete that has begun before and ends after
                commits = data.draw(st.booleans())
                async with pool.connection() as writer, writer.transaction(force_rollback=not commits):
                    await remove(writer, ns, gone)
                    await compaction.compact(conn, ns)
                if commits:
                    live = {doc: text for doc, text in live.items() if doc not in gone}
            else:

                async def removed(gone: Collection[int] = gone, live: dict[int, str] = live) -> None:
                    async with pool.connection() as writer:
                        await remove(writer, ns, gone)
                    for doc in gone:
                        del live[doc]

                async with before_transaction(data.draw(st.integers(1, 6)), removed):
                    await compaction.compact(conn, ns)
            assert await decoded(conn, ns) == oracle(live)
    async with pool.connection() as conn:
        await compaction.compact(conn, ns)
        assert await decoded(conn, ns) == oracle(live)


@pytest.mark.parametrize("commits", [True, False])
async def test_a_delete_does_not_wait_for_packing(pool: Pool, monkeypatch: pytest.MonkeyPatch, commits: bool) -> None:
    """Memories whose rows a compaction has just moved out of the tail are deleted at once, and stay deleted."""
    texts = some_texts(0, 20)
    go_live = Segments.go_live
    taken, deleted = asyncio.Event(), asyncio.Event()

    async def paused(self: Segments, segment: Segment) -> None:
        taken.set()
        await deleted.wait()
        if not commits:
            raise RuntimeError("the compaction fails")
        await go_live(self, segment)

    monkeypatch.setattr(Segments, "go_live", paused)
    async with pool.connection() as conn, pool.connection() as writer:
        await append(conn, 1, texts)
        packing = asyncio.create_task(compaction.compact(conn, 1))
        await taken.wait()
        async with asyncio.timeout(60), writer.transaction():
            await writer.execute("set local lock_timeout = '1ms'")
            await remove(writer, 1, [3, 4, 5])
        assert await decoded(writer, 1) == oracle({doc: text for doc, text in texts.items() if doc not in (3, 4, 5)})
        deleted.set()
        if commits:
            assert await packing == 20
        else:
            with pytest.raises(RuntimeError, match="the compaction fails"):
                await packing
    monkeypatch.undo()
    async with pool.connection() as conn:
        live = {doc: text for doc, text in texts.items() if doc not in (3, 4, 5)}
        assert await decoded(conn, 1) == oracle(live)
        await append(conn, 1, some_texts(20, 3))
        await compaction.compact(conn, 1)
        assert await decoded(conn, 1) == oracle({**live, **some_texts(20, 3)})


async def test_packing_does_not_wait_for_a_delete(pool: Pool) -> None:
    """A writer that has deleted memories and continues its transaction blocks nobody."""
    texts = some_texts(0, 20)
    async with pool.connection() as conn, pool.connection() as writer:
        await append(conn, 1, texts)
        async with writer.transaction(force_rollback=True):
            await remove(writer, 1, [3, 4, 5])
            async with asyncio.timeout(60):
                await compaction.compact(conn, 1)
            assert await count(conn, "bm25_tail", 1) == 3
            assert await decoded(conn, 1) == oracle(texts), "he has not committed"
        assert await decoded(conn, 1) == oracle(texts), "he has rolled back, so they are packed and in the tail"
        await compaction.compact(conn, 1)
        assert await count(conn, "bm25_tail", 1) == 0
        assert await decoded(conn, 1) == oracle(texts), "packed twice"


@pytest.mark.parametrize("transaction", range(1, 8))
async def test_a_crash_loses_nothing_and_leaves_nothing(pool: Pool, transaction: int) -> None:
    """The connection is lost in each of the transactions in turn; the next compaction finishes the work."""
    texts: dict[int, str] = {}
    async with pool.connection() as conn:
        for number in range(compaction.TIER_WIDTH):
            texts |= (new := some_texts(10 * number, 10))
            await append(conn, 1, new)
            if number < compaction.TIER_WIDTH - 1:
                await compaction.compact(conn, 1)
    await crashing(pool, 1, transaction)
    async with pool.connection() as conn:
        assert await decoded(conn, 1) == oracle(texts)
        begins_merge = transaction == 4  # all is packed, and merging can wait for the next time
        assert await compaction.namespaces_to_compact(conn, least=1) == ([] if begins_merge else [1])
        await compaction.compact(conn, 1)
        assert await decoded(conn, 1) == oracle(texts)
        assert await count(conn, "bm25_segment", 1) == 1
        assert await compaction.namespaces_to_compact(conn, least=1) == []


async def test_two_processes_do_not_pack_the_same(pool: Pool) -> None:
    async with pool.connection() as first, pool.connection() as second:
        await append(first, 1, some_texts(0, 30))

        async def beside() -> None:
            assert await compaction.compact(second, 1) == 0

        async with before_transaction(2, beside):
            assert await compaction.compact(first, 1) == 30
        assert await compaction.compact(second, 1) == 0
        await append(first, 1, some_texts(30, 5))
        assert await compaction.compact(second, 1) == 5, "the first has let go"


async def test_a_namespace_deleted_meanwhile_stays_deleted(pool: Pool) -> None:
    for transaction in range(1, 5):
        async with pool.connection() as conn, pool.connection() as other:
            await append(conn, transaction, some_texts(0, 10))

            async def delete(name: str = str(transaction), other: Connection = other) -> None:
                async with asyncio.timeout(60):
                    await namespaces.delete(other, name)

            async with before_transaction(transaction, delete):
                await compaction.compact(conn, transaction)
            if transaction < 4:
                for table in ("bm25_tail", "bm25_posting", "bm25_segment", "bm25_tombstone"):
                    assert await count(conn, table, transaction) == 0


@pytest.mark.parametrize(("gone", "days"), [(40, 0), (20, 2), (20, -2)])
async def test_the_dead_are_purged_when_they_are_many_or_old(pool: Pool, gone: int, days: int) -> None:
    """Deletes alone, with nothing added, make a namespace worth compacting; also if the clock was set back."""
    texts = {doc: "ara" for doc in range(100)}
    async with pool.connection() as conn:
        await append(conn, 1, texts)
        await compaction.compact(conn, 1)
        await remove(conn, 1, range(20))
        assert await compaction.namespaces_to_compact(conn, least=20) == [1]
        await compaction.compact(conn, 1, least=20)
        assert await count(conn, "bm25_tombstone", 1) == 20, "too few to be worth it"
        await remove(conn, 1, range(20, gone))
        await conn.execute("update bm25_tombstone set at = now() - make_interval(days => %s) where doc = 3", (days,))
        assert await compaction.namespaces_to_compact(conn, least=99) == ([1] if days else [])
        await compaction.compact(conn, 1, least=20)
        assert await count(conn, "bm25_tombstone", 1) == 0
        parameters = {"ns": 1, "terms": [term_id("ara")]}
        rows = await (await conn.execute(postings.FETCH_TERMS, parameters, binary=True)).fetchall()
        docs, _ = postings.decode_terms(rows, [term_id("ara")])[term_id("ara")]
        assert docs.tolist() == list(range(gone, 100)), "not even the bytes are left"


async def test_a_long_tail_is_packed_in_pieces(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many segments there are, and a merge handles a part of the terms at a time."""
    monkeypatch.setattr(compaction, "PACKED_AT_ONCE", 30)
    monkeypatch.setattr(segments, "MEMORIES_AT_ONCE", 20)
    texts = some_texts(0, 300)
    async with pool.connection() as conn:
        await append(conn, 1, texts)
        assert await compaction.compact(conn, 1) == 300
        assert await count(conn, "bm25_segment", 1) == 1, "the ten were merged"
        assert await decoded(conn, 1) == oracle(texts)


async def test_bytes_per_memory(pool: Pool) -> None:
    """2,000 memories of 30 words of a large vocabulary, everything counted."""
    rng = np.random.default_rng(5)
    weights = 1 / np.arange(1, 50_001)
    words = rng.choice(50_000, (2_000, 30), p=weights / weights.sum())
    letters = str.maketrans("0123456789", "abcdefghij")
    async with pool.connection() as conn:
        await without_vectors(conn)
        texts = {doc: " ".join(map(str, row)).translate(letters) for doc, row in enumerate(words.tolist())}
        await append(conn, 1, texts)
        await compaction.compact(conn, 1)
        total = 0
        for table in ("bm25_posting", "bm25_segment", "bm25_tombstone"):
            row = await (await conn.execute("select pg_total_relation_size(%s::regclass)", (table,))).fetchone()
            assert row is not None
            total += row[0]
    assert total / 2_000 < 250


async def test_what_an_older_version_packed_is_still_found(empty_database_url: str) -> None:
    """Its segments go back to the tail, without the memories that were deleted."""
    series = bundled()
    before = next(migration.version for migration in series if migration.name == "segments") - 1
    await migrate(empty_database_url, series=series[:before])
    texts = {0: "ara ara bele", 1: "bele", 70_000: "ara", 2**24 + 1: "cita", 5: ""}
    with psycopg.connect(empty_database_url) as db:
        for word, docs in oracle(texts).items():
            columns = [np.array(list(docs), "<i4"), np.array(list(docs.values()), "<u2"), np.ones(len(docs), "<u2")]
            db.execute(
                "insert into bm25_posting values (1, %s, 1, %s, %s, %s, %s)",
                (term_id(word), min(docs), *(column.tobytes() for column in columns)),
            )
        db.execute("insert into bm25_segment (ns, docs, length) values (1, 5, 8)")
        db.execute("insert into bm25_tombstone values (1, 70000, 1)")
        db.execute("insert into namespace (ns, name) overriding system value values (1, 'n')")
        db.execute(
            """
            insert into memory (
                ns, doc, id, kind, text, created_at, tags, metadata, entities, relations, fingerprint, length, embedding
            )
            select 1, doc, doc, 'text', '', now(), '{}', '{}', '[]', '[]', '', 1,
                array_fill(0::real, array[384])::halfvec(384)
            from unnest(%s::int[]) as doc
            """,
            ([doc for doc in texts if doc != 70_000],),
        )
    await migrate(empty_database_url)
    async with open_pool(empty_database_url, 2) as pool, pool.connection() as conn:
        expected = oracle({doc: text for doc, text in texts.items() if doc != 70_000})
        assert await decoded(conn, 1) == expected
        await compaction.compact(conn, 1)
        assert await decoded(conn, 1) == expected
        assert await count(conn, "bm25_tail", 1) == 0
