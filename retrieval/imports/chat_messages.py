"""Messages in the format of chat models (`role`, `content`), alone or as the `messages` of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from retrieval.imports.columns import columns_of, memory_of_row
from retrieval.imports.records import (
    ImportContext,
    Record,
    Records,
    RepeatableIds,
    SkippedRecord,
    list_of,
    mapping_of,
    text_of_part,
)

MESSAGE = {"role", "content"}
"""Keys by which a chat model's message is recognised."""

_SAID_BY = ("user", "human", "assistant", "ai")

_OF_ALL = ("session_id", "created_at", "tags")
"""Fields that messages inherit from their conversation."""


def is_message(row: Mapping[str, Any]) -> bool:
    """Whether an object is a message of a chat model."""
    return row.keys() >= MESSAGE


def is_conversation(row: Mapping[str, Any]) -> bool:
    """Whether an object has `messages` of a chat model."""
    messages = list_of(row.get("messages"))
    return bool(messages) and is_message(mapping_of(messages[0]))


def read_message(
    row: Mapping[str, Any], place: str, line: int | None, context: ImportContext, ids: RepeatableIds
) -> Record:
    """A turn; skipped unless it is from user or assistant and has a text."""
    if row.get("role") not in _SAID_BY or _says_nothing(row.get("content")):
        return SkippedRecord(place=place, reason="system and tool messages")
    return memory_of_row(row, place, line, context, ids)


def read_conversation(
    row: Mapping[str, Any], place: str, line: int | None, context: ImportContext, ids: RepeatableIds
) -> Records:
    """The turns of one conversation: a session with its id, or else one derived from its content."""
    columns = columns_of(row, {})
    session = row[columns["session_id"]] if "session_id" in columns else row.get("id")
    shared = {field: row[columns[field]] for field in _OF_ALL if field in columns}
    shared["session_id"] = session or ids.next(msgspec.json.encode(row["messages"]).decode())
    for position, value in enumerate(list_of(row["messages"])):
        message = mapping_of(value)
        own = columns_of(message, {})
        given = {field: known for field, known in {**shared, "position": position}.items() if field not in own}
        yield read_message({**given, **message}, f"{place}, message {position + 1}", line, context, ids)


def _says_nothing(content: Any) -> bool:
    """Whether it is blank, or no part has a text: images, tool calls and their results."""
    if isinstance(content, list):
        return not any(text_of_part(part).strip() for part in content)
    return not str(content or "").strip()
