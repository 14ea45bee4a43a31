"""The mirror that followed a namespace against one that is read anew, whatever was written and by whom."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from psycopg import AsyncConnection
from psycopg.errors import OperationalError

from graph.adjacency import Adjacency
from graph.prepared import Parameters, Prepared
from retrieval import writes
from retrieval.errors import NotFound
from retrieval.ingest import Ingest
from retrieval.mirror import columns, registry
from retrieval.mirror import mirror as mirrors
from retrieval.mirror.columns import Columns
from retrieval.mirror.mirror import Mirror
from retrieval.mirror.registry import Mirrors, Standing
from retrieval.mirror.terms import Postings
from retrieval.mirror.vectors import Vectors
from retrieval.store import changes, compaction, namespaces
from retrieval.store.pool import Pool, open_pool
from retrieval.store.visibility import ELIGIBLE, eligibility
from retrieval.text.analysis import analyze, term_id
from retrieval.text.calendar_terms import calendar_terms
from retrieval.types import EntityInput, Filters, MemoryInput, MemoryPatch, RelationInput
from tests.turns import HashedEmbedder

NAMES = (f"n{number}" for number in itertools.count())
WORDS = ("harbour", "boats", "Ida", "paints", "Größe", "北京", "Porto", "rarely")
IDS = tuple("abcdefgh")
DAY = datetime(2024, 5, 1, tzinfo=UTC)
LATER = datetime.now(UTC) + timedelta(hours=1)
QUANTISED = 1e-4
"""Most that a component of a vector is off once it is kept in 12 bits."""
TERMS = sorted(
    {term_id(term) for word in (*WORDS, "Bo", "Zoë", "title") for term in analyze(word, "english")}
    | {term_id(term) for day in range(3) for term in calendar_terms(DAY + timedelta(days=day))}
)


class Process:
    """What a server process has: a writer and mirrors, on connections of its own."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.ingest = Ingest(pool, HashedEmbedder())
        self.mirrors = Mirrors(pool, most_bytes=2**30)

    async def standing(self, name: str = "n", terms: Sequence[int] = TERMS) -> Standing:
        """A namespace as a query finds it."""
        return await self.mirrors.current(name, lambda _: terms)

    async def ids(self, word: str, name: str = "n") -> set[str]:
        """The memories that have a word, by its postings."""
        terms = [term_id(term) for term in analyze(word, "english")]
        standing = await self.standing(name, terms)
        docs = [found.docs for found in standing.postings.terms.values()]
        return set(standing.mirror.memories.ids.get(np.concatenate(docs).astype(np.int64))) if docs else set()

    async def vectors(self, standing: Standing) -> tuple[list[int], NDArray[np.float32], NDArray[np.float32]]:
        """Every memory with its vectors, as legs come by them: ordinals, those they are found by, and own ones."""
        docs = np.flatnonzero(standing.mirror.memories.alive.values).tolist()
        known = Vectors(self.pool, standing.mirror)
        await known.read(docs)
        there = [doc for doc, place in zip(docs, known.places(docs).tolist(), strict=True) if place >= 0]
        return there, known.stored[known.places(there)], known.own[known.places(there)]

    async def compact(self, name: str = "n") -> None:
        """Pack its postings."""
        async with self.pool.connection() as conn:
            await compaction.compact(conn, (await namespaces.find(conn, name)).ns)


@pytest.fixture
async def two(database_url: str) -> AsyncIterator[tuple[Process, Process]]:
    """Two server processes over one database."""
    async with open_pool(database_url, 3) as one, open_pool(database_url, 3) as other:
        processes = Process(one), Process(other)
        yield processes
        for process in processes:
            await process.mirrors.aclose()


@pytest.fixture
def process(two: tuple[Process, Process]) -> Process:
    return two[0]


def memory(id_: str, text: str = "Ida paints boats.", **fields: Any) -> MemoryInput:
    return MemoryInput(id=id_, text=text, **{"created_at": DAY, **fields})


# --- what is compared


def columns_of(memories: Columns) -> dict[str, object]:
    """All that is known of each memory that is there, by id, and of all together."""
    docs = np.flatnonzero(memories.alive.values).astype(np.int64)
    known: dict[str, object] = {"count": memories.count, "length": memories.total_length}
    for doc, id_ in zip(docs.tolist(), memories.ids.get(docs), strict=True):
        numbers = (memories.length, memories.created, memories.expires, memories.superseded, memories.traits,
                   memories.asks, memories.previous, memories.next)  # fmt: skip
        strings = (memories.kinds, memories.speakers, memories.sessions, memories.documents, memories.titles)
        [tags] = memories.tags.get(np.array([doc]))
        known[id_] = (
            doc,
            *(column[doc].item() for column in numbers),
            *(text for column in strings for text in column.get(np.array([doc]))),
            tags and json.loads(tags),
        )
    return known


