"""An open Trivet on the test's own database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest

from retrieval.engine import Trivet
from tests import command
from tests.command import Cli
from tests.serving import settings_for


@pytest.fixture
async def trivet(database_url: str) -> AsyncIterator[Trivet]:
    """The engine with its shipped models; it packs from 30 memories on."""
    async with Trivet.open(settings_for(database_url, bm25_tail_docs=30)) as engine:
        yield engine


@pytest.fixture
def cli(database_url: str) -> Cli:
    """The command line on that database."""
    return partial(command.trivet, database_url)
