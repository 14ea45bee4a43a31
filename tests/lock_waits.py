"""Waiting until a database lock keeps a task waiting."""

from __future__ import annotations

import asyncio
from typing import Any, LiteralString

import psycopg

WAITING: LiteralString = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
)


async def has_to_wait(task: asyncio.Task[Any], database_url: str) -> None:
    """Wait until a lock keeps the task waiting."""
    with psycopg.connect(database_url, autocommit=True) as watcher:
        while not task.done() and watcher.execute(WAITING).fetchone() == (0,):  # noqa: ASYNC110 - none tells us
            await asyncio.sleep(0.01)
    assert not task.done()