def graph_of(graph: Adjacency, memories: Columns, entities: Sequence[int]) -> dict[str, object]:
    """All edges and relations, as a walk asks for them."""
    numbers = np.array(entities, np.int64)
    eligible = memories.alive.values
    docs = np.flatnonzero(eligible)
    every = 10_000
    return {
        "mentions": graph.mentions(numbers, cap=every).tolist(),
        "latest": rows_of(graph.latest_of(numbers, eligible, scanned=every, most=every)),
        "weightiest": sorted(rows_of(graph.weightiest_of(docs, most=every))),
        "relations": [[list(way) for way in graph.relations_of(entity)] for entity in entities],
    }


def rows_of(edges: Sequence[Any]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in edges), strict=True))


def postings_of(found: Postings) -> dict[object, object]:
    return {
        "memories": (found.memories, found.length),
        **{term: (each.docs.tolist(), each.tfs.tolist(), each.lengths.tolist()) for term, each in found.terms.items()},
    }


def state(standing: Standing, entities: Sequence[int]) -> dict[str, object]:
    mirror = standing.mirror
    return {
        "next": standing.namespace.next_doc,
        "memories": columns_of(mirror.memories),
        "graph": graph_of(mirror.graph, mirror.memories, entities),
        "postings": postings_of(standing.postings),
    }


async def assert_right(process: Process, name: str = "n") -> None:
    """What a process knows is what one that starts now would read."""
    followed = await process.standing(name)
    anew = await Process(process.pool).standing(name)
    assert anew.mirror is not followed.mirror
    async with process.pool.connection() as conn:
        rows = await conn.execute("select entity from entity where ns = %s order by entity", (followed.namespace.ns,))
        entities = [entity for (entity,) in await rows.fetchall()]
    mine, others = state(followed, entities), state(anew, entities)
    for part in mine:
        assert mine[part] == others[part]
    docs, stored, own = await process.vectors(followed)
    expected = await process.vectors(anew)
    assert docs == expected[0]
    np.testing.assert_allclose(stored, expected[1], atol=QUANTISED)
    np.testing.assert_allclose(own, expected[2], atol=QUANTISED)


FILTERS = (
    Filters(),
    Filters(tags_any=["red", "big"]),
    Filters(tags_all=["red", "big"], kind=["memory"]),
    Filters(speaker=["Zoë"], created_before=DAY + timedelta(days=2)),
    Filters(session_id=["s", "t"], created_after=DAY),
    Filters(document_id=["d"], tags_any=["none"]),
)
MOMENTS = (None, DAY, DAY + timedelta(days=1, microseconds=1), LATER + timedelta(days=1))


async def assert_masks(process: Process, name: str) -> None:
    """What may be seen is what the predicate in SQL says."""
    standing = await process.standing(name)
    async with process.pool.connection() as conn:
        for filters, as_of, superseded in itertools.product(FILTERS, MOMENTS, (False, True)):
            parameters = eligibility(filters, as_of=as_of, include_superseded=superseded)
            rows = await conn.execute(
                "select m.doc from memory m where m.ns = %(ns)s and " + ELIGIBLE + " order by m.doc",
                {"ns": standing.namespace.ns, **parameters},
            )
            _, eligible = standing.mirror.memories.masks(
                filters, as_of=as_of, include_superseded=superseded, now=standing.now
            )
            expected = [doc for (doc,) in await rows.fetchall()]
            assert np.flatnonzero(eligible).tolist() == expected, (filters, as_of, superseded)


# --- any history

