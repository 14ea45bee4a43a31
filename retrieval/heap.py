"""The C library's memory: what is freed goes back to the system. Elsewhere than on glibc nothing here does anything."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

_MMAP_THRESHOLD = -3  # of mallopt
_OF_ITS_OWN_FROM = 1024 * 1024


def give_back() -> None:
    """Let the C library return what it keeps for later; glibc keeps all that lies below something in use.

    Reading a namespace takes several times the memory that is left of it.
    """
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


def keep_large_apart() -> None:
    """Let each block from a megabyte on be mapped for itself, so that it is given back when it is freed.

    By default glibc takes larger and larger ones from its heap, and what lies below others is not given back: 35 MB of
    a process that has read 100,000 memories.
    """
    set_option = _function("mallopt")
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, _OF_ITS_OWN_FROM)


def _function(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
