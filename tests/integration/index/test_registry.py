"""An index that followed a namespace equals a newly loaded one, whatever was written and by whom."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from psycopg import AsyncConnection
from psycopg.errors import OperationalError

from graph.adjacency import Adjacency
from postgres.prepared import Parameters, PreparedStatement
from retrieval.errors import NotFound
from retrieval.index import freshness, registry, rows, small_namespaces
from retrieval.index.columns import Columns
from retrieval.index.entity_names import EntityNames
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.index.quantized_vectors import QuantizedVectors
from retrieval.index.query_vectors import QueryVectors
from retrieval.index.registry import IndexRegistry
from retrieval.index.rows import MemoryRows
from retrieval.index.slots import Slots
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.index.strings import NONE
from retrieval.index.terms import Postings
from retrieval.ingest import transaction
from retrieval.ingest.service import Ingest
from retrieval.store import changes, namespaces
from retrieval.store.bm25 import compaction
from retrieval.store.pool import Pool, open_pool
from retrieval.store.visibility import by_id, seen_by
from retrieval.text.analysis import analyze, term_id
from retrieval.types.memory import EntityInput, MemoryInput, MemoryPatch, RelationInput
from retrieval.types.search import Exclude, Filters, SearchRequest
from tests.examples import share_of_examples
from tests.graph_edges import latest_edges, weightiest_edges
from tests.processes import PATIENCE_S
from tests.turns import hashed

NAMES = (f"n{number}" for number in itertools.count())
WORDS = ("harbour", "boats", "Ida", "paints", "Größe", "北京", "Porto", "rarely")
IDS = tuple("abcdefgh")
DAY = datetime(2024, 5, 1, tzinfo=UTC)
LATER = datetime.now(UTC) + timedelta(hours=1)
QUANTISED = 1e-4
"""Maximum error of a vector's component in 12 bits."""
TERMS = sorted({term_id(term) for word in (*WORDS, "Bo", "Zoë", "title") for term in analyze(word, "english")})


class Process:
    """A server process: a writer and indexes, on its own connections."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.ingest = Ingest(pool, hashed())
        self.indexes = IndexRegistry(pool, most_bytes=2**30)

    async def snapshot(self, name: str = "n", terms: Sequence[int] = TERMS) -> NamespaceSnapshot:
        """A namespace as a query finds it."""
        return await self.indexes.current(name, lambda _: terms)

    async def until(self, holds: Callable[[NamespaceIndex], bool]) -> NamespaceIndex:
        """The index that queries find, once it meets a condition that work beside them brings about."""
        async with asyncio.timeout(60):
            while not holds(index := (await self.snapshot()).index):  # noqa: ASYNC110 - nothing signals it
                await asyncio.sleep(0.01)
        return index

    async def ids(self, word: str, name: str = "n") -> set[str]:
        """The memories that have a word, by its postings."""
        terms = [term_id(term) for term in analyze(word, "english")]
        snapshot = await self.snapshot(name, terms)
        docs = [found.docs for found in snapshot.postings.terms.values()]
        return set(snapshot.index.memories.ids.get(np.concatenate(docs).astype(np.int64))) if docs else set()

    async def vectors(self, snapshot: NamespaceSnapshot) -> tuple[list[int], NDArray[np.float32], NDArray[np.float32]]:
        """Every memory's vectors, as legs get them: ordinals, vectors in context, and own vectors."""
        docs = np.flatnonzero(snapshot.index.memories.alive.values).tolist()
        known = QueryVectors(self.pool, snapshot.index)
        await known.read(docs)
        there = [doc for doc, place in zip(docs, known.rows_of(docs).tolist(), strict=True) if place >= 0]
        ordinals = list(snapshot.index.memories.slots.to_ordinal_list(there))
        return ordinals, known.context_vectors[known.rows_of(there)], known.text_vectors[known.rows_of(there)]

    async def skip(self, ordinals: int, name: str = "n") -> None:
        """Skip this many ordinals, as if as many memories had been added and deleted."""
        async with self.pool.connection() as conn:
            await conn.execute("update namespace set next_doc = next_doc + %s where name = %s", (ordinals, name))

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
            await process.indexes.aclose()


@pytest.fixture
def process(two: tuple[Process, Process]) -> Process:
    return two[0]


def memory(id_: str, text: str = "Ida paints boats.", **fields: Any) -> MemoryInput:
    return MemoryInput(id=id_, text=text, **{"created_at": DAY, **fields})


