"""Singular and plural."""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    """A number with its noun in the singular or plural.

    >>> counted(1, "memory", "memories"), counted(0, "memory", "memories")
    ('1 memory', '0 memories')
    """
    return f"{number} {one if number == 1 else many}"
