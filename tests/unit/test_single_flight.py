"""Work requested by several callers is done once."""

from __future__ import annotations

import asyncio

import pytest

from retrieval.tasks import SingleFlight


async def value_of(gate: asyncio.Event, value: int | Exception) -> int:
    await gate.wait()
    if isinstance(value, Exception):
        raise value
    return value


async def test_it_is_there_until_it_is_done() -> None:
    """By its key alone, and gone when the waiting callers continue."""
    flights: SingleFlight[str, int] = SingleFlight()
    gate = asyncio.Event()
    started = flights.start("a", value_of(gate, 7))
    assert flights.get("a") is started
    assert flights.get("b") is None
    gate.set()
    assert await started == 7
    assert flights.get("a") is None


async def test_a_failure_reaches_who_waits_and_is_forgotten() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    gate = asyncio.Event()
    gate.set()
    with pytest.raises(ValueError, match="no such thing"):
        await flights.start("a", value_of(gate, ValueError("no such thing")))
    assert flights.get("a") is None
    assert await flights.start("a", value_of(gate, 1)) == 1


async def test_closing_cancels_all_of_it() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    started = [flights.start(key, value_of(asyncio.Event(), 1)) for key in "ab"]
    await asyncio.sleep(0)
    await flights.aclose()
    assert all(each.cancelled() for each in started)
    assert flights.get("a") is None
