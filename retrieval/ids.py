"""Ids that Trivet gives out."""

from __future__ import annotations

import os
import time
from uuid import UUID


def uuid7() -> str:
    """A time-ordered id (RFC 9562, version 7): 48 bits of milliseconds, 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = int.from_bytes(milliseconds.to_bytes(6, "big") + os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(UUID(int=value))
