"""Ids that Trivet gives out."""

from __future__ import annotations

import os
import time
from uuid import UUID


def uuid7() -> str:
    """A time-ordered id (RFC 9562, version 7): 60 bits of time, to a quarter of a microsecond, and 62 random bits."""
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction, noise = (rest << 12) // 1_000_000, int.from_bytes(os.urandom(8)) >> 2
    return str(UUID(int=milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0x2 << 62 | noise))
