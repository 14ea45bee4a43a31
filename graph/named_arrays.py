"""Arrays by name, so that what consists of them can be written to a file and made of them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def named(arrays: Mapping[str, T], part: str) -> dict[str, T]:
    """The arrays of a part of something, by names that tell it from other parts."""
    return {f"{part}.{name}": array for name, array in arrays.items()}


def part_of(arrays: Mapping[str, T], part: str) -> dict[str, T]:
    """The inverse of `named`, given the arrays of all parts."""
    prefix = f"{part}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
