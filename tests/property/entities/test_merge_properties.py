"""Merges are a view: after any writes, merges and separations, each memory counts for the names in its text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec
import pytest

from retrieval.entities.service import EntityService
from retrieval.errors import Conflict, NotFound
from retrieval.index.registry import IndexRegistry
from retrieval.ingest.service import Ingest
from retrieval.store import namespaces
from retrieval.store.pool import Pool, open_pool
from retrieval.types.memory import EntityInput, MemoryInput, RelationInput
from tests.conftest import PostgresServer
from tests.linking import found_for
from tests.turns import hashed

NAMES = ["Ana", "Bela", "Cleo Vale", "Dora Vale", "Emil"]
IDS = [f"m{number}" for number in range(3)]
PLAIN, MERGED = "plain", "merged"
QUERIES = ("Ana and Bela", "Who is Vale?", "Where are Emil and Dora Vale?")


@dataclass(frozen=True, slots=True)
class Write:
    """A memory that mentions some names and relates the first two."""

    id: str
    names: list[str]

    def memory(self) -> MemoryInput:
        relations = [RelationInput(source=self.names[0], type="knows", target=self.names[1])] if self.names[1:] else []
        entities = [EntityInput(name=name, type="person") for name in self.names]
        return MemoryInput(id=self.id, text="Hm.", entities=entities, relations=relations)


@dataclass(frozen=True, slots=True)
class Delete:
    """A memory, if it exists."""

    id: str


@dataclass(frozen=True, slots=True)
class Merge:
    """One name into another, if both exist and are different entities."""

    name: str
    into: str


@dataclass(frozen=True, slots=True)
class Undo:
    """One of the current merges."""

    number: int


FIRST = [Write("m0", ["Ana", "Bela"]), Write("m1", ["Cleo Vale", "Dora Vale", "Emil"])]


class Workbench:
    """The same memories in two namespaces, in one of which entities are merged; and an index that follows both."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._ingest = Ingest(pool, hashed())
        self.service = EntityService(pool, IndexRegistry(pool, most_bytes=2**30))

    async def start_anew(self) -> None:
        self.targets: dict[str, str] = {}
        self.merges: list[tuple[str, str]] = []
        self.ids: dict[str, str] = {}
        async with self._pool.connection() as conn:
            for name in (PLAIN, MERGED):
                if await namespaces.describe(conn, [name]):
                    await namespaces.delete(conn, name)
                await namespaces.create(conn, await namespaces.find_or_new(conn, name))

    async def take(self, step: Write | Delete | Merge | Undo) -> None:
        if isinstance(step, Write):
            for name in (PLAIN, MERGED):
                await self._ingest.add(name, [step.memory()])
            self.ids |= {entity.name: entity.id for entity in (await self.service.list(PLAIN)).entities}
        elif isinstance(step, Delete):
            for name in (PLAIN, MERGED):
                with suppress(NotFound):
                    await self._ingest.delete(name, step.id)
        elif isinstance(step, Merge):
            await self._merge(step.name, step.into)
        elif self.merges:
            name, merge_id = self.merges.pop(step.number % len(self.merges))
            await self.service.separate(MERGED, merge_id)
            del self.targets[name]

    async def _merge(self, name: str, into: str) -> None:
        root, target = self.root(name), self.root(into)
        try:
            receipt = await self.service.merge(MERGED, self.ids.get(name, ""), self.ids.get(into, ""))
        except NotFound:
            return
        except Conflict:
            assert root == target
            return
        assert root != target
        self.targets[root] = target
        self.merges.append((root, receipt.merge_id))

    def root(self, name: str) -> str:
        """The name that an entity is shown as."""
        while name in self.targets:
            name = self.targets[name]
        return name

    async def mentioned(self, namespace: str, service: EntityService | None = None) -> dict[str, set[str]]:
        """The memories of each name."""
        service = service or self.service
        listed = (await service.list(namespace)).entities
        pages = [await service.page(namespace, entity.id) for entity in listed]
        assert [page.mentions for page in pages] == [entity.mentions for entity in listed]
        found = {page.name: {memory.id for memory in page.memories} for page in pages}
        assert all(page.mentions == len(page.memories) == len(found[page.name]) for page in pages)
        return found

    async def expected(self) -> Mapping[str, set[str]]:
        """The memories of each root, from those of the names that are merged into it."""
        merged: dict[str, set[str]] = {}
        for name, memories in (await self.mentioned(PLAIN)).items():
            merged.setdefault(self.root(name), set()).update(memories)
        return merged

    def newly_loaded(self) -> EntityService:
        """Of another process."""
        return EntityService(self._pool, IndexRegistry(self._pool, most_bytes=2**30))

    async def answers(self, namespace: str) -> list[Any]:
        """All data of entities, and the entities of queries."""
        entities = (await self.service.list(namespace, words=True)).entities
        said: list[Any] = [await self.service.page(namespace, entity.id) for entity in entities]
        said += [await self.service.neighbors(namespace, entity.id, hops=2) for entity in entities]
        said.append(await self.service.graph(namespace))
        async with self._pool.connection() as conn:
            ns = (await namespaces.find(conn, namespace)).ns
            meant = [await found_for(conn, ns, query) for query in QUERIES]
            rows = {}
            for table in ("entity", "entity_alias", "entity_token", "entity_merge", "mention", "relation"):
                statement = f"select to_jsonb(t) - 'ns' from {table} t where ns = %s"
                found = await (await conn.execute(statement, (ns,))).fetchall()
                rows[table] = sorted(map(repr, found))
        times = {"created_at", "first_mentioned_at", "last_mentioned_at", "profile"}
        return [without(msgspec.to_builtins(said), times), [sorted(found) for found in meant], rows]


