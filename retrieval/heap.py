"""Memory that was freed, given back to the system."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Let the C library return what it keeps for later; glibc keeps all that lies below something in use.

    Reading a namespace takes several times the memory that is left of it. Elsewhere than on glibc it does nothing.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
