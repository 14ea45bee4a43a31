"""A leg that fails or is late is reported, and the others answer; if all fail, it is an error."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from classifier.intents import Intent
from retrieval.answer.answer import Answer
from retrieval.concurrent_legs import ConcurrentLegs
from retrieval.embedding.cache import CachedEmbedder, Embedder
from retrieval.embedding.embedders import Embedders
from retrieval.embedding.onnx import OnnxEmbedder
from retrieval.errors import AllLegsFailed
from retrieval.index.registry import IndexRegistry
from retrieval.ingest.service import Ingest
from retrieval.installation import models_dir
from retrieval.intents import IntentPredictor
from retrieval.legs.base import LegQuery, LegRanking, Retriever, within_deadline
from retrieval.legs.bm25 import Bm25Retriever
from retrieval.legs.graph import GraphRetriever
from retrieval.legs.vector import VectorRetriever
from retrieval.pipeline import Pipeline
from retrieval.preparation import Preparation, PreparedQuery
from retrieval.profiles.models import ModelRegistry
from retrieval.profiles.profile import DEFAULT
from retrieval.profiles.registry import ProfileRegistry
from retrieval.store import reachability
from retrieval.store.pool import Pool
from retrieval.timings import Stopwatch
from retrieval.types.memory import MemoryInput
from retrieval.types.search import Degradation, Leg, Mode, SearchRequest
from tests.turns import HashedEmbedder, uncached

DEADLINE_S = 1.0
"""For a leg that never answers."""

PATIENCE_S = 60.0
"""For legs that all answer, however busy the machine is."""
QUERY = "Where did Caroline adopt Biscuit?"

_LONE = structs.replace(DEFAULT.fixed, weights={Leg.VECTOR: 1.0, Leg.BM25: 0.0, Leg.GRAPH: 0.0})
PROFILES = {
    "default": DEFAULT,
    "lone": structs.replace(DEFAULT, name="lone", per_intent={**DEFAULT.per_intent, Intent.PREFERENCE: _LONE}),
}

Running = asyncio.Task[LegRanking | Degradation]


class Breaking:
    """A leg that calls the real one, then raises, or sleeps before it answers."""

    def __init__(self, real: Retriever, *, sleeps_s: float | None = None) -> None:
        self._real = real
        self._sleeps_s = sleeps_s

    async def search(self, query: LegQuery) -> LegRanking:
        """Never answer in time."""
        ranking = await self._real.search(query)
        if self._sleeps_s is None:
            raise ConnectionResetError("the leg broke\nwith a second line")
        await asyncio.sleep(self._sleeps_s)
        return ranking


class Silent:
    """A leg that never answers; `asked` is set when it is called."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def search(self, query: LegQuery) -> LegRanking:
        """Wait forever."""
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError(query)


class Listening:
    """The graph leg, recording the other legs' results that it gets."""

    def __init__(self, real: Retriever) -> None:
        self._real = real
        self.told: Mapping[Leg, LegRanking] = {}

    async def search(self, query: LegQuery) -> LegRanking:
        """The real one's hits."""

        async def other_rankings() -> Mapping[Leg, LegRanking]:
            self.told = await query.other_rankings()
            return self.told

        self.told = {}
        return await self._real.search(structs.replace(query, other_rankings=other_rankings))


class DeadEmbedder(HashedEmbedder):
    """An embedding provider that does not answer."""

    model = "dead"

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Fail."""
        raise ConnectionError(f"no embedder for {len(text)} characters")

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Fail."""
        raise ConnectionError(f"no embedder for {len(texts)} texts")


