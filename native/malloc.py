"""glibc malloc settings that return freed memory to the system; no-ops with any other C library."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8

_MMAP_FROM_BYTES = 16 * 1024 * 1024
"""Larger than any array of a search of a million memories: the system clears pages whenever it maps them."""

_FREE_BYTES = 32 * 1024 * 1024
"""Free memory to keep at the heap's end; with the default of 128 kB the system would clear pages just as often."""


def trim_heap() -> None:
    """Return the free pages of the heap to the system.

    Loading a namespace allocates several times what it keeps, and glibc holds free pages below a block in use.
    """
    trim = _libc_function("malloc_trim")
    if trim is not None:
        trim(0)


def limit_free_memory() -> None:
    """Make glibc keep less freed memory, for a long-running process with many threads.

    Large blocks are mapped separately, so that freeing them returns them to the system: by default glibc raises that
    threshold whenever such a block is freed. Threads share one heap instead of having one each; `trim_heap` returns
    what is free in it. For the cost see docs/decisions/0024-mixed-traffic.md.
    """
    set_option = _libc_function("mallopt")
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _MMAP_FROM_BYTES)
        set_option(_M_TRIM_THRESHOLD, _FREE_BYTES)
        set_option(_M_ARENA_MAX, 1)


def _libc_function(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
