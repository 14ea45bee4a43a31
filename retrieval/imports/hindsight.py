"""Hindsight's facts, as returned by listing a bank's memories or by a recall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrieval.imports.files import ImportFile
from retrieval.imports.json_values import Keys, keys_in, keys_of_parts, objects_at, records_of
from retrieval.imports.records import (
    ImportContext,
    Record,
    Records,
    SkippedRecord,
    content_id,
    list_of,
    mapping_of,
    memory_record,
    text_of,
)

FILES = ("*.json", "*.jsonl")

_LISTS = ("items.item", "results.item", "memories.item", "memory_units.item", "facts.item", "item", "")
_SIGNS = {"fact_type", "mentioned_at", "occurred_start", "occurred_end"}
_KEPT = ("context", "document_id", "chunk_id", "occurred_start", "occurred_end", "mentioned_at")


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether there is a list of objects with a text and the type or the times of a fact."""
    return any(_list(keys) is not None for keys in keys_of_parts(source, FILES))


def _list(keys: Keys) -> str | None:
    """Where the facts are; None if there are none."""
    return next((place for place in _LISTS if "text" in keys[place] and keys[place] & _SIGNS), None)


def read(source: ImportFile, context: ImportContext) -> Records:
    """The valid facts; invalidated ones are left out."""
    for part in source.parts(*FILES):
        found = _list(keys_in(part))
        facts = objects_at(part, {_LISTS[0] if found is None else found}, context)
        yield from records_of(part, "fact", facts, lambda fact, place: [_fact(fact, place, context)])


def _fact(entry: Mapping[str, Any], place: str, context: ImportContext) -> Record:
    text = text_of(entry.get("text")).strip()
    if not text:
        return SkippedRecord(place=place, reason="fact without text")
    if entry.get("state", "valid") != "valid":
        return SkippedRecord(place=place, reason=f"fact that is {entry['state']}")
    type_ = text_of(entry.get("fact_type")) or text_of(entry.get("type"))
    times = (entry.get(name) for name in ("occurred_start", "mentioned_at", "date", "created_at"))
    created_at = context.time(next(filter(None, times), None))
    metadata = {**mapping_of(entry.get("metadata")), **{name: entry[name] for name in _KEPT if entry.get(name)}}
    return memory_record(
        place,
        id=str(entry.get("id") or content_id("hindsight", text, created_at)),
        text=text,
        created_at=created_at,
        tags=[str(tag) for tag in (*list_of(entry.get("tags")), *filter(None, [type_])) if tag],
        entities=[{"name": name} for name in _entities(entry.get("entities"))],
        metadata=metadata,
    )


def _entities(value: Any) -> list[str]:
    """The entities' distinct names; they come as names, as objects, or separated by commas."""
    items = value.split(",") if isinstance(value, str) else list_of(value)
    objects = [item if isinstance(item, Mapping) else {"name": item} for item in items]
    names = [text_of(each.get("canonical_name") or each.get("name")).strip() for each in objects]
    return list(dict.fromkeys(filter(None, names)))