# --- what is compared


def columns_of(memories: Columns) -> dict[str, object]:
    """All data of each existing memory, by id, and of all together; other memories by their ordinals."""
    docs = np.flatnonzero(memories.alive.values).astype(np.int64)
    known: dict[str, object] = {"count": memories.count, "length": memories.total_length}
    for doc, id_ in zip(docs.tolist(), memories.ids.get(docs), strict=True):
        numbers = (memories.length, memories.created, memories.expires, memories.superseded, memories.traits,
                   memories.asks)  # fmt: skip
        links = (memories.previous, memories.next)
        strings = (memories.kinds, memories.speakers, memories.sessions, memories.documents, memories.titles)
        [tags] = memories.tags.get(np.array([doc]))
        known[id_] = (
            *memories.slots.to_ordinal_list([doc]),
            *(column[doc].item() for column in numbers),
            *(memories.slots.to_ordinal_list([link[doc].item()])[0] if link[doc] != NONE else None for link in links),
            *(text for column in strings for text in column.get(np.array([doc]))),
            tags and json.loads(tags),
        )
    return known


def graph_of(graph: Adjacency, memories: Columns, entities: Sequence[int]) -> dict[str, object]:
    """All edges and relations, as a walk reads them."""
    numbers = np.array(entities, np.int64)
    eligible = memories.alive.values
    docs = np.flatnonzero(eligible)
    every = 10_000

    def rows_of(edges: Sequence[Any]) -> list[tuple[Any, ...]]:
        of, slots, weights = edges
        return list(zip(of.tolist(), memories.slots.to_ordinals(slots).tolist(), weights.tolist(), strict=True))

    return {
        "mentions": graph.mentions(numbers, cap=every).tolist(),
        "latest": rows_of(latest_edges(graph, numbers, eligible, scanned=every, most=every)),
        "weightiest": sorted(rows_of(weightiest_edges(graph, docs, most=every))),
        "relations": [
            [
                (each[:3], *memories.slots.to_ordinal_list([each.doc]))
                for way in graph.relations.of_entity(entity)
                for each in way
            ]
            for entity in entities
        ],
    }


def postings_of(found: Postings, slots: Slots) -> dict[object, object]:
    return {
        "memories": (found.memories, found.length),
        **{
            term: (slots.to_ordinals(each.docs).tolist(), each.tfs.tolist(), each.lengths.tolist())
            for term, each in found.terms.items()
        },
    }


def names_of(index: NamespaceIndex, entities: Sequence[int]) -> dict[str, object]:
    """The indexed names of entities, except common phrases, and the aliases given by memories."""
    slots, rows = index.memories.slots, index.names.rows_of(entities)
    aliases = index.names.aliases_of(np.flatnonzero(index.memories.alive.values).tolist())
    return {
        "shown otherwise": {entity: row for entity, row in rows.items() if row.is_name or row.name},
        "aliases": {(alias, entity, *slots.to_ordinal_list([doc])) for alias, entity, doc in aliases},
        "consistent": index.names.is_consistent,
    }


def state(snapshot: NamespaceSnapshot, entities: Sequence[int]) -> dict[str, object]:
    index = snapshot.index
    return {
        "next": snapshot.namespace.next_doc,
        "memories": columns_of(index.memories),
        "graph": graph_of(index.graph, index.memories, entities),
        "names": names_of(index, entities),
        "postings": postings_of(snapshot.postings, index.memories.slots),
    }


async def assert_right(process: Process, name: str = "n") -> None:
    """A process's index equals that of a process that starts now."""
    followed = await process.snapshot(name)
    anew = await Process(process.pool).snapshot(name)
    assert anew.index is not followed.index
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
    (Filters(), Exclude()),
    (Filters(tags_any=["red", "big"]), Exclude(session_id=["s"])),
    (Filters(tags_all=["red", "big"], kind=["memory"]), Exclude()),
    (Filters(speaker=["Zoë"], created_before=DAY + timedelta(days=2)), Exclude()),
    (Filters(session_id=["s", "t"], created_after=DAY), Exclude(session_id=["t"])),
    (Filters(document_id=["d"], tags_any=["none"]), Exclude()),
    (Filters(), Exclude(session_id=["s", "none"], created_after=DAY + timedelta(days=1))),
)
MOMENTS = (None, DAY, DAY + timedelta(days=1, microseconds=1), LATER + timedelta(days=1))