class SilentEmbedder(DeadEmbedder):
    """An embedding provider that keeps the connection and never answers."""

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Wait forever."""
        await asyncio.Event().wait()
        raise AssertionError(text)


class OnlyLate(ConcurrentLegs):
    """Legs of which some are late: their deadline begins when the graph leg waits for nothing but them.

    The others have none, as a busy machine may take longer than any that a test can wait for.
    """

    def __init__(self, pool: Pool, retrievers: Mapping[Leg, Retriever], *, late: Collection[Leg]) -> None:
        super().__init__(pool, retrievers, timeout_s=DEADLINE_S)
        self._late = late
        self._graph_waits = asyncio.Event()

    async def _run(self, query: PreparedQuery, leg_query: LegQuery, leg: Leg) -> LegRanking | Degradation:
        if leg not in self._late:
            return await within_deadline(leg.value, self._search_leg(query, leg_query, leg), PATIENCE_S)
        if leg is not Leg.GRAPH:
            async with asyncio.timeout(PATIENCE_S):
                await self._graph_waits.wait()
        return await super()._run(query, leg_query, leg)

    async def _other_rankings(self, running: Mapping[Leg, Running]) -> Mapping[Leg, LegRanking]:
        if answering := [task for leg, task in running.items() if leg not in (Leg.GRAPH, *self._late)]:
            await asyncio.wait(answering)
        self._graph_waits.set()
        soon = asyncio.create_task(asyncio.sleep(0.75 * DEADLINE_S))
        told = await super()._other_rankings(running)
        assert not soon.done(), "the rest is for its walk"
        soon.cancel()
        return told


class Bench:
    """A pipeline over a real database, with parts that may be broken."""

    def __init__(self, pool: Pool, embedder: OnnxEmbedder) -> None:
        self.pool = pool
        self.embedder = embedder
        self._indexes = IndexRegistry(pool, most_bytes=2**30)
        self._model_registry = ModelRegistry(pool, models_dir())

    def legs(self) -> dict[Leg, Retriever]:
        """The real ones."""
        return {
            Leg.VECTOR: VectorRetriever(self.pool),
            Leg.BM25: Bm25Retriever(),
            Leg.GRAPH: GraphRetriever(self.pool),
        }

    async def search(
        self,
        retrievers: dict[Leg, Retriever],
        mode: Mode = Mode.ADAPTIVE,
        embedder: Embedder | None = None,
        late: Collection[Leg] = (),
        **options: Any,
    ) -> Answer:
        """One search through these legs, of which `late` ones do not answer in time."""
        embedders = Embedders(embedder) if isinstance(embedder, CachedEmbedder) else uncached(embedder or self.embedder)
        preparation = Preparation(
            pool=self.pool,
            indexes=self._indexes,
            embedders=embedders,
            profile_registry=ProfileRegistry(self.pool, self._model_registry, own=PROFILES),
            timeout_s=PATIENCE_S,
        )
        legs = ConcurrentLegs(self.pool, retrievers, timeout_s=PATIENCE_S)
        pipeline = Pipeline(
            pool=self.pool,
            preparation=preparation,
            legs=OnlyLate(self.pool, retrievers, late=late) if late else legs,
            intents=IntentPredictor(embedders, self._model_registry, timeout_s=DEADLINE_S if late else PATIENCE_S),
            rescorer_timeout_s=PATIENCE_S,
        )
        return await pipeline.search("n", SearchRequest(query=QUERY, mode=mode, **options), Stopwatch())


@pytest.fixture
async def bench(pool: Pool, embedder: OnnxEmbedder) -> Bench:
    memories = [
        MemoryInput(id="a", text="Caroline adopted Biscuit in Porto.", speaker="Caroline"),
        MemoryInput(id="b", text="Biscuit is a Maine Coon."),
    ]
    await Ingest(pool, uncached(embedder)).add("n", memories)
    return Bench(pool, embedder)


@pytest.mark.parametrize("mode", [Mode.ADAPTIVE, Mode.HYBRID])
@pytest.mark.parametrize("broken", list(Leg))
async def test_a_leg_that_raises(bench: Bench, broken: Leg, mode: Mode) -> None:
    """Its reason is one line, and it contributes nothing to the answer."""
    legs = bench.legs()
    answer = await bench.search({**legs, broken: Breaking(legs[broken])}, mode)
    assert [(each.leg, each.reason) for each in answer.degraded] == [
        (broken.value, "ConnectionResetError: the leg broke")
    ]
    assert set(answer.fused_rankings) == set(Leg) - {broken}
    assert answer.memories[0].memory.id == "a"
    assert all(broken not in found.leg_evidence for found in answer.memories)


@pytest.mark.parametrize("broken", list(Leg))
async def test_a_leg_that_is_late(bench: Bench, broken: Leg) -> None:
    """It is not awaited beyond its deadline, and its connection is not lost."""
    legs = bench.legs()
    await bench.search(legs)
    for _ in range(2):
        late = Breaking(legs[broken], sleeps_s=3_600)
        async with asyncio.timeout(60):
            answer = await bench.search({**legs, broken: late}, late=[broken])
        assert [each.leg for each in answer.degraded] == [broken.value]
        assert "deadline" in answer.degraded[0].reason
        assert answer.memories[0].memory.id == "a"
    whole = await bench.search(legs)
    assert (list(whole.degraded), set(whole.fused_rankings)) == ([], set(Leg))


@pytest.mark.parametrize("silent", [[Leg.VECTOR], [Leg.BM25], [Leg.VECTOR, Leg.BM25]])
async def test_a_leg_that_never_answers_does_not_take_the_graph_leg_along(bench: Bench, silent: list[Leg]) -> None:
    """It walks on from the others' results so far, in time for the answer."""
    legs = bench.legs()
    listening = Listening(legs[Leg.GRAPH])
    await bench.search(legs)
    some = {**legs, **{leg: Silent() for leg in silent}, Leg.GRAPH: listening}
    answer = await bench.search(some, late=silent)
    assert [each.leg for each in answer.degraded] == [leg.value for leg in silent]
    assert set(answer.fused_rankings) == set(Leg) - set(silent)
    assert set(listening.told) == {Leg.VECTOR, Leg.BM25} - set(silent)
    assert set(answer.fused_rankings[Leg.GRAPH].details["anchors_from"]) == {"vector", "bm25"} - set(silent)
    assert "a" in [hit.id for hit in answer.fused_rankings[Leg.GRAPH].hits]
    assert answer.memories[0].memory.id == "a"


