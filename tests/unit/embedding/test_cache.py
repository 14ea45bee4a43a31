"""The cache of query embeddings: recency, age, sharing, failures, cancellation."""

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import count

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval.embedding.cache import CachedEmbedder, Embedding
from retrieval.timings import Stopwatch


class CountingEmbedder:
    """Gives every query a new vector, when `gate` is open."""

    model = "counting"

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None
        self.closed = False

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        self.queries.append(text)
        number = len(self.queries)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return np.array([number, 0], dtype=np.float32)

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 2), dtype=np.float32)

    def fragment_share(self, text: str) -> float:
        return len(text) / 10

    def count_pieces(self, text: str) -> int:
        return len(text)

    async def aclose(self) -> None:
        self.closed = True


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def inner() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cached(inner: CountingEmbedder, clock: Clock) -> CachedEmbedder:
    return CachedEmbedder(inner, max_entries=2, max_age_s=60, clock=clock)


async def test_a_repeated_query_is_computed_once(cached: CachedEmbedder, inner: CountingEmbedder) -> None:
    first = await cached.embed_query("a")
    second = await cached.embed_query("a")
    np.testing.assert_array_equal(first, second)
    assert inner.queries == ["a"]
    assert (cached.hits, cached.misses) == (1, 1)
    assert cached.model == "counting"


async def test_the_least_recently_used_leaves_first(cached: CachedEmbedder, inner: CountingEmbedder) -> None:
    for query in ("a", "b", "a", "c", "a", "b"):
        await cached.embed_query(query)
    assert inner.queries == ["a", "b", "c", "b"]


async def test_an_old_vector_is_computed_anew(cached: CachedEmbedder, inner: CountingEmbedder, clock: Clock) -> None:
    await cached.embed_query("a")
    clock.now_s = 59.9
    await cached.embed_query("a")
    assert len(inner.queries) == 1
    clock.now_s = 60
    await cached.embed_query("a")
    assert len(inner.queries) == 2


async def test_use_does_not_make_a_vector_younger(
    cached: CachedEmbedder, inner: CountingEmbedder, clock: Clock
) -> None:
    for clock.now_s in (0, 40, 80):
        await cached.embed_query("a")
    assert len(inner.queries) == 2


async def test_queries_at_once_share_one_computation(cached: CachedEmbedder, inner: CountingEmbedder) -> None:
    inner.gate.clear()
    waiters = [asyncio.create_task(cached.embed_query("a")) for _ in range(5)]
    await asyncio.sleep(0)
    inner.gate.set()
    vectors = await asyncio.gather(*waiters)
    assert inner.queries == ["a"]
    assert all(vector is vectors[0] for vector in vectors)
    assert (cached.hits, cached.misses) == (4, 1)


async def test_a_cancelled_waiter_leaves_the_others(cached: CachedEmbedder, inner: CountingEmbedder) -> None:
    """Even the one that started the computation."""
    inner.gate.clear()
    starter = asyncio.create_task(cached.embed_query("a"))
    other = asyncio.create_task(cached.embed_query("a"))
    await asyncio.sleep(0)
    starter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starter
    inner.gate.set()
    assert (await other)[0] == 1
    assert inner.queries == ["a"]


async def test_a_failure_reaches_all_and_is_not_remembered(cached: CachedEmbedder, inner: CountingEmbedder) -> None:
    inner.failure = RuntimeError("provider is down")
    results = await asyncio.gather(*(cached.embed_query("a") for _ in range(3)), return_exceptions=True)
    assert [str(result) for result in results] == ["provider is down"] * 3
    inner.failure = None
    assert (await cached.embed_query("a"))[0] == 2


async def test_a_failure_that_nobody_waits_for_is_silent(cached: CachedEmbedder, inner: CountingEmbedder) -> None:
    inner.failure = RuntimeError("provider is down")
    inner.gate.clear()
    waiter = asyncio.create_task(cached.embed_query("a"))
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    inner.gate.set()
    for _ in range(10):
        await asyncio.sleep(0)
    inner.failure = None
    assert (await cached.embed_query("a"))[0] == 2


async def test_a_shared_vector_cannot_be_written(cached: CachedEmbedder) -> None:
    vector = await cached.embed_query("a")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 7


async def test_no_entries_means_nothing_is_remembered(inner: CountingEmbedder) -> None:
    cached = CachedEmbedder(inner, max_entries=0, max_age_s=60)
    await cached.embed_query("a")
    await cached.embed_query("a")
    assert len(inner.queries) == 2


async def test_documents_pass_through(cached: CachedEmbedder) -> None:
    assert (await cached.embed_documents(["a", "b"])).shape == (2, 2)
    assert (cached.hits, cached.misses) == (0, 0)


async def test_what_two_models_compute_at_once_is_timed_once(
    inner: CountingEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a namespace without the default embedder, where the classifier needs that one's vector, too."""
    monkeypatch.setattr("time.perf_counter_ns", partial(next, count(step=1_000_000)))
    stopwatch = Stopwatch()
    models = [CachedEmbedder(inner, max_entries=2, max_age_s=60) for _ in range(2)]
    embeddings = [Embedding(model, "a", stopwatch) for model in models]  # each looks at its cache, then computes
    for each in embeddings:
        await each()
    assert stopwatch.timings_ms() == {"embed": (2 - 1) + (8 - 3), "total": 9}


async def test_closing_cancels_what_is_under_way(cached: CachedEmbedder, inner: CountingEmbedder) -> None:
    inner.gate.clear()
    waiter = asyncio.create_task(cached.embed_query("a"))
    await asyncio.sleep(0)
    await cached.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert inner.closed


@pytest.mark.parametrize(("max_entries", "max_age_s"), [(-1, 60), (5, -1)])
def test_limits_are_not_negative(max_entries: int, max_age_s: float) -> None:
    with pytest.raises(ValueError, match="negative"):
        CachedEmbedder(CountingEmbedder(), max_entries=max_entries, max_age_s=max_age_s)
