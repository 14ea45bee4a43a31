"""Two namespaces that are as similar as possible: operations on one neither affect the other nor depend on it.

Ordinals begin at 0 in each and entities are numbered by their names, so both have the same numbers. The twin has
the same ids, sessions, names, terms and metadata too, but in another order, so that a number alone means another memory
in it; and some more of everything, where a limit could be reached.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, LiteralString

import msgspec
import psycopg
import pytest
from psycopg import sql

from retrieval.engine import Trivet
from retrieval.journal.service import relevant_of
from retrieval.lifecycle.export import ExportHeader
from retrieval.store import feedback
from retrieval.store.bm25 import compaction
from retrieval.types.document import DocumentInput
from retrieval.types.entity import AliasChange
from retrieval.types.journal import FeedbackRequest
from retrieval.types.memory import EntityInput, ForgetRequest, MemoryInput, MemoryPatch, RelationInput
from retrieval.types.namespace import NamespaceSettings, QueryLogSettings
from retrieval.types.search import ContextRequest, Filters, Mode, SearchRequest
from tests.conftest import PostgresServer
from tests.serving import settings_for
from tests.statements import for_all, has_rows, tables_of_namespaces, unbound

DAY = datetime(2023, 5, 8, 12, tzinfo=UTC)
FIRST = 770_001
"""Number of the first namespace: no other parameter of statements is as large, except hashes."""

OWN, TWIN = "own", "twin"

_TEXTS = [
    "Caroline: I went to the support group yesterday.",
    "Melanie: That is great, Caroline! Did you take the red bicycle?",
    "Caroline: Yes, the bicycle and my guitar. Where is yours?",
    "Melanie: At Lake Garda, with Oscar and the pottery class.",
    "Caroline: I love pottery more than guitar lessons.",
    "Melanie: Oscar Wilde Club meets on Monday in Lisbon.",
]
_FACTS = [
    "Caroline attends the support group in Lisbon every week.",
    "Melanie prefers tea to coffee and plays the guitar.",
    "Oscar works for the United Nations in Geneva.",
    "The pottery class at Lake Garda costs 40 euros.",
    "Caroline lives in Lisbon.",
    "The red bicycle belongs to Melanie.",
    "Geneva hosts the United Nations and a pottery fair in May 2023.",
    "Lisbon is far from Lake Garda.",
    "Elizabeth Brown moved away last year.",
]
GUIDE = "# Guide to Lisbon\n\n" + "".join(
    f"## Tour {number}\n\n{'Caroline and Melanie took the red bicycle to the pottery class by the lake. ' * 12}\n\n"
    for number in range(4)
)
DOCUMENTS = [
    DocumentInput(id="guide", text=GUIDE, created_at=DAY),
    DocumentInput(id="leaflet", text=GUIDE[:900], created_at=DAY),
]
_QUERIES = [
    "When did Caroline go to the support group?",
    "What does Caro like?",
    "Who works with the UN in Geneva?",
    "bicycle guitar pottery",
    "What happened in May 2023?",
    "Where did Liz go, and how far is Garda?",
]


def house(name: str) -> list[MemoryInput]:
    """The memories of a namespace; only their metadata identify it."""
    turns = [
        MemoryInput(
            id=f"t{position}", text=text, kind="message", speaker=text.partition(":")[0], session_id="chat",
            position=position, created_at=DAY + timedelta(minutes=position), tags=["chat"],
            metadata={"house": name, "part": position % 3},
        )
        for position, text in enumerate(_TEXTS)
    ]  # fmt: skip
    facts = [
        MemoryInput(
            id=f"m{number}", text=text, title=text.split()[0], created_at=DAY + timedelta(days=number),
            tags=["fact", f"f{number % 2}"], metadata={"house": name, "part": number % 3}, document_id="notes",
            entities=[EntityInput(name="Caroline", type="person", aliases=["Caro"])] if number in (0, 4) else [],
            relations=[RelationInput(source="Melanie", type="owns", target=f"Bicycle {number}")],
            supersedes="m0" if number == 4 else None,
        )
        for number, text in enumerate(_FACTS)
    ]  # fmt: skip
    return turns + facts


def more() -> list[MemoryInput]:
    """Data of the twin only: as many names per word as look-ups read, and terms at later ordinals."""
    crowd = [
        EntityInput(name=f"{word} {number}", type="thing")
        for word in ("Caroline", "Lisbon", "Support")
        for number in range(70)
    ]
    crowded = MemoryInput(id="crowd", text="A crowd.", entities=crowd)
    later = [MemoryInput(id=f"x{number}", text=f"bicycle support guitar {number}?") for number in range(40)]
    return [crowded, *later]


@dataclass(slots=True)
class Life:
    """Observations of a namespace: answers by step, its rows at the end, statements that were not limited to it.

    And of its twin: the rows that each step touched, its answers before and after.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    rows: Mapping[str, Any] = field(default_factory=dict)
    unbound: Mapping[str, list[str]] = field(default_factory=dict)
    touched: dict[str, Any] = field(default_factory=dict)
    twin_before: Any = None
    twin_after: Any = None


