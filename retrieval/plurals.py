"""Words that agree with how many there are of something."""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    """How many there are of something.

    >>> counted(1, "memory", "memories"), counted(0, "memory", "memories")
    ('1 memory', '0 memories')
    """
    return f"{number} {one if number == 1 else many}"
