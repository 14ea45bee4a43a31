"""Threads of C that compute what coroutines wait for.

A thread of Python's has to get the interpreter's lock before it computes and again to say that it is done, and waits
for it as long as the event loop is busy. These have no use for it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable
from itertools import count
from typing import Any

from native import Array, function

_open = function("trivet_crew_open", ctypes.c_int64, ctypes.c_int, result=ctypes.c_void_p)
_close = function("trivet_crew_close", Array, is_long=True)

_TICKET = 8
_TICKETS_AT_ONCE = 64


class Crew:
    """Some threads, for the event loop that runs when it is made."""

    def __init__(self, threads: int) -> None:
        """Start them.

        Raises:
            MemoryError: there are no more threads to be had.
        """
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, tuple[asyncio.Future[None], Any]] = {}
        self._tickets = count()
        self._told, self._telling = os.pipe()
        self._crew = _open(threads, self._telling)
        if self._crew is None:
            os.close(self._told)
            os.close(self._telling)
            raise MemoryError("no memory for more threads")
        self._loop.add_reader(self._told, self._settle)

    async def __call__(self, begin: Callable[[int, int], None], arrays: object) -> None:
        """Have something computed.

        Args:
            begin: hands it to the crew, given its address and a ticket.
            arrays: what is computed on; kept until it is done, however long the caller waits.

        Raises:
            RuntimeError: the crew is closed.
        """
        if self._crew is None:
            raise RuntimeError("the crew is closed")
        ticket, done = next(self._tickets), self._loop.create_future()
        begin(self._crew, ticket)
        self._waiting[ticket] = done, arrays
        await done

    def close(self) -> None:
        """End the threads; who still waits is cancelled."""
        crew, self._crew = self._crew, None
        if crew is None:
            return
        self._loop.remove_reader(self._told)
        _close(crew)
        os.close(self._told)
        os.close(self._telling)
        for done, _ in self._waiting.values():
            done.cancel()
        self._waiting.clear()

    def _settle(self) -> None:
        for ticket in memoryview(os.read(self._told, _TICKET * _TICKETS_AT_ONCE)).cast("q"):
            done, _ = self._waiting.pop(ticket)
            if not done.done():
                done.set_result(None)
