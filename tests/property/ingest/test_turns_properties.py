"""The stored data of chat turns depend only on the turns, not on how they came about."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.ingest.service import Ingest
from retrieval.store import namespaces
from retrieval.store.pool import Pool, open_pool
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import Filters
from tests.conftest import PostgresServer
from tests.examples import share_of_examples
from tests.turns import check_turns, hashed

IDS = [f"{letter}{number}" for letter in "aBé" for number in range(4)]
SESSIONS = st.sampled_from(["s", "t", None])
POSITIONS = st.none() | st.integers(0, 6)
TEXTS = st.sampled_from([f"text {number}" for number in range(30)])


@dataclass(frozen=True, slots=True)
class Add:
    """Memories in one batch."""

    batch: list[MemoryInput]


@dataclass(frozen=True, slots=True)
class Delete:
    """Some memories, one by one or, those of a session, at once."""

    ids: list[str] = field(default_factory=list)
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Patch:
    """Some fields of one memory."""

    id: str
    changes: dict[str, object]


MEMORIES = st.builds(MemoryInput, id=st.sampled_from(IDS), text=TEXTS, session_id=SESSIONS, position=POSITIONS)
BATCHES = st.lists(MEMORIES, min_size=1, max_size=6, unique_by=lambda memory: memory.id)
STEPS = st.lists(
    st.builds(Add, BATCHES)
    | st.builds(Add, BATCHES)
    | st.builds(Delete, st.lists(st.sampled_from(IDS), max_size=3), st.sampled_from(["s", None, None, None]))
    | st.builds(
        Patch,
        st.sampled_from(IDS),
        st.fixed_dictionaries({}, optional={"session_id": SESSIONS, "position": POSITIONS, "text": TEXTS}),
    ),
    min_size=1,
    max_size=10,
)


class Model:
    """A model of the memories as a list, with positions by the rules."""

    def __init__(self) -> None:
        self.memories: dict[str, MemoryInput] = {}
        self.places: dict[str, int] = {}

    def add(self, batch: list[MemoryInput]) -> None:
        memories, places = dict(self.memories), dict(self.places)
        greatest = {s: max((places[i] for i in places if memories[i].session_id == s), default=-1) for s in ("s", "t")}
        for memory in batch:
            assert memory.id is not None
            before = self.memories.get(memory.id)
            if memory == before:
                continue
            self.memories[memory.id] = memory
            former = self.places.pop(memory.id, None)
            session = memory.session_id
            if session is None:
                continue
            if memory.position is not None:
                place = memory.position
            elif former is not None and before is not None and before.session_id == session:
                place = former
            else:
                place = greatest[session] + 1
            self.places[memory.id] = place
            greatest[session] = max(greatest[session], place)

    def delete(self, memory_id: str) -> None:
        self.memories.pop(memory_id, None)
        self.places.pop(memory_id, None)


class Workbench:
    """A writer on the test's database, usable from functions that are not async."""

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url
        self.runner = asyncio.Runner()
        self._opening = open_pool(database_url, 1)
        self.pool: Pool = self.runner.run(self._opening.__aenter__())
        self.ingest = Ingest(self.pool, hashed())

    def close(self) -> None:
        self.runner.run(self._opening.__aexit__(None, None, None))
        self.runner.close()

    async def start_anew(self) -> None:
        await self.ingest.add("n", [MemoryInput(id="there", text="so that there is a namespace")])
        async with self.pool.connection() as conn:
            receipt = await namespaces.delete(conn, "n")
        assert receipt.deleted["turns"] <= receipt.deleted["memories"]
        await self.ingest.add("n", [MemoryInput(id="there", text="no turn, and never changed")])

    async def take(self, step: Add | Delete | Patch, model: Model) -> None:
        if isinstance(step, Add):
            await self.ingest.add("n", step.batch)
            model.add(step.batch)
        elif isinstance(step, Delete):
            for memory_id in {*step.ids} & model.memories.keys():
                await self.ingest.delete("n", memory_id)
                model.delete(memory_id)
            if step.session is not None:
                gone = {i for i, memory in model.memories.items() if memory.session_id == step.session}
                assert await self.ingest.delete_many("n", filters=Filters(session_id=[step.session])) == len(gone)
                for memory_id in gone:
                    model.delete(memory_id)
        elif step.id in model.memories:
            current = model.memories[step.id]
            changes = step.changes
            await self.ingest.patch("n", step.id, MemoryPatch(**changes))  # type: ignore[arg-type]
            fields = {name: getattr(current, name) for name in ("id", "text", "session_id", "position")}
            model.add([MemoryInput(**(fields | changes))])


@pytest.fixture(scope="module")
def workbench(postgres_server: PostgresServer) -> Iterator[Workbench]:
    with postgres_server.clone() as url, closing(Workbench(url)) as opened:
        yield opened


@settings(max_examples=share_of_examples(0.6))
@given(steps=STEPS)
def test_turns_follow_from_what_is_there(workbench: Workbench, steps: list[Add | Delete | Patch]) -> None:
    """Places, pointers and vectors after additions, edits, moves and deletes."""
    model = Model()
    workbench.runner.run(workbench.start_anew())
    for step in steps:
        workbench.runner.run(workbench.take(step, model))
    turns = check_turns(workbench.database_url, {i: model.memories[i].text for i in model.places})
    assert {i: turn.place for i, turn in turns.items()} == model.places


POSITIONED = st.lists(st.integers(0, 12), min_size=1, max_size=14).map(
    lambda positions: [
        MemoryInput(id=f"{number}-{position}", text=f"text {number}", session_id="s", position=position)
        for number, position in enumerate(positions)
    ]
)


@settings(max_examples=share_of_examples(0.4))
@given(turns=POSITIONED, data=st.data())
def test_the_order_of_arrival_does_not_matter(
    workbench: Workbench, turns: list[MemoryInput], data: st.DataObject
) -> None:
    """The same turns in any order and any batches: the same chain, the very same vectors."""
    texts = {turn.id or "": turn.text for turn in turns}
    workbench.runner.run(workbench.start_anew())
    workbench.runner.run(workbench.ingest.add("n", turns))
    at_once = check_turns(workbench.database_url, texts)
    workbench.runner.run(workbench.start_anew())
    left = data.draw(st.permutations(turns))
    while left:
        size = data.draw(st.integers(1, len(left)))
        workbench.runner.run(workbench.ingest.add("n", left[:size]))
        left = left[size:]
    bit_by_bit = check_turns(workbench.database_url, texts)
    for memory_id, turn in at_once.items():
        assert bit_by_bit[memory_id].place == turn.place
        assert abs(bit_by_bit[memory_id].embedding - turn.embedding).max() == 0
