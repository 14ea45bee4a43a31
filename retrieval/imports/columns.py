"""Fields of a memory from rows whose columns have the usual names, or names that the user gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from retrieval.errors import InvalidInput
from retrieval.imports.records import (
    ImportContext,
    RepeatableIds,
    SourceRecord,
    memory_record,
    object_in,
    refused,
    text_of_part,
)

USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "text": ("text", "content", "message", "body", "page_content", "memory", "note", "fact", "value"),
    "id": ("id", "uuid", "message_id", "memory_id"),
    "kind": ("kind",),
    "title": ("title", "subject"),
    "speaker": ("speaker", "author", "from", "sender", "username", "user", "name", "role"),
    "session_id": (
        "session_id",
        "session",
        "conversation_id",
        "conversation",
        "thread_id",
        "thread",
        "channel",
        "chat",
    ),
    "position": ("position", "index", "turn"),
    "created_at": ("created_at", "timestamp", "datetime", "date", "time", "created", "sent_at"),
    "expires_at": ("expires_at", "expires", "expiration_date"),
    "tags": ("tags", "labels", "categories"),
    "supersedes": ("supersedes",),
}
"""Column names by field, the likeliest first; case is ignored, and spaces and hyphens count as underscores."""

_LABELS = ("title", "speaker", "session_id")

_SLASHED = re.compile(r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})(?:[ ,T]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?")


def has_usual_names(row: Mapping[str, Any]) -> bool:
    """Whether a row has a text under one of the usual names, and some field under a name other than the API's."""
    columns = columns_of(row, {})
    return "text" in columns and any(_plain(column) != field for field, column in columns.items())


def columns_of(row: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    """The row's columns by field: those given, and the likeliest of the others.

    Raises InvalidInput if a field or a column that was given does not exist.
    """
    for field, column in given.items():
        if field not in USUAL_NAMES:
            raise InvalidInput(f"{field!r} is no field; there are {', '.join(USUAL_NAMES)}", loc=("map",))
        if column not in row:
            raise InvalidInput(f"there is no column {column!r}, but {', '.join(map(repr, row))}", loc=("map",))
    taken = set(given.values())
    by_name = {_plain(column): column for column in row if column not in taken}
    guessed = {
        field: next((by_name[name] for name in names if name in by_name), None)
        for field, names in USUAL_NAMES.items()
        if field not in given
    }
    return dict(given) | {field: column for field, column in guessed.items() if column is not None}


def memory_of_row(
    row: Mapping[str, Any], place: str, line: int | None, context: ImportContext, ids: RepeatableIds
) -> SourceRecord:
    """The memory of a row; columns that are not fields go into its metadata."""
    try:
        columns = columns_of(row, context.columns)
        for field in _LABELS:
            if field in columns and _is_nested(row[columns[field]]):
                del columns[field]  # such as an author with an id: it goes into the metadata
        values = {field: row[column] for field, column in columns.items() if row[column] not in (None, "")}
        fields: dict[str, Any] = {
            **{name: str(values[name]) for name in _LABELS if name in values},
            "text": _text(values.get("text", "")),
            "supersedes": _supersedes(values.get("supersedes")),
            "created_at": _time(values.get("created_at"), context),
            "expires_at": _time(values.get("expires_at"), context),
            "tags": _tags(values.get("tags")),
            "position": _position(values.get("position")),
        }
    except InvalidInput as exc:
        return refused(place, exc, line)
    chat = "speaker" in fields or "session_id" in fields
    others = {key: value for key, value in row.items() if key not in columns.values() and value not in (None, "")}
    own = others.get("metadata")
    if isinstance(own, str):
        own = object_in(own)
    if isinstance(own, Mapping):
        others = {**own, **{key: value for key, value in others.items() if key != "metadata"}}
    parts = [str(values.get(name)) for name in ("created_at", "session_id", "speaker", "text")]
    return memory_record(
        place,
        line,
        id=str(values["id"]) if "id" in values else ids.next(*parts),
        kind=values.get("kind", "message" if chat else "memory"),
        metadata=others,
        **fields,
    )


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _text(value: Any) -> str:
    """A value as text; the parts of a message, as chat models have them, are joined."""
    if isinstance(value, list) and value and all(isinstance(part, str | Mapping) for part in value):
        return "\n".join(filter(None, map(text_of_part, value)))
    if _is_nested(value):
        raise InvalidInput("is no text; --map names another column", loc=("text",))
    return str(value)


def _is_nested(value: Any) -> bool:
    return isinstance(value, list | Mapping)


def _time(value: Any, context: ImportContext) -> datetime | None:
    slashed = _SLASHED.fullmatch(value.strip()) if isinstance(value, str) else None
    if slashed is None:
        return context.time(value)
    if context.day_first is None:
        raise InvalidInput(f"{value!r} begins with the day or the month: say --day-first or --month-first")
    first, second, year, hour, minute, seconds = (int(part or 0) for part in slashed.groups())
    day, month = (first, second) if context.day_first else (second, first)
    try:
        return context.localized(datetime(year, month, day, hour, minute, seconds))
    except ValueError as exc:
        raise InvalidInput(f"cannot read the time {value!r}") from exc


def _tags(value: Any) -> list[str]:
    tags = value if isinstance(value, list) else re.split(r"[,;]", value) if isinstance(value, str) else []
    return [str(tag).strip() for tag in tags if str(tag).strip()]


def _supersedes(value: Any) -> str | list[str] | None:
    return [str(old) for old in value] if isinstance(value, list) else None if value is None else str(value)


def _position(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (ValueError, TypeError, OverflowError) as exc:
        raise InvalidInput(f"{value!r} is no position", loc=("position",)) from exc