class House:
    """One namespace and every operation on it."""

    def __init__(self, engine: Trivet, db: psycopg.AsyncConnection[Any], name: str) -> None:
        self.engine = engine
        self.name = name
        self._db = db

    async def number(self) -> int:
        row = await (await self._db.execute("select ns from namespace where name = %s", (self.name,))).fetchone()
        assert row is not None
        return int(row[0])

    async def ask(self, **fields: Any) -> list[Any]:
        """The answers to all queries, without parts that vary between runs."""
        answers = []
        for query in _QUERIES:
            request = SearchRequest(query=query, query_timestamp=DAY, explain=True, **fields)
            answer = msgspec.to_builtins(await self.engine.search(self.name, request))
            await self.engine.settle()  # its entry in the log is written
            del answer["timings_ms"], answer["search_id"]
            answers.append(answer)
        return answers

    async def ask_everything(self) -> dict[str, Any]:
        answers: dict[str, Any] = {str(mode): await self.ask(mode=mode) for mode in Mode if mode is not Mode.HYBRID}
        answers["filtered"] = await self.ask(filters=Filters(metadata={"part": 1}, tags_any=["chat", "f1"]))
        answers["all"] = await self.ask(include_superseded=True, top_k=50)
        answers["then"] = await self.ask(as_of=DAY + timedelta(days=2))
        answers["packs"] = [await self.pack(query) for query in _QUERIES]
        return answers

    async def pack(self, query: str) -> list[Any]:
        """The content of a context pack."""
        packed = await self.engine.context(self.name, ContextRequest(query=query, query_timestamp=DAY))
        await self.engine.settle()
        return [packed.context, packed.related, msgspec.to_builtins(packed.items)]

    async def read_everything(self) -> dict[str, Any]:
        """Its lists, counts and memories."""
        listed = await self.engine.list(self.name, Filters(), cursor=None, limit=100)
        fact = Filters(metadata={"part": 2}, kind=["memory"])
        queries = await self.engine.journal.list_queries(self.name, cursor=None, limit=100)
        judged = await self.engine.journal.list_feedback(self.name, cursor=None, limit=100)
        described = msgspec.to_builtins(await self.engine.get_namespace(self.name))
        return {
            "counts": {name: value for name, value in described.items() if name not in ("name", "created_at")},
            "listed": msgspec.to_builtins(listed.memories),
            "histories": [
                msgspec.to_builtins(await self.engine.lifecycle.history(self.name, each.id)) for each in listed.memories
            ],
            "filtered": msgspec.to_builtins((await self.engine.list(self.name, fact, cursor=None, limit=100)).memories),
            "exported": b"".join([piece async for piece in self.engine.lifecycle.export(self.name)]),
            "each": [msgspec.to_builtins(await self.engine.get(self.name, each.id)) for each in listed.memories],
            "queries": [each.query for each in queries.queries],
            "feedback": [each.id for each in judged.feedback],
        }

    async def ask_entities(self) -> dict[str, Any]:
        """The data of entities, without the times of merges."""
        entities, name = self.engine.entities, self.name
        listed = (await entities.list(name, words=True, limit=1_000)).entities
        ids = {entity.name: entity.id for entity in listed}
        pages = [await entities.page(name, entity.id, words=True, limit=5) for entity in listed]
        shown = [msgspec.to_builtins(msgspec.structs.replace(page, merged=[])) for page in pages]
        caroline, melanie = ids["Caroline"], ids["Melanie"]
        return {
            "listed": [*map(msgspec.to_builtins, listed)],
            "matching": msgspec.to_builtins(await entities.list(name, q="car", types=["person"])),
            "pages": shown,
            "merged": [[(each.id, each.name) for each in page.merged] for page in pages],
            "neighbors": msgspec.to_builtins(await entities.neighbors(name, caroline, hops=2)),
            "paths": msgspec.to_builtins(await entities.paths(name, caroline, melanie, words=True)),
            "graph": msgspec.to_builtins(await entities.graph(name, words=True, limit=100)),
        }

    async def id_of(self, name: str) -> str:
        """The id of an entity."""
        listed = (await self.engine.entities.list(self.name, words=True, limit=1_000)).entities
        return next(entity.id for entity in listed if entity.name == name)

    async def state(self) -> list[Any]:
        """All its answers."""
        each = (await self.read_everything())["each"]
        return [await self.ask_everything(), each, await self.ask_entities()]

    async def read_documents(self) -> list[Any]:
        """The lists and texts of its documents."""
        page = await self.engine.documents.list(self.name, cursor=None, limit=100)
        each = [await self.engine.documents.get(self.name, document.id) for document in page.documents]
        return [msgspec.to_builtins(page), msgspec.to_builtins(each)]

    async def judge(self, number: int) -> None:
        judged = FeedbackRequest(id=f"f{number}", query="Where?", shown=["m1", "m2"], relevant=["m1"])
        await self.engine.journal.add_feedback(self.name, judged)

    async def compact(self) -> None:
        ns = await self.number()
        async with self.engine._pool.connection() as conn:
            await compaction.compact(conn, ns)

    async def live(self) -> AsyncIterator[tuple[str, Any]]:
        """Every operation on it, step by step."""
        engine, name = self.engine, self.name
        yield "answers", await self.ask_everything()
        yield "is read", await self.read_everything()
        yield "entities", await self.ask_entities()
        caroline, oscar, geneva = [await self.id_of(each) for each in ("Caroline", "Oscar", "Geneva")]
        given = await engine.entities.change_aliases(name, oscar, AliasChange(add=["Ozzy", "Osc"]))
        yield "named", msgspec.to_builtins(given)
        first = await engine.entities.merge(name, geneva, oscar)
        second = await engine.entities.merge(name, oscar, caroline)
        yield "merged entities", await self.ask_entities()
        yield "merged answers", await self.ask()
        for number in range(4):
            await self.judge(number)
        judged = await engine.journal.judged_searches(name)
        yield "is judged", {each.search_id: relevant_of(each) for each in judged}
        changed = MemoryInput(id="m1", text="Melanie prefers coffee now.", created_at=DAY, metadata={"part": 2})
        yield "replaced", msgspec.to_builtins(await engine.add(name, [changed]))
        yield "patched", msgspec.to_builtins(await engine.patch(name, "t2", MemoryPatch(text="Caroline: No.")))
        newer = MemoryInput(id="m20", text="Caroline lives in Porto.", supersedes="m4", created_at=DAY)
        yield "superseded", msgspec.to_builtins(await engine.add(name, [newer]))
        yield "after changes", await self.ask_everything()
        await engine.entities.separate(name, first.merge_id)
        await engine.entities.change_aliases(name, oscar, AliasChange(remove=["Osc"]))
        yield "separated", await self.ask_entities()
        await engine.entities.separate(name, second.merge_id)
        yield "separated again", await self.ask_entities()
        await engine.entities.merge(name, geneva, caroline)
        yield "documents", await self.read_documents()
        shorter = DocumentInput(id="guide", text=GUIDE[:1_500], created_at=DAY)
        yield "put again", msgspec.to_builtins(await engine.documents.put(name, shorter))
        yield "unchanged", msgspec.to_builtins(await engine.documents.put(name, shorter))
        yield "after put", [await self.read_documents(), await self.ask()]
        await engine.documents.delete(name, "guide")
        yield "without it", [await self.read_documents(), await self.ask()]
        await engine.delete(name, "m5")
        await engine.delete(name, "t3")
        yield "deleted", await self.ask()
        yield "matching", await engine.delete_many(name, filters=Filters(tags_any=["f0"], metadata={"part": 0}))
        await self.compact()
        await engine.add(name, [MemoryInput(id="n1", text="Nothing of the kind.", created_at=DAY)])
        await self.compact()  # before any query has seen it
        yield "packed", await self.ask()
        yield "by id", await engine.delete_many(name, ids=["m1", "m20", "t0", "t1", "t5"])
        yield "packed and deleted", await self.ask()
        await self.compact()
        await engine.add(name, [MemoryInput(id="n2", text="Nor of this.", created_at=DAY)])
        await self.compact()
        yield "merged", await self.ask()
        header = ExportHeader(
            trivet_export=1,
            memories=0,
            written=500,
            settings=NamespaceSettings(),
            aliases=[("geneva", "Genf"), ("nobody", "No one")],
            merges=[("oscar", "geneva"), ("oscar", "geneva"), ("nobody", "geneva")],
        )
        yield "imported", await engine.lifecycle.complete_import(name, header)
        yield "entities imported", await self.ask_entities()
        for request in (ForgetRequest(speaker="Melanie"), ForgetRequest(entity="Geneva")):
            yield f"forgotten {request}", msgspec.to_builtins(await engine.lifecycle.forget(name, request))
        yield "redacted", await engine.journal.redact_queries(name, "bicycle")
        yield "is read again", await self.read_everything()
        yield "forgotten queries", await engine.journal.delete_queries(name)
        yield "forgotten feedback", await engine.journal.delete_feedback(name)
        await engine.put_namespace(name, NamespaceSettings(profile="research"))
        yield "is read at last", await self.read_everything()

    async def rows(self) -> dict[str, list[Any]]:
        """All rows of it, with the transactions that wrote them."""
        ns = await self.number()
        found = {}
        for table in await tables_of(self._db):
            statement = sql.SQL("select to_jsonb(t) || jsonb_build_object('xmin', xmin::text) from {} t where ns = %s")
            rows = await (await self._db.execute(statement.format(sql.Identifier(table)), (ns,))).fetchall()
            found[table] = sorted((row for (row,) in rows), key=repr)
        return found


