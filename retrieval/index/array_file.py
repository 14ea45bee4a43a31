"""A file of named arrays, mapped into memory: opening it copies nothing, and processes that map it share its pages.

A header, then the arrays one after another; a checksum reveals a damaged file, the length a truncated one.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

_MAGIC = b"TRIVETIX"
_PREFIX = Struct("<8sQQ")
"""Magic, length of the file, and the checksum of all that follows."""

_HEADER_LENGTH = Struct("<Q")

_FIXED = _PREFIX.size + _HEADER_LENGTH.size

_ALIGNMENT = 4_096
_CHUNK = 1 << 24


class DamagedFile(ValueError):
    """`write` has not completed the file, or it is damaged; the message says why."""


class ArraySpec(msgspec.Struct, frozen=True):
    """Where an array lies in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int


class ExtendedArray(NamedTuple):
    """The first `rows` of an array; `unset` where it has fewer."""

    array: NDArray[Any]
    rows: int
    unset: Any

    @classmethod
    def from_array(cls, array: NDArray[Any] | ExtendedArray) -> ExtendedArray:
        """Wrap an array that is not extended."""
        return array if isinstance(array, ExtendedArray) else cls(array, len(array), 0)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array in the file."""
        return self.rows, *self.array.shape[1:]

    @property
    def nbytes(self) -> int:
        """Bytes of the array in the file."""
        return math.prod(self.shape) * self.array.itemsize

    def copy(self) -> ExtendedArray:
        """This with a copy of the array."""
        return self._replace(array=self.array.copy())

    def parts(self) -> Iterator[bytes]:
        """Copies of its bytes, in chunks."""
        flat = self.array[: self.rows].reshape(-1).view(np.uint8).data
        for first in range(0, len(flat), _CHUNK):
            yield bytes(flat[first : first + _CHUNK])
        rest = np.full(min(_CHUNK, self.nbytes - len(flat)) // self.array.itemsize, self.unset, self.array.dtype)
        for first in range(len(flat), self.nbytes, _CHUNK):
            yield rest.tobytes()[: self.nbytes - first]


FileArray = NDArray[Any] | ExtendedArray


class Header(msgspec.Struct, frozen=True):
    """The header of a file; `about` is JSON from the caller."""

    about: msgspec.Raw
    arrays: list[ArraySpec]


def write(path: Path, about: bytes, arrays: Mapping[str, FileArray]) -> None:
    """Write contiguous arrays, and JSON about them, to a new file that only its owner may read.

    Arrays may be modified meanwhile: each element then has its old or its new value. Raises OSError.
    """
    specs, offset = [], 0
    for name, given in arrays.items():
        array = ExtendedArray.from_array(given)
        offset += -offset % _ALIGNMENT
        specs.append(ArraySpec(name, array.array.dtype.str, array.shape, offset))
        offset += array.nbytes
    header = msgspec.json.encode(Header(msgspec.Raw(about), specs))
    header += b" " * (-(_FIXED + len(header)) % _ALIGNMENT)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(_PREFIX.pack(b"", 0, 0))  # an incomplete file has no magic
        checksum, length = xxhash.xxh3_64(), 0
        for part in _parts(header, specs, arrays):
            checksum.update(part)
            length += file.write(part)
        file.seek(0)
        file.write(_PREFIX.pack(_MAGIC, _PREFIX.size + length, checksum.intdigest()))


def _parts(header: bytes, specs: list[ArraySpec], arrays: Mapping[str, FileArray]) -> Iterator[bytes]:
    """Copies of the bytes after the prefix, so that the checksum is of exactly what is written."""
    yield _HEADER_LENGTH.pack(len(header)) + header
    end = 0
    for spec in specs:
        yield bytes(spec.offset - end)
        array = ExtendedArray.from_array(arrays[spec.name])
        yield from array.parts()
        end = spec.offset + array.nbytes


def read(path: Path) -> tuple[bytes, dict[str, NDArray[Any]]]:
    """Map a file; returns the JSON about the arrays, and the arrays.

    The arrays are copy-on-write: changes affect neither the file nor other processes. Raises DamagedFile, and OSError
    if the file cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        prefix = file.read(_PREFIX.size)
        if len(prefix) < _PREFIX.size:
            raise DamagedFile("it is too short")
        magic, length, checksum = _PREFIX.unpack(prefix)
        if magic != _MAGIC:
            raise DamagedFile("it is of another kind, or was never completed")
        actual = os.fstat(file.fileno()).st_size
        if actual != length:
            raise DamagedFile(f"it has {actual} bytes, not {length}")
        mapped = mmap.mmap(file.fileno(), length, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    if xxhash.xxh3_64_intdigest(memoryview(mapped)[_PREFIX.size :]) != checksum:
        raise DamagedFile("its checksum is wrong")
    mapped.madvise(mmap.MADV_DONTNEED)  # pages that are not in use yet do not count as this process's memory
    (header_length,) = _HEADER_LENGTH.unpack_from(mapped, _PREFIX.size)
    body = _FIXED + header_length
    header = msgspec.json.decode(memoryview(mapped)[_FIXED:body], type=Header)
    return bytes(header.about), {
        spec.name: np.ndarray(spec.shape, spec.dtype, mapped, body + spec.offset) for spec in header.arrays
    }
