"""Inner loops in C, compiled when Trivet is installed: plain functions on arrays, called through ctypes.

What a loop computes is said where it is called from; here is only how a function is found and how arrays reach it. The
library is built for a few levels of the processor (see `build.py`), and the best that this one has is loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from native.levels import LEVELS, file_name

_no_bytes = (ctypes.c_char * 0).from_buffer

Array = ctypes.c_void_p
"""The type of an argument that is an array: pass what `at` gives of it."""


def function(name: str, *arguments: Any, result: Any = None, is_long: bool = False) -> Callable[..., Any]:
    """A function of the library.

    Args:
        name: its name in C.
        arguments: ctypes of its arguments; `Array` for arrays.
        result: ctypes of what it returns.
        is_long: whether it takes so long that other threads should go on meanwhile. A short one keeps the
            interpreter's lock: letting it go again and again keeps those that wait for it from ever getting it.

    Raises:
        ImportError: the library was not built.
    """
    found = getattr(_library(ctypes.CDLL if is_long else ctypes.PyDLL), name)
    found.argtypes, found.restype = arguments, result
    return found  # type: ignore[no-any-return]  # ctypes does not say


def at(array: NDArray[Any]) -> int:
    """Where an array begins. The caller sees to its type, that it is contiguous and that it outlives the call."""
    try:
        return ctypes.addressof(_no_bytes(array))  # type: ignore[arg-type]  # NumPy does not say that it is a buffer
    except TypeError:  # an array that must not be changed; NumPy's own way takes six times as long
        return array.ctypes.data


@cache
def _library(kind: type[ctypes.CDLL]) -> ctypes.CDLL:
    least = _load(LEVELS[0], kind)
    best = least.trivet_level()
    return _load(LEVELS[best], kind) if best else least


def _load(level: str, kind: type[ctypes.CDLL]) -> ctypes.CDLL:
    path = Path(__file__).parent / file_name(level)
    if not path.exists():
        raise ImportError(f"{path.name} was not compiled: install Trivet with pip, or run `make`")
    return kind(str(path))
