"""C threads that coroutines wait for: many concurrent jobs, cancelled callers, closing."""

from __future__ import annotations

import asyncio

import numpy as np
import psutil
import pytest

from native.worker_pool import WorkerPool
from retrieval.index.quantized_vectors import QuantizedVectors
from tests.processes import until

ROWS = 100_000


@pytest.fixture(scope="module")
def many() -> QuantizedVectors:
    vectors = np.random.default_rng(0).normal(size=(ROWS, 384)).astype(np.float32)
    quantised = QuantizedVectors(ROWS)
    quantised.put(np.arange(ROWS), vectors, np.empty(0, np.int64), np.empty((0, 384), np.float32), version=0)
    return quantised


async def test_a_cancelled_caller_disturbs_no_other(many: QuantizedVectors) -> None:
    """Its job still runs to the end, in arrays that are still alive."""
    mask, query = np.ones(ROWS, np.bool_), np.ones(384, np.float32)
    workers = WorkerPool(2)
    tasks = [asyncio.create_task(many.nearest(mask, query, 10, breadth=100, workers=workers)) for _ in range(30)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    expected = (await many.nearest(mask, query, 10, breadth=100))[0].tolist()
    assert all(isinstance(answer, asyncio.CancelledError) for answer in answers[::2])
    for answer in answers[1::2]:
        assert not isinstance(answer, BaseException)
        assert answer[0].tolist() == expected
    workers.close()


async def test_closing(many: QuantizedVectors) -> None:
    """Waiting callers are cancelled, later ones are refused, and no thread is left."""
    before = threads()
    mask, query = np.ones(ROWS, np.bool_), np.ones(384, np.float32)
    workers = WorkerPool(1)
    tasks = [asyncio.create_task(many.nearest(mask, query, 10, breadth=ROWS, workers=workers)) for _ in range(20)]
    await asyncio.sleep(0)
    workers.close()
    workers.close()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(answer, asyncio.CancelledError) for answer in answers)
    with pytest.raises(RuntimeError, match="closed"):
        await many.nearest(mask, query, 10, breadth=100, workers=workers)
    until(lambda: threads() <= before)  # the system lists a thread for a moment after its end


def threads() -> set[int]:
    """The threads of this process, those in C too, by the system's numbers."""
    return {thread.id for thread in psutil.Process().threads()}
