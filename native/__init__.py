"""Kernels in C, compiled at installation: plain functions on arrays, called through ctypes.

Callers document what a kernel computes; this module only looks functions up and passes arrays to them. The library is
built for a few processor levels (see `build.py`), and the best one that this processor supports is loaded.

There is no fallback in Python: it would be slow, and code that never runs soon becomes wrong.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from native.cpu import LEVELS, SOURCES, file_name

# Only some versions of NumPy declare an array as a buffer in their types.
_no_bytes: Callable[[Any], ctypes.Array[ctypes.c_char]] = (ctypes.c_char * 0).from_buffer

_ADVICE = """
Trivet cannot run without this library, which is compiled when Trivet is installed. In a checkout run `make` with a
target such as `make serve`, elsewhere `pip install --force-reinstall --no-deps trivet` on this machine: a wheel is of
one platform."""

_TYPES = {"P": ctypes.c_void_p, "q": ctypes.c_int64, "i": ctypes.c_int, "d": ctypes.c_double}


class LibraryError(OSError):
    """The compiled library is missing, or does not match this machine or this version of Trivet."""


def function(name: str, arguments: str, result: str = "") -> Callable[..., Any]:
    """Look up a function of the library by its name in C; its types are letters as in `struct`.

    `P`, for arrays and structures, takes a result of `address`, bytes or None.

    Calls keep the GIL, as they are short: releasing it again and again would starve the other threads. A call raises
    MemoryError if the kernel returns -1, which means out of memory. Raises LibraryError if the library or the function
    is missing.
    """
    found: Any = _found(_library(), name)
    found.argtypes = [_TYPES[letter] for letter in arguments]
    found.restype = _TYPES[result] if result else None
    if result:
        found.errcheck = _checked
    return found  # type: ignore[no-any-return]  # untyped in ctypes


def _checked(result: Any, *_: object) -> Any:
    if result == -1:
        raise MemoryError("a kernel is out of memory")
    return result


def address(array: NDArray[Any]) -> int:
    """The address of an array's first element; the caller ensures type and lifetime. ValueError if not contiguous."""
    try:
        return ctypes.addressof(_no_bytes(array))
    except TypeError:  # not contiguous, or read-only
        interface = array.__array_interface__  # half the time of `array.ctypes.data`
        if interface["strides"] is not None:
            raise ValueError(f"an array of shape {array.shape} and strides {array.strides} is not contiguous") from None
        first: int = interface["data"][0]
        return first


def structure(*fields: NDArray[Any] | int | None) -> bytes:
    """A structure in C of pointers, given as arrays or None, and integers of 64 bits; valid as long as the arrays."""
    numbers = (each if isinstance(each, int) else 0 if each is None else address(each) for each in fields)
    return struct.pack(f"{len(fields)}q", *numbers)


def is_old_x86() -> bool:
    """Whether this is an x86 processor without AVX2, on which other packages' libraries may not run."""
    return len(LEVELS) > 1 and function("trivet_cpu_level", "", "i")() == 0


@cache
def _library() -> ctypes.PyDLL:
    least = _load(LEVELS[0])
    best = _found(least, "trivet_cpu_level")()
    return _load(LEVELS[best]) if best else least


def _load(level: str) -> ctypes.PyDLL:
    path = Path(__file__).parent / file_name(level)
    if not path.exists():
        raise LibraryError(f"{path} is missing.{_ADVICE}")
    if SOURCES.encode() not in path.read_bytes():  # after an update of the checkout
        raise LibraryError(f"{path} was compiled from other C files than those beside it.{_ADVICE}")
    try:
        return ctypes.PyDLL(str(path))
    except OSError as exc:
        machine = f"{platform.system()} on {platform.machine()}"
        raise LibraryError(f"{path} cannot be loaded by this Python for {machine}: {exc}.{_ADVICE}") from exc


def _found(library: ctypes.PyDLL, name: str) -> Any:
    try:
        return getattr(library, name)
    except AttributeError as exc:
        raise LibraryError(f"{library._name} is of another version of Trivet: it has no {name}.{_ADVICE}") from exc
