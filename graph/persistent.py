"""Objects that consist of arrays, so that they can be written to a file and restored from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class Persistent:
    """Consists of the attributes that `PARTS` names: arrays or None, integers, and other objects of this kind.

    Attributes:
        COPIED: names of arrays that may be modified in place and are therefore copied before they are written.
    """

    PARTS: ClassVar[tuple[str, ...]] = ()
    COPIED: ClassVar[tuple[str, ...]] = ()

    def arrays(self) -> dict[str, Any]:
        """All its arrays, without copying, except for those in `COPIED`."""
        found: dict[str, Any] = {}
        for name in self.PARTS:
            part = getattr(self, name)
            if isinstance(part, Persistent):
                found |= named(part.arrays(), name)
            elif part is not None:
                found[name] = np.array([part]) if isinstance(part, int) else part
        return found | {name: found[name].copy() for name in self.COPIED if name in found}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Use the `arrays` of another instance from now on."""
        for name in self.PARTS:
            part = getattr(self, name)
            if isinstance(part, Persistent):
                part.restore(part_of(arrays, name))
            else:
                setattr(self, name, arrays[name].item() if isinstance(part, int) else arrays.get(name))

    @property
    def nbytes(self) -> int:
        """Its approximate size in bytes."""
        return sum(getattr(getattr(self, name), "nbytes", 0) for name in self.PARTS)


def named(arrays: Mapping[str, T], part: str) -> dict[str, T]:
    """The arrays of a part, with its name as prefix."""
    return {f"{part}.{name}": array for name, array in arrays.items()}


def part_of(arrays: Mapping[str, T], part: str) -> dict[str, T]:
    """The inverse of `named`, given the arrays of all parts."""
    prefix = f"{part}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
