"""An open Trivet on a database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from retrieval.engine import Trivet
from retrieval.settings import Settings


@pytest.fixture
async def trivet(database_url: str) -> AsyncIterator[Trivet]:
    """The engine with its shipped models; it packs from 30 memories on."""
    async with Trivet.open(Settings(database_url=database_url, pool_size=4, bm25_tail_docs=30)) as engine:
        yield engine
