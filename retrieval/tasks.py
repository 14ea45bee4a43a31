"""Ending tasks."""

from __future__ import annotations

import asyncio
from typing import Any


async def cancel(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until they have ended, however they do."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