async def test_the_graph_leg_hears_what_the_others_found(bench: Bench) -> None:
    """Best first, without legs that raised; and nothing when it runs alone."""
    legs = bench.legs()
    listening = Listening(legs[Leg.GRAPH])
    answer = await bench.search({**legs, Leg.GRAPH: listening})
    assert set(listening.told) == {Leg.VECTOR, Leg.BM25}
    for leg, ranking in listening.told.items():
        assert [hit.id for hit in ranking.hits][: len(answer.fused_rankings[leg].hits)] == [
            hit.id for hit in answer.fused_rankings[leg].hits
        ]
    await bench.search({**legs, Leg.VECTOR: Breaking(legs[Leg.VECTOR]), Leg.GRAPH: listening})
    assert set(listening.told) == {Leg.BM25}
    await bench.search({**legs, Leg.GRAPH: listening}, Mode.GRAPH)
    assert listening.told == {}


async def test_a_remembered_embedding_changes_nothing(bench: Bench) -> None:
    """Answers, deadlines and failures are the same as when legs wait for it."""
    legs, embedder = bench.legs(), CachedEmbedder(bench.embedder, max_entries=10, max_age_s=60)
    expected = await bench.search(legs)
    for _ in range(2):  # the first has to wait for the embedding
        answer = await bench.search(legs, embedder=embedder)
        hits, same = ({leg: r.hits for leg, r in each.fused_rankings.items()} for each in (answer, expected))
        assert (list(hits), hits) == (list(same), same)
        assert answer.prediction == expected.prediction
    listening = Listening(legs[Leg.GRAPH])
    for broken in Leg:
        for sleeps_s in (None, 3_600.0):
            some = {**legs, Leg.GRAPH: listening, broken: Breaking(legs[broken], sleeps_s=sleeps_s)}
            answer = await bench.search(some, embedder=embedder, late=[broken] if sleeps_s else [])
            assert [each.leg for each in answer.degraded] == [broken.value]
            assert ("deadline" in answer.degraded[0].reason) == (sleeps_s is not None)
            assert set(answer.fused_rankings) == set(Leg) - {broken}
            assert answer.memories[0].memory.id == "a"
    await bench.search({**legs, Leg.GRAPH: listening}, embedder=embedder)
    assert set(listening.told) == {Leg.VECTOR, Leg.BM25}
    breaking = {leg: Breaking(retriever) for leg, retriever in legs.items()}
    with pytest.raises(AllLegsFailed, match=r"vector: ConnectionResetError.*bm25: .*graph: "):
        await bench.search({**breaking}, embedder=embedder)


async def test_a_search_that_is_cancelled_leaves_nothing_running(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability, "SLOW_S", PATIENCE_S)  # or the pool may be looking after the database meanwhile
    embedder = CachedEmbedder(bench.embedder, max_entries=10, max_age_s=60)
    await bench.search(bench.legs(), embedder=embedder)  # loads the namespace, as others may need it too
    for leg in Leg:
        before, silent = asyncio.all_tasks(), Silent()
        search = asyncio.create_task(bench.search({**bench.legs(), leg: silent}, embedder=embedder))
        await silent.asked.wait()
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        assert {task for task in asyncio.all_tasks() - before if not task.done()} == set()


