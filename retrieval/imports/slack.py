"""Slack's export: a zip with a folder per channel, a file per day, and the users' names beside them."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from retrieval.errors import InvalidInput
from retrieval.imports.files import FilePart, ImportFile
from retrieval.imports.json_values import keys_of_parts, objects_at
from retrieval.imports.records import (
    ImportContext,
    Record,
    Records,
    SkippedRecord,
    Turns,
    list_of,
    mapping_of,
    refused,
    source_id,
    text_of,
)

_DAYS = "*/[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].json"
_SPOKEN = {"", "thread_broadcast", "me_message", "file_share", "file_comment"}
"""Subtypes of messages that people write; others tell of joins, topics and bots."""

_REFERENCE = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


@dataclass(kw_only=True)
class _Workspace:
    """Names by id, and the numbering of turns."""

    users: dict[str, str] = field(default_factory=dict)
    channels: dict[str, str] = field(default_factory=dict)
    turns: Turns = field(default_factory=lambda: Turns("slack"))


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether it is a zip with files of days whose messages have a `ts`."""
    return source.is_zip and any("ts" in keys["item"] for keys in keys_of_parts(source, [_DAYS]))


def read(source: ImportFile, context: ImportContext) -> Records:
    """The messages, channel by channel and day by day; a thread is a separate session."""
    workspace = _Workspace()
    for file, names in (("users.json", workspace.users), *((name, workspace.channels) for name in _CHANNELS)):
        for part in source.parts(file):
            try:
                for entry in objects_at(part, {"item"}, context):
                    names[text_of(entry.get("id"))] = _name(entry)
            except InvalidInput as exc:
                yield refused(part.place(), exc)
    for part in source.parts(_DAYS):
        yield from _day(part, workspace, context)


_CHANNELS = ("channels.json", "groups.json", "mpims.json")


def _name(entry: Mapping[str, Any]) -> str:
    """The display name of a user, or a channel's name."""
    profile = mapping_of(entry.get("profile"))
    names = (profile.get("display_name"), profile.get("real_name"), entry.get("real_name"), entry.get("name"))
    return next((name for name in names if isinstance(name, str) and name), text_of(entry.get("id")))


def _day(part: FilePart, workspace: _Workspace, context: ImportContext) -> Records:
    """A day's messages, in order of their times."""
    folder, _, file = part.name.rpartition("/")
    channel, day = folder.rpartition("/")[2], file.removesuffix(".json")
    messages: list[Mapping[str, Any]] = []
    try:
        messages.extend(objects_at(part, {"item"}, context))
    except InvalidInput as exc:
        yield refused(part.place(f"after message {len(messages)}"), exc)
    for message in sorted(messages, key=_seconds):
        yield _message(message, (channel, day), part.place(f"ts {message.get('ts')}"), workspace, context)


def _seconds(message: Mapping[str, Any]) -> float:
    try:
        return float(message.get("ts") or 0)
    except (TypeError, ValueError):
        return 0.0


def _message(
    message: Mapping[str, Any], spot: tuple[str, str], place: str, workspace: _Workspace, context: ImportContext
) -> Record:
    subtype = text_of(message.get("subtype"))
    if message.get("bot_id") or subtype == "bot_message":
        return SkippedRecord(place=place, reason="message of a bot")
    if message.get("type", "message") != "message" or subtype not in _SPOKEN:
        return SkippedRecord(place=place, reason=f"notice ({subtype or message.get('type')})")
    text = _readable(text_of(message.get("text")), workspace).strip()
    if not text:
        text = "\n".join(text_of(mapping_of(file).get("title")) for file in list_of(message.get("files"))).strip()
    if not text:
        return SkippedRecord(place=place, reason="message without text")
    try:
        created_at = context.time(message.get("ts"))
    except InvalidInput as exc:
        return refused(place, exc)
    channel, day = spot
    thread = text_of(message.get("thread_ts"))
    session = source_id("slack", channel, "thread", thread) if thread else source_id("slack", channel, day)
    user = text_of(message.get("user"))
    return workspace.turns.record(
        place,
        id=source_id("slack", channel, message.get("ts"), user),
        text=text,
        speaker=workspace.users.get(user) or _name(mapping_of(message.get("user_profile"))) or user,
        session_id=session,
        created_at=created_at,
        metadata={"channel": channel},
    )


def _readable(text: str, workspace: _Workspace) -> str:
    """The text with names for mentions, and links as people write them."""

    def shown(match: re.Match[str]) -> str:
        target, label = match[1], match[2]
        if target.startswith("@"):
            return "@" + (workspace.users.get(target[1:]) or label or target[1:])
        if target.startswith("#"):
            return "#" + (label or workspace.channels.get(target[1:]) or target[1:])
        if target.startswith("!"):
            return label or "@" + target[1:].partition("^")[0]
        return f"{label} ({target})" if label and label != target else target

    return html.unescape(_REFERENCE.sub(shown, text))
