"""A thread that runs a function for coroutines, one call at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, TypeVar

_HAND_OVER_S = 0.0005
"""How long the caller lets an idle thread start: processes that it queries next would take its CPU."""

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class QueryThread(Generic[Argument, Result]):
    """Calls a function for one coroutine after the other.

    An executor hands over with locks and two futures, which takes the event loop three times as long.
    """

    def __init__(self, function: Callable[[Argument], Result], *, name: str) -> None:
        """Start the thread; `function` is only called there."""
        self._function = function
        self._waiting: SimpleQueue[tuple[Argument, asyncio.Future[Result], threading.Lock] | None] = SimpleQueue()
        self._is_idle = self._is_closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def __call__(self, argument: Argument) -> asyncio.Future[Result]:
        """Queue a call; it starts before it is awaited.

        Raises:
            RuntimeError: the thread is closed.
        """
        if self._is_closed:
            raise RuntimeError(f"the thread {self._thread.name} is closed")
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        started = threading.Lock()
        started.acquire()
        is_idle, self._is_idle = self._is_idle, False
        self._waiting.put((argument, future, started))
        if is_idle:
            started.acquire(timeout=_HAND_OVER_S)
        return future

    async def aclose(self) -> None:
        """Stop the thread after the running call; waiting calls are cancelled."""
        if not self._is_closed:
            self._is_closed = True
            self._waiting.put(None)
        await asyncio.to_thread(self._thread.join)

    def _next(self) -> tuple[Argument, asyncio.Future[Result], threading.Lock] | None:
        self._is_idle = self._waiting.empty()
        return self._waiting.get()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            argument, future, started = call
            started.release()
            if self._is_closed:
                _tell(future, future.cancel)
            elif not future.cancelled():
                try:
                    result = self._function(argument)
                except BaseException as exc:
                    _tell(future, _settle, future, future.set_exception, exc)
                else:
                    _tell(future, _settle, future, future.set_result, result)


def _tell(future: asyncio.Future[Result], callback: Callable[..., object], *args: object) -> None:
    with suppress(RuntimeError):  # its loop is closed, so nothing waits for it
        future.get_loop().call_soon_threadsafe(callback, *args)


def _settle(future: asyncio.Future[Result], settle: Callable[[Result], None], value: Result) -> None:
    if not future.done():
        settle(value)
