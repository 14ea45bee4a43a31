"""The thread that embeds queries: order, failures, waiters that leave, its end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from retrieval.embedding.worker_thread import QueryThread


async def test_it_answers_each_in_its_turn_from_its_own_thread() -> None:
    names: set[str] = set()

    def double(number: int) -> int:
        names.add(threading.current_thread().name)
        return 2 * number

    thread = QueryThread(double, name="doubles")
    assert await asyncio.gather(*(thread(number) for number in range(200))) == [2 * number for number in range(200)]
    assert names == {"doubles"}
    await thread.aclose()


async def test_a_failure_is_the_callers() -> None:
    thread: QueryThread[int, int] = QueryThread(lambda number: 1 // number, name="divides")
    answers = await asyncio.gather(thread(0), thread(1), return_exceptions=True)
    assert [type(answers[0]), answers[1]] == [ZeroDivisionError, 1]
    await thread.aclose()


async def test_who_leaves_while_waiting_is_left_out() -> None:
    """And who leaves while it is computed disturbs nobody."""
    begun, go_on, seen = threading.Event(), threading.Event(), list[int]()

    def slowly(number: int) -> int:
        seen.append(number)
        begun.set()
        go_on.wait(5)
        return number

    thread = QueryThread(slowly, name="slow")
    tasks = [asyncio.ensure_future(thread(number)) for number in range(3)]
    await asyncio.to_thread(begun.wait, 5)
    for task in tasks[:2]:
        task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    assert await tasks[2] == 2
    assert all(task.cancelled() for task in tasks[:2])
    assert seen == [0, 2]
    await thread.aclose()


async def test_its_end() -> None:
    """What is computed is answered, who waits for a turn is cancelled, who comes later is refused."""
    begun, go_on = threading.Event(), threading.Event()

    def slowly(number: int) -> int:
        begun.set()
        go_on.wait(5)
        return number

    thread = QueryThread(slowly, name="slow")
    first, second = asyncio.ensure_future(thread(1)), asyncio.ensure_future(thread(2))
    await asyncio.to_thread(begun.wait, 5)
    closing = asyncio.create_task(thread.aclose())
    await asyncio.sleep(0)
    go_on.set()
    await closing
    assert await first == 1
    with pytest.raises(asyncio.CancelledError):
        await second
    with pytest.raises(RuntimeError, match="slow is closed"):
        await thread(3)
    await thread.aclose()


def test_a_loop_that_ended_meanwhile_leaves_it_alive() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slowly(number: int) -> int:
        begun.set()
        go_on.wait(5)
        return number

    thread = QueryThread(slowly, name="slow")

    async def leave() -> None:
        asyncio.ensure_future(thread(1)).add_done_callback(lambda _: None)
        await asyncio.to_thread(begun.wait, 5)

    asyncio.run(leave())
    go_on.set()

    async def stay() -> int:
        return await thread(2)

    assert asyncio.run(stay()) == 2
    asyncio.run(thread.aclose())
