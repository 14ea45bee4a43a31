"""glibc malloc settings that return freed memory to the system; no-ops with any other C library."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8

_MMAP_FROM_BYTES = 16 * 1024 * 1024
"""More than an array has that a search makes of a million memories: the system clears pages whenever it maps them."""

_FREE_BYTES = 32 * 1024 * 1024
"""What may be free at the heap's end; by default 128 kB, and the system would have to clear pages as often."""


def trim_heap() -> None:
    """Return the free pages of the heap to the system.

    Loading a namespace allocates several times what remains of it, and glibc keeps pages below a block in use.
    """
    trim = _libc_function("malloc_trim")
    if trim is not None:
        trim(0)


def limit_free_memory() -> None:
    """Have glibc keep less of what is freed, for a process that runs for long and has many threads.

    Large blocks are mapped separately, so that freeing them returns them to the system: by default glibc raises that
    threshold whenever such a block is freed. And threads share a heap, where each would have its own; `trim_heap`
    returns what is free in it. docs/decisions/0024-mixed-traffic.md has what that costs.
    """
    set_option = _libc_function("mallopt")
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _MMAP_FROM_BYTES)
        set_option(_M_TRIM_THRESHOLD, _FREE_BYTES)
        set_option(_M_ARENA_MAX, 1)


def _libc_function(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
