"""Threads of C that coroutines wait for: many at a time, callers that leave, their end."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from native.crew import Crew
from retrieval.mirror.quantised import Quantised

ROWS = 100_000


@pytest.fixture(scope="module")
def many() -> Quantised:
    vectors = np.random.default_rng(0).normal(size=(ROWS, 384)).astype(np.float32)
    quantised = Quantised(ROWS)
    quantised.put(np.arange(ROWS), vectors, np.empty(0, np.int64), np.empty((0, 384), np.float32), version=0)
    return quantised


async def test_who_leaves_disturbs_nobody(many: Quantised) -> None:
    """What they had asked is computed to its end, in arrays that are still there."""
    mask, query = np.ones(ROWS, np.bool_), np.ones(384, np.float32)
    crew = Crew(2)
    tasks = [asyncio.create_task(many.nearest(mask, query, 10, breadth=100, crew=crew)) for _ in range(30)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    expected = (await many.nearest(mask, query, 10, breadth=100))[0].tolist()
    assert all(isinstance(answer, asyncio.CancelledError) for answer in answers[::2])
    for answer in answers[1::2]:
        assert not isinstance(answer, BaseException)
        assert answer[0].tolist() == expected
    crew.close()


async def test_its_end(many: Quantised) -> None:
    """Who still waits is cancelled, who comes later is refused, and nothing is left behind."""
    before = threading.active_count()
    mask, query = np.ones(ROWS, np.bool_), np.ones(384, np.float32)
    crew = Crew(1)
    tasks = [asyncio.create_task(many.nearest(mask, query, 10, breadth=ROWS, crew=crew)) for _ in range(20)]
    await asyncio.sleep(0)
    crew.close()
    crew.close()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(answer, asyncio.CancelledError) for answer in answers)
    with pytest.raises(RuntimeError, match="closed"):
        await many.nearest(mask, query, 10, breadth=100, crew=crew)
    assert threading.active_count() == before
