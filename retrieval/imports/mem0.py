"""mem0's memories, from `get_all` or an export: one JSON document, or an object per line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from retrieval.imports.files import ImportFile
from retrieval.imports.json_values import Keys, keys_in, keys_of_parts, records_of, values_at
from retrieval.imports.records import (
    ImportContext,
    Record,
    Records,
    SkippedRecord,
    content_id,
    list_of,
    mapping_of,
    memory_record,
    relation_record,
    text_of,
)

FILES = ("*.json", "*.jsonl")

_LISTS = ("results.item", "memories.item", "item", "")
_RELATIONS = "relations.item"
_ABOUT = ("user_id", "agent_id", "app_id", "run_id", "actor_id", "role", "attributed_to")
"""Fields that say who or what a memory is about; kept in its metadata."""


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether there is a list of objects with a `memory`, and a hash, a user or an agent."""
    return any(_list(keys) is not None for keys in keys_of_parts(source, FILES))


def _list(keys: Keys) -> str | None:
    """Where the memories are; None if there are none."""
    return next((each for each in _LISTS if "memory" in keys[each] and keys[each] & {"hash", *_ABOUT}), None)


def read(source: ImportFile, context: ImportContext) -> Records:
    """The memories, and the relations of mem0's graph."""
    for part in source.parts(*FILES):
        found = _list(keys_in(part))
        places = {""} if found == "" else {found or _LISTS[0], _RELATIONS}
        values = values_at(part, places, context)
        yield from records_of(part, "memory", values, lambda value, place: [_record(*value, place, context)])


def _record(where: str, value: Any, place: str, context: ImportContext) -> Record:
    entry = mapping_of(value)
    return _relation(entry, place) if where == _RELATIONS else _memory(entry, place, context)


def _memory(entry: Mapping[str, Any], place: str, context: ImportContext) -> Record:
    text = text_of(entry.get("memory")).strip()
    if not text:
        return SkippedRecord(place=place, reason="memory without text")
    created_at = context.time(entry.get("created_at"))
    about = {name: entry[name] for name in _ABOUT if entry.get(name)}
    return memory_record(
        place,
        id=str(entry.get("id") or content_id("mem0", text, created_at, about)),
        text=text,
        created_at=created_at,
        expires_at=_end(entry.get("expiration_date"), context),
        tags=[str(name) for name in list_of(entry.get("categories")) if name],
        metadata={**mapping_of(entry.get("metadata")), **about},
    )


def _end(value: Any, context: ImportContext) -> datetime | None:
    """When a memory expires: mem0 shows it until the end of its expiration day, in UTC."""
    try:
        day = date.fromisoformat(text_of(value))
    except ValueError:
        return context.time(value)
    return datetime.combine(day, time.max, UTC)


def _relation(entry: Mapping[str, Any], place: str) -> Record:
    """An edge of mem0's graph as a memory; one list calls its end `target`, another `destination`."""
    source, type_ = text_of(entry.get("source")), text_of(entry.get("relationship") or entry.get("relation"))
    target = text_of(entry.get("target") or entry.get("destination"))
    return relation_record(place, "mem0", source, type_, target)
