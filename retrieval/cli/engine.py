"""Runs something on an engine of this process's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from retrieval.engine import Trivet
from retrieval.settings import Settings

T = TypeVar("T")


def with_engine(settings: Settings, use: Callable[[Trivet], Awaitable[T]]) -> T:
    """Open an engine, use it, close it.

    Raises:
        TrivetError: the engine cannot be opened, or `use` failed.
    """

    async def call() -> T:
        async with Trivet.open(settings) as engine:
            return await use(engine)

    return asyncio.run(call())