async def test_an_embedder_that_never_answers_takes_the_vector_leg_only(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The graph leg ranks without similarity rather than not at all. The log says so once, not for each query."""
    monkeypatch.setattr("retrieval.legs.base._logged", {})
    await bench.search(bench.legs())
    answer = await bench.search(bench.legs(), embedder=SilentEmbedder(), late=[Leg.VECTOR])
    assert [each.leg for each in answer.degraded] == ["vector"]
    assert set(answer.fused_rankings) == {Leg.BM25, Leg.GRAPH}
    assert answer.memories[0].memory.id == "a"
    answer = await bench.search(bench.legs(), Mode.GRAPH, embedder=SilentEmbedder(), late=[Leg.VECTOR])
    assert answer.memories[0].memory.id == "a"
    assert sorted(caplog.messages) == [
        "graph leg ranks without similarity: the query's vector took longer than 0.25 s",
        "leg vector failed: passed its deadline of 1 s",
    ]


async def test_learned_weights_count_only_where_every_leg_answered(bench: Bench) -> None:
    """A missing leg is no evidence."""
    legs = bench.legs()
    whole = await bench.search(legs)
    assert "the legs' results predict" in whole.weighting.reason
    assert sum(whole.weighting.weights.values()) == pytest.approx(1.0)
    for leg in Leg:
        answer = await bench.search({**legs, leg: Breaking(legs[leg])})
        assert "the legs' results predict" not in answer.weighting.reason
    assert "the legs' results predict" not in (await bench.search(legs, Mode.HYBRID)).weighting.reason


async def test_all_legs_failing_is_an_error(bench: Bench) -> None:
    """Never an empty answer; the error has the reasons."""
    legs = bench.legs()
    with pytest.raises(AllLegsFailed, match=r"vector: ConnectionResetError.*bm25: .*graph: "):
        await bench.search({leg: Breaking(retriever) for leg, retriever in legs.items()})
    for mode in (Mode.VECTOR, Mode.BM25, Mode.GRAPH):
        with pytest.raises(AllLegsFailed):
            await bench.search({**legs, Leg(mode.value): Breaking(legs[Leg(mode.value)])}, mode)


async def test_a_dead_embedder_takes_the_vector_leg_only(bench: Bench) -> None:
    """BM25 and graph answer, the classifier uses only the words."""
    answer = await bench.search(bench.legs(), embedder=DeadEmbedder())
    assert [(each.leg, each.reason) for each in answer.degraded] == [
        ("vector", f"ConnectionError: no embedder for {len(QUERY)} characters")
    ]
    assert set(answer.fused_rankings) == {Leg.BM25, Leg.GRAPH}
    assert answer.memories[0].memory.id == "a"
    assert sum(answer.prediction.probabilities.values()) == pytest.approx(1.0)
    with pytest.raises(AllLegsFailed):
        await bench.search(bench.legs(), Mode.VECTOR, embedder=DeadEmbedder())
    for mode in (Mode.BM25, Mode.GRAPH):
        assert (await bench.search(bench.legs(), mode, embedder=DeadEmbedder())).memories[0].memory.id == "a"


async def test_a_write_without_embeddings_stores_nothing(bench: Bench) -> None:
    """Half a memory would be worse than an error."""
    with pytest.raises(ConnectionError):
        await Ingest(bench.pool, uncached(DeadEmbedder())).add("n", [MemoryInput(id="c", text="Not stored.")])
    async with bench.pool.connection() as conn:
        row = await (await conn.execute("select count(*) from memory")).fetchone()
    assert row == (2,)


async def test_legs_that_do_not_count_do_not_answer_alone(bench: Bench) -> None:
    """An intent may weigh only one leg: if that fails there is no answer, while other intents have one."""
    legs = bench.legs()
    broken = {**legs, Leg.VECTOR: Breaking(legs[Leg.VECTOR])}
    with pytest.raises(AllLegsFailed, match="no leg that counts answered: vector: ConnectionResetError"):
        await bench.search(broken, profile="lone", intent=Intent.PREFERENCE)
    assert (await bench.search(broken, profile="lone", intent=Intent.RELATIONSHIP)).memories
    assert (await bench.search(legs, profile="lone", intent=Intent.PREFERENCE)).memories