async def tables_of(db: psycopg.AsyncConnection[Any]) -> list[str]:
    """The tables that have the column `ns`."""
    statement: LiteralString = "select table_name from information_schema.columns where column_name = 'ns' order by 1"
    return [table for (table,) in await (await db.execute(statement)).fetchall()]


_DIFFERS = {"ns", "xmin", "at", "xid", "key", "segment", "total_ms", "name", "next_doc", "merge", "merged_at"}
"""Fields that differ between two runs of the same namespace."""


def comparable(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Rows without parts that vary between runs, such as ids of logged searches."""
    kept = {
        table: [
            {
                name: value
                for name, value in row.items()
                if name not in _DIFFERS and (table, name) != ("query_log", "id")
            }
            for row in found
        ]
        for table, found in rows.items()
        if table != "namespace"
    }
    return {table: sorted(map(repr, found)) for table, found in kept.items()}


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[Trivet, psycopg.AsyncConnection[Any]]]:
    async with (
        Trivet.open(settings_for(url)) as engine,
        await psycopg.AsyncConnection.connect(url, autocommit=True) as db,
    ):
        yield engine, db


async def settle_in(one: House, *, memories: Sequence[MemoryInput], log: int) -> None:
    settings = NamespaceSettings(query_log=QueryLogSettings(max_entries=log))
    await one.engine.put_namespace(one.name, settings)
    results = await one.engine.add(one.name, memories)
    assert {result.status for result in results} == {"created"}
    for document in DOCUMENTS:
        assert (await one.engine.documents.put(one.name, document)).status == "created"


async def live(url: str, *, twin: str | None) -> Life:
    """Run all operations on a namespace whose twin is created before it, after it, or not at all."""
    life = Life()
    async with opened(url) as (engine, db):
        await db.execute(f"alter table namespace alter ns restart with {FIRST}")
        own, other = House(engine, db, OWN), House(engine, db, TWIN)
        if twin == "before":
            await settle_in(other, memories=[*reversed(house(TWIN)), *more()], log=1_000)
        await settle_in(own, memories=house(OWN), log=3)
        if twin == "after":
            await settle_in(other, memories=[*reversed(house(TWIN)), *more()], log=1_000)
        before: Mapping[str, Any] = {}
        if twin is not None:
            for number in range(3):
                await other.judge(number)
            tombstones = "insert into bm25_tombstone (ns, doc) select %s, generate_series(0, 50)"
            await db.execute(tombstones, (await other.number(),))  # as deletions of packed memories leave them
            others_caroline = await other.id_of("Caroline")
            await engine.entities.merge(TWIN, await other.id_of("Oscar"), others_caroline)
            await engine.entities.change_aliases(TWIN, others_caroline, AliasChange(add=["Ozzy"]))
            life.twin_before = await other.state()
            before = await other.rows()
        async for step, answer in own.live():
            life.answers[step] = answer
            if twin is not None and (now := await other.rows()) != before:
                life.touched[step] = [table for table in now if now[table] != before[table]]
                before = now
        life.rows = await own.rows()
        if twin is not None:
            await engine.delete_namespace(OWN)
            if await other.rows() != before:
                life.touched["own deleted"] = True
            life.twin_after = await other.state()
    return life


@dataclass(frozen=True, slots=True)
class PendingResult:
    """A statement as sent to the server, with the indices of the parameters that were a namespace's number."""

    text: str
    numbers: frozenset[int]


class Log:
    """The server's log of statements."""

    _ENTRY = re.compile(r"^\S+ \S+ \S+ \[(\d+)\] (LOG|DETAIL):  ", re.MULTILINE)
    _STATEMENT = re.compile(r"(?:execute [^:]+|statement): (.*)", re.DOTALL)

    def __init__(self, url: str) -> None:
        """Start reading from now on, for the database of that URL."""
        with psycopg.connect(url, autocommit=True) as db:
            database = sql.Identifier(db.info.dbname)
            for setting, value in (("log_statement", "all"), ("log_parameter_max_length", "64")):
                db.execute(sql.SQL(f"alter database {{}} set {setting} = '{value}'").format(database))
            (folder,) = db.execute("select current_setting('data_directory')").fetchone() or ("",)
            self.tables = tables_of_namespaces(db)
        self._path = Path(folder) / "server.log"
        self._seen = self._path.stat().st_size

    def sent(self) -> Iterator[PendingResult]:
        """Every statement, with or without rows."""
        _, *entries = self._ENTRY.split(self._path.read_bytes()[self._seen :].decode())
        last: dict[str, str] = {}
        for process, level, entry in zip(entries[::3], entries[1::3], entries[2::3], strict=True):
            if level == "LOG":
                if process in last:
                    yield PendingResult(last.pop(process), frozenset())
                if statement := self._STATEMENT.match(entry):
                    last[process] = statement[1]
            elif process in last:
                numbers = re.findall(rf"\$(\d+) = '(?:{FIRST}|{FIRST + 1})'", entry)
                yield PendingResult(last.pop(process), frozenset(map(int, numbers)))
        yield from (PendingResult(statement, frozenset()) for statement in last.values())


@pytest.fixture(scope="module")
def lived(postgres_server: PostgresServer) -> Iterator[Callable[[str | None], Life]]:
    """The observations by when the twin was created, None for never; each case runs once."""

    @cache
    def lived(twin: str | None) -> Life:
        with postgres_server.clone() as url:
            log = Log(url)
            life = asyncio.run(live(url, twin=twin))
        sent = {each for each in log.sent() if has_rows(each.text) and not for_all(each.text)}
        assert len(sent) > 100, "the log is read in a way that it is not written in"
        loose = {each.text: unbound(each.text, each.numbers, log.tables) for each in sent}
        life.unbound = {text: tables for text, tables in loose.items() if tables}
        return life

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feedback, "MAX_ROWS", 2)
        yield lived


