"""A thread that computes what coroutines wait for, one thing at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, TypeVar

_HAND_OVER_S = 0.0005
"""How long who asks lets the thread begin: what is asked of other processes meanwhile would take its processor."""

Given = TypeVar("Given")
Result = TypeVar("Result")


class QueryThread(Generic[Given, Result]):
    """Calls a function for one coroutine after the other.

    An executor hands over with locks and two futures, which takes the event loop three times as long.
    """

    def __init__(self, function: Callable[[Given], Result], *, name: str) -> None:
        """Start it; `function` is called in the thread alone."""
        self._function = function
        self._waiting: SimpleQueue[tuple[Given, asyncio.Future[Result], threading.Lock] | None] = SimpleQueue()
        self._is_idle = self._is_closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def __call__(self, given: Given) -> asyncio.Future[Result]:
        """What the function returns or raises; it is on its way before anybody waits for it.

        Raises:
            RuntimeError: the thread is closed.
        """
        if self._is_closed:
            raise RuntimeError(f"the thread {self._thread.name} is closed")
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        begun = threading.Lock()
        begun.acquire()
        is_idle, self._is_idle = self._is_idle, False
        self._waiting.put((given, future, begun))
        if is_idle:
            begun.acquire(timeout=_HAND_OVER_S)
        return future

    async def aclose(self) -> None:
        """End the thread after what it computes; who still waits for a turn is cancelled."""
        if not self._is_closed:
            self._is_closed = True
            self._waiting.put(None)
        await asyncio.to_thread(self._thread.join)

    def _next(self) -> tuple[Given, asyncio.Future[Result], threading.Lock] | None:
        self._is_idle = self._waiting.empty()
        return self._waiting.get()

    def _work(self) -> None:
        while (asked := self._next()) is not None:
            given, future, begun = asked
            begun.release()
            if self._is_closed:
                _tell(future, future.cancel)
            elif not future.cancelled():
                try:
                    result = self._function(given)
                except BaseException as exc:
                    _tell(future, _settle, future, future.set_exception, exc)
                else:
                    _tell(future, _settle, future, future.set_result, result)


def _tell(future: asyncio.Future[Result], callback: Callable[..., object], *args: object) -> None:
    with suppress(RuntimeError):  # its loop is closed: nobody waits any more
        future.get_loop().call_soon_threadsafe(callback, *args)


def _settle(future: asyncio.Future[Result], settle: Callable[[Result], None], value: Result) -> None:
    if not future.done():
        settle(value)
