"""Runs work on an engine in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from retrieval.engine import Trivet
from retrieval.errors import NamespaceNotFound, NotFound
from retrieval.settings import Settings

T = TypeVar("T")

MOST_NAMES = 10
"""Most namespaces that an error names."""


def with_engine(settings: Settings, use: Callable[[Trivet], Awaitable[T]]) -> T:
    """Open an engine, use it, close it.

    Raises:
        TrivetError: the engine cannot be opened, or `use` failed; if a namespace does not exist, the error names
            those that do.
    """

    async def call() -> T:
        async with Trivet.open(settings) as engine:
            try:
                return await use(engine)
            except NamespaceNotFound as exc:
                names = [each.name for each in await engine.list_namespaces()]
                others = ", ".join(names[:MOST_NAMES]) + ", …" * (len(names) > MOST_NAMES)
                raise NotFound(f"{exc}; " + (f"choose one by -n: {others}" if names else "there is none yet")) from exc

    return asyncio.run(call())
