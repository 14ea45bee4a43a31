"""Numbers as Postgres arrays."""

from __future__ import annotations

from collections.abc import Iterable


def array_text(numbers: Iterable[float]) -> str:
    """Numbers or truth values as the text of an array: many times faster than adapting a list.

    >>> array_text([1, -2]), array_text([0.5]), array_text([True]), array_text([])
    ('{1,-2}', '{0.5}', '{True}', '{}')
    """
    return "{" + ",".join(map(str, numbers)) + "}"
