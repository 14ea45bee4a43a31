"""A memory as the search for duplicates sees it."""

from __future__ import annotations

from typing import NamedTuple

from retrieval.types.memory import Kind


class Said(NamedTuple):
    """A memory to be compared."""

    id: str
    text: str
    speaker: str | None = None
    title: str | None = None
    kind: Kind = "memory"