@pytest.mark.parametrize("twin", ["before", "after"])
def test_nothing_that_is_done_in_one_namespace_touches_a_row_of_the_other(
    lived: Callable[[str | None], Life], twin: str
) -> None:
    assert lived(twin).touched == {}


@pytest.mark.parametrize("twin", ["before", "after"])
def test_the_other_answers_as_before(lived: Callable[[str | None], Life], twin: str) -> None:
    assert lived(twin).twin_after == lived(twin).twin_before


@pytest.mark.parametrize("twin", ["before", "after"])
def test_a_namespace_with_a_twin_answers_as_one_that_is_alone(lived: Callable[[str | None], Life], twin: str) -> None:
    alone = lived(None).answers
    differing = [step for step, answer in lived(twin).answers.items() if answer != alone[step]]
    assert differing == []


@pytest.mark.parametrize("twin", ["before", "after"])
def test_a_namespace_with_a_twin_has_the_rows_of_one_that_is_alone(
    lived: Callable[[str | None], Life], twin: str
) -> None:
    assert comparable(lived(twin).rows) == comparable(lived(None).rows)


@pytest.mark.parametrize("twin", [None, "before", "after"])
def test_every_statement_that_was_sent_kept_to_one(lived: Callable[[str | None], Life], twin: str | None) -> None:
    """Including those composed at run time."""
    assert not lived(twin).unbound
