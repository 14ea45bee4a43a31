"""What a reader makes of a file."""

from __future__ import annotations

import msgspec

from retrieval.errors import InvalidInput
from retrieval.types.document import MAX_DOCUMENT_CHARS


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A text, HTML's as Markdown, and its title; or why nothing could be read."""

    text: str = ""
    title: str | None = None
    error: str | None = None


def check_length(text: str) -> None:
    """Raises InvalidInput if a text is longer than that of a document may be."""
    if len(text) > MAX_DOCUMENT_CHARS:
        raise InvalidInput(f"has a text of {len(text):,} characters, more than {MAX_DOCUMENT_CHARS:,}; split it")


def storable(reading: Reading) -> Reading:
    """A reading without what the database cannot hold; fonts and references of a file may stand for anything."""
    text, title = (
        given.replace("\x00", "").encode("utf-8", "replace").decode() for given in (reading.text, reading.title or "")
    )
    return msgspec.structs.replace(reading, text=text, title=title or None)