INPUTS = st.builds(
    memory,
    st.sampled_from(IDS),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(lambda words: f"{' '.join(words)}?"),
    created_at=st.sampled_from([DAY, DAY + timedelta(days=1), DAY + timedelta(days=2)]),
    kind=st.sampled_from(["memory", "message"]),
    title=st.none() | st.just("A title"),
    speaker=st.none() | st.sampled_from(["Bo", "Zoë"]),
    session_id=st.none() | st.sampled_from(["s", "t"]),
    document_id=st.none() | st.just("d"),
    expires_at=st.none() | st.sampled_from([DAY + timedelta(days=1), LATER]),
    tags=st.lists(st.sampled_from(["red", "big", "ü"]), unique=True, max_size=2),
    entities=st.lists(st.sampled_from([EntityInput(name="Ida"), EntityInput(name="Porto", aliases=["Oporto"])])),
    relations=st.lists(
        st.builds(RelationInput, source=st.sampled_from(["Ida", "Bo"]), type=st.just("in"),
                  target=st.sampled_from(["Porto", "Ida"])),
        max_size=2,
    ),
    supersedes=st.none() | st.sampled_from(IDS),
).map(lambda made: made if made.supersedes != made.id else memory(made.id or "a"))  # fmt: skip
BATCHES = st.lists(INPUTS, min_size=1, max_size=4, unique_by=lambda made: made.id)
ACTIONS = st.one_of(
    st.tuples(st.just("add"), BATCHES),
    st.tuples(st.just("add"), BATCHES),
    st.tuples(st.just("delete"), st.sampled_from(IDS)),
    st.tuples(st.just("patch"), st.sampled_from(IDS)),
    st.tuples(st.just("delete matching"), st.sampled_from(["s", "t"])),
    st.tuples(st.just("compact"), st.none()),
    st.tuples(st.just("ask"), st.lists(st.sampled_from(TERMS), unique=True)),
)


async def act(process: Process, name: str, action: str, what: Any) -> None:
    """One thing that a process does."""
    try:
        match action:
            case "add":
                await process.ingest.add(name, what)
            case "delete":
                await process.ingest.delete(name, what)
            case "patch":
                await process.ingest.patch(name, what, MemoryPatch(tags=["ü"], expires_at=None))
            case "delete matching":
                await process.ingest.delete_matching(name, Filters(session_id=[what]))
            case "compact":
                await process.compact(name)
            case "ask":
                await process.vectors(await process.standing(name, what))
    except NotFound:
        assert action in ("delete", "patch")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.lists(st.tuples(st.integers(0, 1), ACTIONS), min_size=1, max_size=3), max_size=10))
async def test_after_any_history_it_is_as_if_read_anew(
    two: tuple[Process, Process], steps: list[list[tuple[int, tuple[str, Any]]]]
) -> None:
    """By two processes, several things of a step at once; each knows what both have done."""
    name = next(NAMES)
    await two[0].ingest.add(name, [memory("a"), memory("b", "Bo?", session_id="s")])
    for process in two:
        await process.standing(name)
    for step in steps:
        async with asyncio.TaskGroup() as group:
            for who, (action, what) in step:
                group.create_task(act(two[who], name, action, what))
    for process in two:
        await assert_right(process, name)
        await assert_masks(process, name)


async def test_it_has_followed_and_was_not_made_anew(process: Process) -> None:
    """Or the comparison above would compare a thing with itself."""
    await process.ingest.add("n", [memory("a")])
    before = (await process.standing()).mirror
    await process.ingest.add("n", [memory("b"), memory("a", "Porto.")])
    after = (await process.standing()).mirror
    assert after is before
    assert after.memories.count == 2


async def test_what_another_process_writes_is_seen_by_the_next_query(two: tuple[Process, Process]) -> None:
    one, other = two
    await one.ingest.add("n", [memory("a", "harbour")])
    assert await one.ids("harbour") == await other.ids("harbour") == {"a"}
    for writer, reader in ((one, other), (other, one)):
        await writer.ingest.add("n", [memory("b", "harbour boats")])
        assert await reader.ids("harbour") == {"a", "b"}
        assert await reader.ids("boats") == {"b"}
        await writer.ingest.delete("n", "b")
        assert await reader.ids("harbour") == {"a"}
        assert await reader.ids("boats") == set()


async def test_a_vector_follows_what_was_said_before(two: tuple[Process, Process]) -> None:
    """Also where neither the turn nor one beside it came or went."""
    process, other = two
    await process.ingest.add("n", [memory(id_, f"{id_}?", session_id="s") for id_ in IDS[:5]])
    await process.vectors(await process.standing())
    await other.ingest.delete("n", "b")
    await assert_right(process)
    await other.ingest.add("n", [memory("x", session_id="s", position=1)])
    await assert_right(process)


