"""The graph of the reference memory server of the Model Context Protocol: its file, or the result of `read_graph`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrieval.imports.files import ImportFile
from retrieval.imports.json_values import Keys, keys_in, keys_of_parts, objects_at, records_of
from retrieval.imports.records import (
    ImportContext,
    Records,
    SkippedRecord,
    content_id,
    list_of,
    memory_record,
    relation_record,
    text_naming,
    text_of,
)

FILES = ("*.json", "*.jsonl")

_PLACES = ("entities.item", "relations.item", "")
_SIGNS = ({"entityType", "observations"}, {"from", "relationType", "to"})


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether there are entities with observations, or relations between them."""
    return any(_places(keys) for keys in keys_of_parts(source, FILES))


def _places(keys: Keys) -> set[str]:
    """Where entities and relations are; nothing if there are none."""
    return {place for place in _PLACES for names in _SIGNS if keys[place] >= names}


def read(source: ImportFile, context: ImportContext) -> Records:
    """A memory for each observation of an entity and for each relation; the file has no times."""
    for part in source.parts(*FILES):
        places = _places(keys_in(part))
        yield from records_of(part, "entry", objects_at(part, places or {""}, context), _memories)


def _memories(entry: Mapping[str, Any], place: str) -> Records:
    if "relationType" in entry:
        ends = (text_of(entry.get(name)) for name in ("from", "relationType", "to"))
        yield relation_record(place, "mcp", *ends)
        return
    name = text_of(entry.get("name")).strip()
    said = [text for each in list_of(entry.get("observations")) if (text := text_of(each).strip())]
    if not name or not said:
        yield SkippedRecord(place=place, reason="entity without observations")
        return
    for text in said:
        yield memory_record(
            place,
            id=content_id("mcp", name, text),
            text=text_naming(name, text),
            entities=[{"name": name, "type": text_of(entry.get("entityType")).lower() or "thing"}],
        )
