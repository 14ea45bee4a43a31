"""DiscordChatExporter's JSON: a channel with its messages, one file or a zip of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retrieval.errors import InvalidInput
from retrieval.imports.files import ImportFile
from retrieval.imports.json_values import keys_of_parts, values_at
from retrieval.imports.records import (
    ImportContext,
    Positions,
    Records,
    SkippedRecord,
    SourceRecord,
    mapping_of,
    memory_record,
    refused,
    source_id,
    text_of,
)

FILES = ("*.json",)

_SPOKEN = {"Default", "Reply", "ThreadStarterMessage", "0", "19", "21"}
"""Types of messages that people write, by the exporter's names or Discord's numbers."""


@dataclass(kw_only=True)
class _Channel:
    """The channel that is being read; it comes before its messages."""

    positions: Positions
    id: str = ""
    name: str = ""
    guild: str = ""


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether it has a guild and a channel."""
    return any({"guild.id", "channel.id"} <= keys for keys in keys_of_parts(source, FILES, context))


def read(source: ImportFile, context: ImportContext) -> Records:
    """The messages, channel by channel; a day is a session."""
    positions = Positions()  # a channel may come in several files
    for part in source.parts(*FILES):
        channel, number = _Channel(positions=positions), 0
        try:
            for where, value in values_at(part.decoded(context), {"guild", "channel", "messages.item"}):
                if where == "guild":
                    channel.guild = text_of(mapping_of(value).get("name"))
                elif where == "channel":
                    channel.id = str(mapping_of(value).get("id"))
                    channel.name = text_of(mapping_of(value).get("name"))
                else:
                    number += 1
                    yield _message(mapping_of(value), channel, part.place(f"message {number}"), context)
        except InvalidInput as exc:
            yield refused(part.place(f"after message {number}"), exc)


def _message(
    message: Mapping[str, Any], channel: _Channel, place: str, context: ImportContext
) -> SourceRecord | SkippedRecord:
    author = mapping_of(message.get("author"))
    kind = str(message.get("type", "Default"))
    if author.get("isBot"):
        return SkippedRecord(place=place, reason="message of a bot")
    if kind not in _SPOKEN:
        return SkippedRecord(place=place, reason=f"notice ({kind})")
    text = text_of(message.get("content")).strip()
    if not text:
        return SkippedRecord(place=place, reason="message without text")
    try:
        created_at = context.time(message.get("timestamp"))
    except InvalidInput as exc:
        return refused(place, exc)
    session = source_id("discord", channel.id, context.day(created_at))
    metadata = {"server": channel.guild, "channel": channel.name}
    return memory_record(
        place,
        id=source_id("discord", channel.id, message.get("id")),
        text=text,
        kind="message",
        speaker=text_of(author.get("nickname")) or text_of(author.get("name")) or None,
        session_id=session,
        position=channel.positions.next(session),
        created_at=created_at,
        tags=["discord"],
        metadata={name: value for name, value in metadata.items() if value} or None,
    )