async def test_a_commit_out_of_order_is_not_missed(two: tuple[Process, Process]) -> None:
    """A transaction that began before others and ends after them, of whatever the mirror has seen meanwhile."""
    process, other = two
    await process.ingest.add("n", [memory(id_, session_id="s") for id_ in IDS[:4]])
    await process.standing()
    async with other.pool.connection() as conn, conn.transaction():
        await writes.delete(conn, "n", "b")
        for id_ in ("x", "y"):
            await process.ingest.add("n", [memory(id_)])
            assert id_ in await process.ids("boats")
        assert "b" in await process.ids("boats")
        await assert_right(process)
    assert await process.ids("boats") == {"a", "c", "d", "x", "y"}
    await assert_right(process)


async def test_what_is_rolled_back_is_never_seen(two: tuple[Process, Process]) -> None:
    process, other = two
    await process.ingest.add("n", [memory("a"), memory("b")])
    await process.standing()
    async with other.pool.connection() as conn, conn.transaction(force_rollback=True):
        await writes.delete(conn, "n", "b")
    assert await process.ids("boats") == {"a", "b"}
    await assert_right(process)


async def test_a_namespace_of_the_same_name_is_another_one(two: tuple[Process, Process]) -> None:
    """For the process that deleted it as for one that did not hear of it; between the two there is none."""
    await two[0].ingest.add("n", [memory("a", "harbour"), memory("b", "boats")])
    for process in two:
        assert await process.ids("harbour") == {"a"}
    async with two[0].pool.connection() as conn:
        await namespaces.delete(conn, "n")
    for process in two:
        with pytest.raises(NotFound):
            await process.standing()
    await two[0].ingest.add("n", [memory("c", "harbour")])
    for process in two:
        assert await process.ids("harbour") == {"c"}
        await assert_right(process)
    async with two[0].pool.connection() as conn:
        await namespaces.delete(conn, "n")
    await two[1].ingest.add("n", [memory("d", "harbour")])
    for process in two:
        assert await process.ids("harbour") == {"d"}


async def forgotten(conn: AsyncConnection[Any]) -> None:
    """Forget the changes as if they had been kept long enough."""
    await conn.execute("update memory_change set at = at - make_interval(secs => %s)", (2 * changes.KEPT_S,))
    await changes.trim(conn)
    assert await (await conn.execute("select from memory_change")).fetchall() == []


