"""C threads that compute while coroutines wait.

A Python thread needs the GIL before it computes and again to report its result, and waits for it as long as the event
loop is busy. These threads never take it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from itertools import count
from typing import Any

from native import function

_open = function("trivet_worker_pool_open", "qi", "P")
_close = function("trivet_worker_pool_close", "P")

_TICKET_BYTES = 8
_TICKETS_PER_READ = 64


class WorkerPool:
    """A fixed number of threads that serve the event loop running when the pool is created."""

    def __init__(self, threads: int) -> None:
        """Start the threads; raises MemoryError if that fails."""
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, tuple[asyncio.Future[None], Any]] = {}
        self._tickets = count()
        self._read_fd, self._notify_fd = os.pipe()
        self._pool = _open(threads, self._notify_fd)
        if self._pool is None:
            os.close(self._read_fd)
            os.close(self._notify_fd)
            raise MemoryError("no memory for more threads")
        self._loop.add_reader(self._read_fd, self._resolve_finished)

    async def run(self, submit: Callable[[int, int], None], arrays: object) -> None:
        """Run a job and wait for it; raises RuntimeError if the pool is closed.

        `submit` submits the job, given the pool's address and a ticket. `arrays` are what the job reads and writes;
        they are kept alive until it is done, even if the caller is cancelled.
        """
        if self._pool is None:
            raise RuntimeError("the worker pool is closed")
        ticket, done = next(self._tickets), self._loop.create_future()
        submit(self._pool, ticket)
        self._waiting[ticket] = done, arrays
        await done

    def close(self) -> None:
        """Stop the threads and cancel the callers that still wait."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        self._loop.remove_reader(self._read_fd)
        _close(pool)
        os.close(self._read_fd)
        os.close(self._notify_fd)
        for done, _ in self._waiting.values():
            done.cancel()
        self._waiting.clear()

    def _resolve_finished(self) -> None:
        for ticket in memoryview(os.read(self._read_fd, _TICKET_BYTES * _TICKETS_PER_READ)).cast("q"):
            done, _ = self._waiting.pop(ticket)
            if not done.done():
                done.set_result(None)