async def assert_masks(process: Process, name: str) -> None:
    """The masks agree with the SQL predicate."""
    snapshot = await process.snapshot(name)
    async with process.pool.connection() as conn:
        for (filters, exclude), as_of, superseded in itertools.product(FILTERS, MOMENTS, (False, True)):
            request = SearchRequest(
                query="q", filters=filters, exclude=exclude, as_of=as_of, include_superseded=superseded
            )
            condition = seen_by(request)
            rows = await conn.execute(
                "select m.doc from memory m where m.ns = %(ns)s and " + condition.sql + " order by m.doc",
                {"ns": snapshot.namespace.ns, **condition.parameters},
            )
            _, eligible = snapshot.index.memories.masks(request, now=snapshot.now)
            expected = [doc for (doc,) in await rows.fetchall()]
            found = snapshot.index.memories.slots.to_ordinals(np.flatnonzero(eligible)).tolist()
            assert found == expected, request


# --- any history

GIVEN = (
    EntityInput(name="Ida"),
    EntityInput(name="Porto", aliases=["Oporto"]),
    EntityInput(name="harbour boats", type="place"),
    EntityInput(name="harbour boats", type="phrase"),
    EntityInput(name="ida", type="term"),
)
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
    entities=st.lists(st.sampled_from(GIVEN)),
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
SKIPS = st.tuples(st.just("skip"), st.sampled_from([900, 1_500, 5_000]))


async def act(process: Process, name: str, action: str, what: Any) -> None:
    """One operation of a process."""
    try:
        match action:
            case "add":
                await process.ingest.add(name, what)
            case "delete":
                await process.ingest.delete(name, what)
            case "patch":
                await process.ingest.patch(name, what, MemoryPatch(tags=["ü"], expires_at=None))
            case "delete matching":
                await process.ingest.delete_many(name, filters=Filters(session_id=[what]))
            case "compact":
                await process.compact(name)
            case "skip":
                await process.skip(what, name)
            case "ask":
                await process.vectors(await process.snapshot(name, what))
    except NotFound:
        assert action in ("delete", "patch")


@settings(max_examples=share_of_examples(0.4), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.lists(st.tuples(st.integers(0, 1), ACTIONS | SKIPS), min_size=1, max_size=3), max_size=10))
async def test_after_any_history_it_is_as_if_read_anew(
    two: tuple[Process, Process], steps: list[list[tuple[int, tuple[str, Any]]]]
) -> None:
    """By two processes, several operations of a step at once; each index has both processes' changes."""
    name = next(NAMES)
    await two[0].ingest.add(name, [memory("a"), memory("b", "Bo?", session_id="s")])
    for process in two:
        await process.snapshot(name)
    for step in steps:
        async with asyncio.TaskGroup() as group:
            for who, (action, what) in step:
                group.create_task(act(two[who], name, action, what))
    for process in two:
        await assert_right(process, name)
        await assert_masks(process, name)


async def test_it_has_followed_and_was_not_made_anew(process: Process) -> None:
    """Or the comparison above would compare an index with itself."""
    await process.ingest.add("n", [memory("a")])
    before = (await process.snapshot()).index
    await process.ingest.add("n", [memory("b"), memory("a", "Porto.")])
    after = (await process.snapshot()).index
    assert after is before
    assert after.memories.count == 2


@pytest.mark.parametrize("entered", ["put", "put_aliases"])
async def test_others_go_on_while_names_are_entered(
    process: Process, monkeypatch: pytest.MonkeyPatch, entered: str
) -> None:
    """For a namespace that is being loaded, which may have a hundred thousand."""
    await process.ingest.add("n", [memory("a", entities=[EntityInput(name="Ida Holm", aliases=["the painter"])])])
    monkeypatch.setattr(small_namespaces, "MOST_ORDINALS", -1)
    enter, loop = getattr(EntityNames, entered), asyncio.get_running_loop()

    def meanwhile(names: EntityNames, *args: Any) -> None:
        went_on = threading.Event()
        loop.call_soon_threadsafe(went_on.set)
        assert went_on.wait(PATIENCE_S)
        enter(names, *args)

    monkeypatch.setattr(EntityNames, entered, meanwhile)
    assert (await process.snapshot()).index.names.shown_otherwise()


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
    """Also if neither the turn nor a neighbour was added or removed."""
    process, other = two
    await process.ingest.add("n", [memory(id_, f"{id_}?", session_id="s") for id_ in IDS[:5]])
    await process.vectors(await process.snapshot())
    await other.ingest.delete("n", "b")
    await assert_right(process)
    await other.ingest.add("n", [memory("x", session_id="s", position=1)])
    await assert_right(process)