async def test_not_asked_for_longer_than_changes_are_kept_it_is_read_anew(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not if it was asked for meanwhile."""

    def later(seconds: float) -> None:
        clock = SimpleNamespace(monotonic=lambda: time.monotonic() + seconds)
        monkeypatch.setattr("retrieval.mirror.registry.time", clock)

    process, other = two
    await process.ingest.add("n", [memory("a")])
    before = (await process.standing()).mirror
    later(changes.KEPT_S / 3)
    assert (await process.standing()).mirror is before
    later(2 * changes.KEPT_S / 3)
    assert (await process.standing()).mirror is before
    await other.ingest.add("n", [memory("b")])
    await other.ingest.delete("n", "a")
    async with other.pool.connection() as conn:
        await forgotten(conn)
    later(2 * changes.KEPT_S)
    assert await process.ids("boats") == {"b"}
    assert (await process.standing()).mirror is not before
    await assert_right(process)


async def test_a_worn_mirror_is_made_anew_beside_the_queries(process: Process) -> None:
    """Which are answered by the old one meanwhile, and rightly."""
    await process.ingest.add("n", [memory("a", "harbour")])
    worn = (await process.standing()).mirror
    worn.changed = 10**6
    assert await process.ids("harbour") == {"a"}
    await process.ingest.add("n", [memory("b", "harbour")])
    assert await process.ids("harbour") == {"a", "b"}
    for _ in range(500):
        if (fresh := (await process.standing()).mirror) is not worn:
            break
        await asyncio.sleep(0.01)
    assert fresh is not worn
    assert fresh.changed < 10
    await assert_right(process)


# --- at the same time


async def test_everybody_reads_what_he_wrote(two: tuple[Process, Process]) -> None:
    """However many write and ask at once, terms that were known and others, while postings are packed."""
    await two[0].ingest.add("n", [memory("a")])
    stop = asyncio.Event()

    async def write_and_ask(who: int) -> None:
        writer, reader = two[who % 2], two[who // 2 % 2]
        for number in range(8):
            id_, own = f"w{who}-{number}", f"own{'qxzwvk'[who]}{'abdefghi'[number]}w"
            await writer.ingest.add("n", [memory(id_, f"harbour {own}", session_id=f"s{who % 3}")])
            assert await reader.ids(own) == {id_}
            assert id_ in await reader.ids("harbour")
            if number % 3 == 2:
                await writer.ingest.delete("n", id_)
                assert await reader.ids(own) == set()
                assert id_ not in await reader.ids("harbour")

    async def pack() -> None:
        while not stop.is_set():
            await two[1].compact()
            await asyncio.sleep(0.02)

    packing = asyncio.create_task(pack())
    async with asyncio.TaskGroup() as group:
        for who in range(6):
            group.create_task(write_and_ask(who))
    stop.set()
    await packing
    for process in two:
        await assert_right(process)


class Statements:
    """How many statements were sent in which a text stands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        self._news = asyncio.Event()
        real = AsyncConnection.execute

        async def execute(conn: AsyncConnection[Any], query: Any, *args: Any, **options: Any) -> Any:
            self.sent.append(str(query))
            self._news.set()
            return await real(conn, query, *args, **options)

        values = Prepared.values

        def send(statement: Prepared, parameters: Parameters) -> list[bytes | None]:
            self.sent.append(statement.text)
            self._news.set()
            return values(statement, parameters)

        monkeypatch.setattr(AsyncConnection, "execute", execute)
        monkeypatch.setattr(Prepared, "values", send)

    async def until(self, text: str) -> None:
        """Wait for one to be sent."""
        while not any(text in statement for statement in self.sent):
            self._news.clear()
            await self._news.wait()

    def count(self, text: str) -> int:
        """Of those sent since the last time."""
        found = sum(text in statement for statement in self.sent)
        self.sent.clear()
        return found


async def test_queries_that_come_together_share_one_check(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one fetch of all their terms; those that come while it is on its way share the next."""
    await process.ingest.add("n", [memory("a", " ".join(WORDS))])
    statements = Statements(monkeypatch)
    await asyncio.gather(*(process.standing(terms=[]) for _ in range(30)))
    assert statements.count("pg_current_snapshot()") == 2, "one reads the mirror, one checks it"
    await asyncio.gather(*(process.standing(terms=[]) for _ in range(30)))
    assert statements.count("memory_change") == 1
    answers = await asyncio.gather(*(process.standing(terms=[TERMS[at % len(TERMS)]]) for at in range(30)))
    assert [sum("bm25_segment" in each for each in statements.sent), statements.count("memory_change")] == [1, 1]
    assert {term for each in answers for term in each.postings.terms} <= set(TERMS)
    early = asyncio.create_task(process.standing(terms=[]))
    await statements.until("memory_change")
    await asyncio.gather(early, *(process.standing(terms=[]) for _ in range(30)))
    assert statements.count("memory_change") == 2


async def test_terms_asked_for_during_a_fetch_come_with_the_next_check(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not with one more after it."""
    await process.ingest.add("n", [memory("a", " ".join(WORDS))])
    await process.standing(terms=[])
    statements = Statements(monkeypatch)
    early = asyncio.create_task(process.standing(terms=TERMS[:1]))
    await statements.until("bm25_segment")
    await asyncio.gather(early, process.standing(terms=TERMS[1:]))
    assert statements.count("memory_change") == 2


async def test_mirrors_leave_by_their_bytes(process: Process) -> None:
    """The one asked for longest ago first; answers stay right, also of one that alone is too large."""
    for name in ("one", "two", "three"):
        await process.ingest.add(name, [memory(f"{name}{at}", f"harbour of {name}") for at in range(20)])
    await process.standing("one")
    size = process.mirrors.nbytes
    process.mirrors = Mirrors(process.pool, most_bytes=5 * size // 2)
    kept = {name: (await process.standing(name)).mirror for name in ("one", "two", "one", "three")}
    assert 0 < process.mirrors.nbytes <= 5 * size // 2
    assert (await process.standing("one")).mirror is kept["one"]
    assert (await process.standing("two")).mirror is not kept["two"]
    process.mirrors = Mirrors(process.pool, most_bytes=1)
    for name in ("one", "two", "one"):
        assert await process.ids("harbour", name) == {f"{name}{at}" for at in range(20)}
        assert process.mirrors.nbytes > 1
    answers = await asyncio.gather(*(process.ids("harbour", name) for name in ("one", "two", "three") * 5))
    assert [len(each) for each in answers] == [20] * 15


async def test_the_largest_are_read_before_anybody_asks(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queries after that only check."""
    for name, count in (("small", 1), ("large", 4), ("middle", 3)):
        await process.ingest.add(name, [memory(f"{name}{number}") for number in range(count)])
    await process.mirrors.warm(least=3)
    statements = Statements(monkeypatch)
    assert await process.ids("boats", "large") == {"large0", "large1", "large2", "large3"}
    assert await process.ids("boats", "middle") == {"middle0", "middle1", "middle2"}
    assert statements.count("float4send(weight)") == 0
    assert await process.ids("boats", "small") == {"small0"}
    assert statements.count("float4send(weight)") == 1


async def test_what_has_some_metadata_is_remembered_until_something_changes(process: Process) -> None:
    """However the keys are ordered; what was asked before a change and answered after it is not kept."""
    await process.ingest.add("n", [memory("a", metadata={"x": 1, "y": 2})])
    mirror = (await process.standing()).mirror
    docs, before = np.array([0], np.int64), mirror.changed
    mirror.keep_metadata({"x": 1, "y": 2}, docs, changed=before)
    assert mirror.with_metadata({"y": 2, "x": 1}) is docs
    assert mirror.with_metadata({"x": 1}) is None
    await process.ingest.add("n", [memory("b", metadata={"x": 1, "y": 2})])
    mirror = (await process.standing()).mirror
    assert mirror.with_metadata({"x": 1, "y": 2}) is None
    mirror.keep_metadata({"x": 1, "y": 2}, docs, changed=before)
    assert mirror.with_metadata({"x": 1, "y": 2}) is None


async def test_postings_of_one_query_may_be_more_than_are_kept(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is answered, and so are those that come with it."""
    await process.ingest.add("n", [memory(f"m{at}", " ".join(WORDS)) for at in range(20)])
    standing = await process.standing(terms=[])
    monkeypatch.setattr(standing.mirror.terms, "_most_bytes", 600)
    async with asyncio.timeout(10):
        whole = await process.standing()
        some = await asyncio.gather(*(process.standing(terms=[term]) for term in TERMS))
    expected = postings_of((await Process(process.pool).standing()).postings)
    assert postings_of(whole.postings) == expected
    for term, each in zip(TERMS, some, strict=True):
        assert postings_of(each.postings).get(term) == expected.get(term)


@pytest.mark.parametrize(("holder", "name"), [(mirrors, "read_edges"), (columns, "read_some")])
async def test_a_check_that_fails_leaves_nothing_half_done(
    process: Process, monkeypatch: pytest.MonkeyPatch, holder: ModuleType, name: str
) -> None:
    """The next query is answered rightly, also by those who were waiting."""
    await process.ingest.add("n", [memory("a")])
    await process.standing()
    await process.ingest.add("n", [memory("b", entities=[EntityInput(name="Porto")]), memory("a", "Porto.")])
    real = getattr(holder, name)

    async def lost(*args: Any) -> None:
        monkeypatch.undo()
        if name == "read_some":  # the first of its statements has been taken in
            await real(*args)
        raise OperationalError("the connection was lost")

    monkeypatch.setattr(holder, name, lost)
    early = asyncio.create_task(process.standing())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    late = asyncio.create_task(process.standing())
    outcomes = await asyncio.gather(early, late, return_exceptions=True)
    assert sum(isinstance(outcome, BaseException) for outcome in outcomes) >= 1
    assert all(isinstance(outcome, BaseException | Standing) for outcome in outcomes)
    await assert_right(process)


async def test_a_namespace_without_memories_has_a_mirror(process: Process) -> None:
    await process.ingest.add("n", [memory("a")])
    await process.ingest.delete("n", "a")
    standing = await process.standing()
    assert isinstance(standing.mirror, Mirror)
    assert (standing.mirror.memories.count, standing.postings.terms) == (0, {})
    await process.ingest.add("n", [memory("b", "harbour")])
    assert await process.ids("harbour") == {"b"}
    await assert_right(process)


async def test_vectors_of_many_memories_that_came_at_once_are_read_beside_the_queries(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mirror was made before they came; no query asks for them."""
    monkeypatch.setattr(registry, "FILLED_AT_ONCE", 20)
    await process.ingest.add("n", [memory("first")])
    await process.standing()
    await process.ingest.add("n", [memory(f"m{number}", f"Boats {number}.") for number in range(70)])
    vectors = (await process.standing()).mirror.vectors
    for _ in range(200):
        if vectors.count >= 70:
            break
        await asyncio.sleep(0.02)
    assert vectors.count >= 70
    await process.ingest.add("n", [memory("m3", "Another text.")])
    assert (await process.standing()).mirror.vectors.count >= 69
