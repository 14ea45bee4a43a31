"""DiscordChatExporter's JSON: a channel with its messages, one file or a zip of several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from retrieval.imports.files import FilePart, ImportFile
from retrieval.imports.json_values import keys_of_parts, records_of, values_at
from retrieval.imports.records import (
    ImportContext,
    Record,
    Records,
    SkippedRecord,
    Turns,
    mapping_of,
    source_id,
    text_of,
)

FILES = ("*.json",)

_SPOKEN = {"Default", "Reply", "ThreadStarterMessage", "0", "19", "21"}
"""Types of messages that people write, by the exporter's names or Discord's numbers."""


class _Channel(NamedTuple):
    """The current channel; it comes before its messages."""

    id: str = ""
    name: str = ""
    guild: str = ""


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether it has a guild and a channel."""
    return any("id" in keys["guild"] & keys["channel"] for keys in keys_of_parts(source, FILES))


def read(source: ImportFile, context: ImportContext) -> Records:
    """The messages, channel by channel; a day is a session."""
    turns = Turns("discord")  # a channel may come in several files
    for part in source.parts(*FILES):
        values = _messages(part, context)
        yield from records_of(part, "message", values, lambda value, at: [_message(*value, at, turns, context)])


def _messages(part: FilePart, context: ImportContext) -> Iterator[tuple[Mapping[str, Any], _Channel]]:
    channel = _Channel()
    for where, value in values_at(part, {"guild", "channel", "messages.item"}, context):
        entry = mapping_of(value)
        if where == "guild":
            channel = channel._replace(guild=text_of(entry.get("name")))
        elif where == "channel":
            channel = channel._replace(id=str(entry.get("id")), name=text_of(entry.get("name")))
        else:
            yield entry, channel


def _message(message: Mapping[str, Any], channel: _Channel, place: str, turns: Turns, context: ImportContext) -> Record:
    author = mapping_of(message.get("author"))
    kind = str(message.get("type", "Default"))
    if author.get("isBot"):
        return SkippedRecord(place=place, reason="message of a bot")
    if kind not in _SPOKEN:
        return SkippedRecord(place=place, reason=f"notice ({kind})")
    text = text_of(message.get("content")).strip()
    if not text:
        return SkippedRecord(place=place, reason="message without text")
    created_at = context.time(message.get("timestamp"))
    return turns.record(
        place,
        id=source_id("discord", channel.id, message.get("id")),
        text=text,
        speaker=text_of(author.get("nickname")) or text_of(author.get("name")),
        session_id=source_id("discord", channel.id, context.day(created_at)),
        created_at=created_at,
        metadata={"server": channel.guild, "channel": channel.name},
    )