async def test_a_commit_out_of_order_is_not_missed(two: tuple[Process, Process]) -> None:
    """A transaction that began before others and ends after them, whatever the index has seen meanwhile."""
    process, other = two
    await process.ingest.add("n", [memory(id_, session_id="s") for id_ in IDS[:4]])
    await process.snapshot()
    async with other.pool.connection() as conn, conn.transaction():
        await transaction.delete(conn, "n", by_id(["b"]))
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
    await process.snapshot()
    async with other.pool.connection() as conn, conn.transaction(force_rollback=True):
        await transaction.delete(conn, "n", by_id(["b"]))
    assert await process.ids("boats") == {"a", "b"}
    await assert_right(process)


async def test_a_namespace_of_the_same_name_is_another_one(two: tuple[Process, Process]) -> None:
    """For the process that deleted it as for one that missed it; in between there is no namespace."""
    await two[0].ingest.add("n", [memory("a", "harbour"), memory("b", "boats")])
    for process in two:
        assert await process.ids("harbour") == {"a"}
    async with two[0].pool.connection() as conn:
        await namespaces.delete(conn, "n")
    for process in two:
        with pytest.raises(NotFound):
            await process.snapshot()
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
    """Delete the changes as if they had expired."""
    await changes.trim(conn, kept_s=0)
    assert await (await conn.execute("select from memory_change")).fetchall() == []


async def test_where_changes_were_forgotten_that_it_has_not_read_it_is_read_anew(two: tuple[Process, Process]) -> None:
    """However little time has passed; but not if it had read them."""
    process, other = two
    await process.ingest.add("n", [memory("a")])
    before = (await process.snapshot()).index
    async with other.pool.connection() as conn:
        await forgotten(conn)
        assert (await process.snapshot()).index is before
        await other.ingest.add("n", [memory("b")])
        await other.ingest.delete("n", "a")
        await forgotten(conn)
    assert await process.ids("boats") == {"b"}
    assert (await process.snapshot()).index is not before
    await assert_right(process)


async def test_changes_are_forgotten_and_namespaces_deleted_where_all_tables_are_published(process: Process) -> None:
    """As for logical replication: PostgreSQL refuses deletes of rows that nothing identifies."""
    await process.ingest.add("n", [memory("a")])
    async with process.pool.connection() as conn:
        await conn.execute("create publication everything for all tables")
        await forgotten(conn)
        await process.ingest.add("n", [memory("b")])
        await namespaces.delete(conn, "n")


async def test_changes_are_not_forgotten_while_an_older_transaction_is_open(two: tuple[Process, Process]) -> None:
    """Or reads meanwhile would miss them as long as that is open."""
    process, other = two
    await process.ingest.add("n", [memory("a"), memory("b")])
    async with other.pool.connection() as third, other.pool.connection() as conn:
        async with conn.transaction():
            await transaction.delete(conn, "n", by_id(["b"]))
            await process.ingest.add("n", [memory("c")])
            await changes.trim(third, kept_s=0)
            before = (await process.snapshot()).index
            assert (await process.snapshot()).index is before
        await forgotten(third)
    assert await process.ids("boats") == {"a", "c"}
    assert (await process.snapshot()).index is not before
    await assert_right(process)


async def test_numbers_of_transactions_of_another_cluster_mean_nothing(two: tuple[Process, Process]) -> None:
    """They come with a restored dump; later writes are followed and expire as usual."""
    process, other = two
    await process.ingest.add("n", [memory("a")])
    async with other.pool.connection() as conn:
        await conn.execute("update memory_change set xid = '999999999999'")
        await conn.execute("update memory_change_trimmed set xid = '999999999999'")
        before = (await process.snapshot()).index
        changed = before.changed
        assert (await process.snapshot()).index is before
        assert before.changed == changed
        await other.ingest.add("n", [memory("b")])
        assert await process.ids("boats") == {"a", "b"}
        await other.ingest.add("n", [memory("c")])
        await forgotten(conn)
    assert await process.ids("boats") == {"a", "b", "c"}
    assert (await process.snapshot()).index is not before
    await assert_right(process)


