"""What a reader makes of a file."""

from __future__ import annotations

import msgspec


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A text, HTML's as Markdown, and its title; or why nothing could be read."""

    text: str = ""
    title: str | None = None
    error: str | None = None


def storable(text: str) -> str:
    """A text without what the database cannot hold; fonts and references of a file may stand for anything."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
