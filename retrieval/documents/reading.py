"""The result of reading a file."""

from __future__ import annotations

import msgspec

from retrieval.errors import InvalidInput
from retrieval.types.document import MAX_DOCUMENT_CHARS, MAX_TITLE_CHARS


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A text, HTML's as Markdown, and its title; or why nothing could be read."""

    text: str = ""
    title: str | None = None
    error: str | None = None


def check_length(text: str) -> None:
    """Raise InvalidInput if a text is too long for a document."""
    if len(text) > MAX_DOCUMENT_CHARS:
        raise InvalidInput(f"has a text of {len(text):,} characters, more than {MAX_DOCUMENT_CHARS:,}; split it")


def storable(reading: Reading) -> Reading:
    """A reading with the beginning of its title and without characters that the database cannot store.

    A file's fonts and references may produce any.
    """
    text, title = (
        given.replace("\x00", "").encode("utf-8", "replace").decode()
        for given in (reading.text, (reading.title or "")[:MAX_TITLE_CHARS])
    )
    return msgspec.structs.replace(reading, text=text, title=title or None)