def without(value: Any, names: set[str]) -> Any:
    """A value without some fields, at any depth."""
    if isinstance(value, dict):
        return {name: without(each, names) for name, each in value.items() if name not in names}
    return [without(each, names) for each in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def bench(postgres_server: PostgresServer) -> Iterator[tuple[asyncio.Runner, Workbench]]:
    with postgres_server.clone() as url, asyncio.Runner() as runner:
        opening = open_pool(url, 4)
        pool = runner.run(opening.__aenter__())
        yield runner, Workbench(pool)
        runner.run(opening.__aexit__(None, None, None))


def steps_of(random: Random) -> list[Write | Delete | Merge | Undo]:
    """Many merges, so that they build on each other."""
    steps: list[Write | Delete | Merge | Undo] = list(FIRST)
    for _ in range(20):
        match random.choice("mmmuwwd"):
            case "m":
                steps.append(Merge(*random.sample(NAMES, 2)))
            case "u":
                steps.append(Undo(random.randrange(5)))
            case "w":
                steps.append(Write(random.choice(IDS), random.sample(NAMES, random.randint(1, 3))))
            case _:
                steps.append(Delete(random.choice(IDS)))
    return steps


@pytest.mark.parametrize("seed", range(12))
def test_merges_are_a_view_of_what_is_written(bench: tuple[asyncio.Runner, Workbench], seed: int) -> None:
    """After each step in the updated index, at the end in a new one; with all undone, as if never merged."""
    (runner, workbench), random = bench, Random(seed)
    runner.run(workbench.start_anew())
    for step in steps_of(random):
        runner.run(workbench.take(step))
        assert runner.run(workbench.mentioned(MERGED)) == runner.run(workbench.expected())
    newly_loaded = workbench.newly_loaded()
    assert runner.run(workbench.mentioned(MERGED, newly_loaded)) == runner.run(workbench.expected())
    while workbench.merges:
        runner.run(workbench.take(Undo(random.randrange(5))))
        assert runner.run(workbench.mentioned(MERGED)) == runner.run(workbench.expected())
    assert runner.run(workbench.answers(MERGED)) == runner.run(workbench.answers(PLAIN))