def removed_by_filters(plan: dict[str, Any]) -> int:
    """Rows that a statement read needlessly."""
    removed = sum(value for key, value in plan.items() if key.startswith("Rows Removed by"))
    return int(removed) + sum(map(removed_by_filters, plan.get("Plans", [])))


_LATER_CHANGES = b"""
do 'begin for i in 1..300 loop insert into memory_change (ns, docs) values (1, ''{0}''); commit; end loop; end'
"""


async def test_an_open_transaction_does_not_make_checks_read_all_that_came_after_it(pool: Pool) -> None:
    """A check asks for what the index has not seen, and the index finds that."""
    process = Process(pool)
    await process.ingest.add("n", [memory("a")])
    async with pool.connection() as third, pool.connection() as conn, conn.transaction():
        await conn.execute("select pg_current_xact_id()")
        await third.execute(_LATER_CHANGES)
        snapshot = (await process.snapshot()).index.snapshot
        values = freshness._CHECK.values({"name": "n", **snapshot.parameters})
        await third.execute(f"prepare checking as {freshness._CHECK.text}".encode())
        literals = ", ".join(f"'{value.decode()}'" for value in values if value is not None)
        rows = await third.execute(f"explain (analyze, format json) execute checking ({literals})".encode())
        [[[explained]]] = await rows.fetchall()
    assert removed_by_filters(explained["Plan"]) < 10


async def test_a_worn_mirror_is_made_anew_beside_the_queries(process: Process) -> None:
    """Which the old one answers meanwhile, correctly."""
    await process.ingest.add("n", [memory("a", "harbour")])
    worn = (await process.snapshot()).index
    worn.removed = 10**6
    assert await process.ids("harbour") == {"a"}
    await process.ingest.add("n", [memory("b", "harbour")])
    assert await process.ids("harbour") == {"a", "b"}
    assert (await process.until(lambda index: index is not worn)).changed < 10
    await assert_right(process)


async def test_a_fresh_mirror_that_could_not_be_made_is_tried_again(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a pause: it costs as much as a first query."""
    await process.ingest.add("n", [memory("a")])
    worn = (await process.snapshot()).index
    worn.removed = 10**6
    tries = 0
    read = small_namespaces.read

    async def failing(*args: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OperationalError("the connection was lost")
        return await read(*args)

    async def settled() -> NamespaceIndex:
        index = (await process.snapshot()).index
        if (reload := process.indexes._reloads.get("n")) is not None:
            await asyncio.wait([reload])
        return index

    monkeypatch.setattr(small_namespaces, "read", failing)
    for _ in range(3):
        assert await settled() is worn
    assert tries == 1
    monkeypatch.setattr(registry, "RELOAD_PAUSE_S", 0.0)
    assert await settled() is worn
    assert (await process.snapshot()).index is not worn
    assert tries == 2
    await assert_right(process)


# --- at the same time


async def test_everybody_reads_what_he_wrote(two: tuple[Process, Process]) -> None:
    """With any number of concurrent writes and queries, for cached and new terms, while postings are packed."""
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
    """The number of statements sent that contain a text."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        self._news = asyncio.Event()
        real = AsyncConnection.execute

        async def execute(conn: AsyncConnection[Any], query: Any, *args: Any, **options: Any) -> Any:
            self.sent.append(str(query))
            self._news.set()
            return await real(conn, query, *args, **options)

        values = PreparedStatement.values

        def send(statement: PreparedStatement, parameters: Parameters) -> list[bytes | None]:
            self.sent.append(statement.text)
            self._news.set()
            return values(statement, parameters)

        monkeypatch.setattr(AsyncConnection, "execute", execute)
        monkeypatch.setattr(PreparedStatement, "values", send)

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
    """And one fetch of all their terms; later queries share the next one."""
    await process.ingest.add("n", [memory("a", " ".join(WORDS))])
    statements = Statements(monkeypatch)
    await asyncio.gather(*(process.snapshot(terms=[]) for _ in range(30)))
    assert statements.count("pg_current_snapshot()") == 2, "one reads the index, one checks it"
    await asyncio.gather(*(process.snapshot(terms=[]) for _ in range(30)))
    assert statements.count("memory_change") == 1
    answers = await asyncio.gather(*(process.snapshot(terms=[TERMS[at % len(TERMS)]]) for at in range(30)))
    assert [sum("bm25_segment" in each for each in statements.sent), statements.count("memory_change")] == [1, 1]
    assert {term for each in answers for term in each.postings.terms} <= set(TERMS)
    early = asyncio.create_task(process.snapshot(terms=[]))
    await statements.until("memory_change")
    await asyncio.gather(early, *(process.snapshot(terms=[]) for _ in range(30)))
    assert statements.count("memory_change") == 2


async def test_vectors_of_a_few_changed_memories_come_with_the_check(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there are few; if there are many, queries read what they need."""
    await process.ingest.add("n", [memory("a"), memory("b")])
    await process.snapshot()
    await process.ingest.add("n", [memory("a", "another text"), memory("c")])
    await process.ingest.add("n", [memory("d")])
    await process.ingest.delete("n", "d")
    index = (await process.snapshot()).index
    alive = np.flatnonzero(index.memories.alive.values)
    assert alive.size == np.count_nonzero(index.vectors.knows(alive)) == 3
    monkeypatch.setitem(rows.PARAMETERS, "few", 1)
    await process.ingest.add("n", [memory("e"), memory("f")])
    index = (await process.snapshot()).index
    assert np.count_nonzero(~index.vectors.knows(np.flatnonzero(index.memories.alive.values))) == 2


async def test_terms_asked_for_during_a_fetch_come_with_the_next_check(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not with one more after it."""
    await process.ingest.add("n", [memory("a", " ".join(WORDS))])
    await process.snapshot(terms=[])
    statements = Statements(monkeypatch)
    early = asyncio.create_task(process.snapshot(terms=TERMS[:1]))
    await statements.until("bm25_segment")
    await asyncio.gather(early, process.snapshot(terms=TERMS[1:]))
    assert statements.count("memory_change") == 2


async def test_mirrors_leave_by_their_bytes(process: Process) -> None:
    """The least recently used first; answers stay right, even for one that alone is too large."""
    for name in ("one", "two", "three"):
        await process.ingest.add(name, [memory(f"{name}{at}", f"harbour of {name}") for at in range(20)])
    await process.snapshot("one")
    size = process.indexes.nbytes
    process.indexes = IndexRegistry(process.pool, most_bytes=5 * size // 2)
    kept = {name: (await process.snapshot(name)).index for name in ("one", "two", "one", "three")}
    assert 0 < process.indexes.nbytes <= 5 * size // 2
    assert (await process.snapshot("one")).index is kept["one"]
    assert (await process.snapshot("two")).index is not kept["two"]
    process.indexes = IndexRegistry(process.pool, most_bytes=1)
    for name in ("one", "two", "one"):
        assert await process.ids("harbour", name) == {f"{name}{at}" for at in range(20)}
        assert process.indexes.nbytes > 1
    answers = await asyncio.gather(*(process.ids("harbour", name) for name in ("one", "two", "three") * 5))
    assert [len(each) for each in answers] == [20] * 15


async def test_what_is_asked_now_is_not_the_first_to_leave(process: Process) -> None:
    """Even if it was the least recently used one until then, and has grown."""
    for name in ("asked", "idle"):
        await process.ingest.add(name, [memory("a")])
        await process.snapshot(name)
    process.indexes._most_bytes = process.indexes.nbytes - 1
    await process.ingest.add("asked", [memory("b")])
    await process.snapshot("asked")
    assert [each.namespace for each in process.indexes.loaded()] == ["asked"]


async def test_the_largest_are_read_before_anybody_asks(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queries after that only check."""
    for name, count in (("small", 1), ("large", 4), ("middle", 3)):
        await process.ingest.add(name, [memory(f"{name}{number}") for number in range(count)])
    await process.indexes.warm(least=3)
    statements = Statements(monkeypatch)
    assert await process.ids("boats", "large") == {"large0", "large1", "large2", "large3"}
    assert await process.ids("boats", "middle") == {"middle0", "middle1", "middle2"}
    assert statements.count("float4send(weight)") == 0
    assert await process.ids("boats", "small") == {"small0"}
    assert statements.count("float4send(weight)") == 1


async def test_what_has_some_metadata_is_remembered_until_something_changes(process: Process) -> None:
    """In any order of keys; a look-up sent before a change and answered after it is not cached."""
    await process.ingest.add("n", [memory("a", metadata={"x": 1, "y": 2})])
    index = (await process.snapshot()).index
    docs, before = np.array([0], np.int64), index.changed
    index.keep_metadata({"x": 1, "y": 2}, docs, changed=before)
    assert index.with_metadata({"y": 2, "x": 1}) is docs
    assert index.with_metadata({"x": 1}) is None
    await process.ingest.add("n", [memory("b", metadata={"x": 1, "y": 2})])
    index = (await process.snapshot()).index
    assert index.with_metadata({"x": 1, "y": 2}) is None
    index.keep_metadata({"x": 1, "y": 2}, docs, changed=before)
    assert index.with_metadata({"x": 1, "y": 2}) is None


async def test_postings_of_one_query_may_be_more_than_are_kept(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is answered, and so are those that come with it."""
    await process.ingest.add("n", [memory(f"m{at}", " ".join(WORDS)) for at in range(20)])
    await process.snapshot(terms=[])
    monkeypatch.setattr("retrieval.index.terms.MOST_BYTES", 600)
    async with asyncio.timeout(60):
        whole = await process.snapshot()
        some = await asyncio.gather(*(process.snapshot(terms=[term]) for term in TERMS))
    slots = whole.index.memories.slots
    expected = postings_of((await Process(process.pool).snapshot()).postings, slots)
    assert postings_of(whole.postings, slots) == expected
    for term, each in zip(TERMS, some, strict=True):
        assert postings_of(each.postings, slots).get(term) == expected.get(term)


@pytest.mark.parametrize(
    ("holder", "name"),
    [
        (MemoryRows, "from_row"),
        (Columns, "put"),
        (EntityNames, "put"),
        (Adjacency, "add"),
        (QuantizedVectors, "remove"),
    ],
)
async def test_a_check_that_fails_leaves_nothing_half_done(
    process: Process, monkeypatch: pytest.MonkeyPatch, holder: type, name: str
) -> None:
    """The next query is answered correctly, and so are waiting ones."""
    await process.ingest.add("n", [memory("a")])
    await process.snapshot()
    await process.ingest.add("n", [memory("b", entities=[EntityInput(name="Porto")]), memory("a", "Porto.")])

    def fails(*args: Any) -> None:
        monkeypatch.undo()
        raise MemoryError

    monkeypatch.setattr(holder, name, fails)
    early = asyncio.create_task(process.snapshot())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    late = asyncio.create_task(process.snapshot())
    outcomes = await asyncio.gather(early, late, return_exceptions=True)
    assert sum(isinstance(outcome, BaseException) for outcome in outcomes) >= 1
    assert all(isinstance(outcome, BaseException | NamespaceSnapshot) for outcome in outcomes)
    await assert_right(process)


async def test_a_namespace_without_memories_has_a_mirror(process: Process) -> None:
    await process.ingest.add("n", [memory("a")])
    await process.ingest.delete("n", "a")
    snapshot = await process.snapshot()
    assert isinstance(snapshot.index, NamespaceIndex)
    assert (snapshot.index.memories.count, snapshot.postings.terms) == (0, {})
    await process.ingest.add("n", [memory("b", "harbour")])
    assert await process.ids("harbour") == {"b"}
    await assert_right(process)


async def test_vectors_of_many_memories_that_came_at_once_are_read_beside_the_queries(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index was loaded before they were added; no query needs them."""
    monkeypatch.setattr(registry, "FEW_VECTORS", 20)
    await process.ingest.add("n", [memory("first")])
    await process.snapshot()
    await process.ingest.add("n", [memory(f"m{number}", f"Boats {number}.") for number in range(70)])
    vectors = (await process.snapshot()).index.vectors
    async with asyncio.timeout(60):
        while True:
            if vectors.count >= 70:
                break
            await asyncio.sleep(0.02)
    await process.ingest.add("n", [memory("m3", "Another text.")])
    assert (await process.snapshot()).index.vectors.count >= 69


async def test_what_this_process_has_written_comes_with_the_check(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process's writes come after it."""
    await process.ingest.add("n", [memory("a")])
    await process.snapshot()
    for text, sent in (("Bo", 2), ("Ida", 1)):
        await process.ingest.add("n", [memory("b", text)])
        if sent == 1:
            process.indexes.expect_changes("n")
        with monkeypatch.context() as patch:
            statements = Statements(patch)
            await process.snapshot()
            assert statements.count("pg_current_snapshot()") == sent
        await assert_right(process)
