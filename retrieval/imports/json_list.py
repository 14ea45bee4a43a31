"""A list of objects in one JSON document: rows with the usual names, memories as the API takes them, or chat turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from retrieval.errors import InvalidInput
from retrieval.imports.columns import USUAL_NAMES, columns_of, has_usual_names, memory_of_row
from retrieval.imports.files import ImportFile
from retrieval.imports.json_values import keys_of_parts, values_at
from retrieval.imports.jsonl import memory_in_api_form
from retrieval.imports.records import (
    ImportContext,
    Records,
    RepeatableIds,
    SkippedRecord,
    SourceRecord,
    mapping_of,
    refused,
)

FILES = ("*.json",)

_SAID_BY = ("user", "human", "assistant", "ai")


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether it is a list of objects with a text by one of the usual names, or by the name that the user gives."""
    names = {context.columns["text"]} if "text" in context.columns else USUAL_NAMES["text"]
    return any(keys & {f"item.{name}" for name in names} for keys in keys_of_parts(source, FILES, context))


def read(source: ImportFile, context: ImportContext) -> Records:
    """The objects, as what the first one is. A list of a chat model's messages is one session."""
    ids = RepeatableIds("json")
    for part in source.parts(*FILES):
        session, number, usual = part.name or source.name or "chat", 0, False
        try:
            for _, value in values_at(part.decoded(context), {"item"}):
                number += 1
                row = mapping_of(value)
                usual = usual or (number == 1 and (bool(context.columns) or has_usual_names(row)))
                place = part.place(f"item {number}")
                yield (
                    _of_row(row, place, session, number, context, ids) if usual else _as_api(row, place, number, ids)
                )
        except InvalidInput as exc:
            yield refused(part.place(f"after item {number}"), exc)


def _of_row(
    row: Mapping[str, Any], place: str, session: str, number: int, context: ImportContext, ids: RepeatableIds
) -> SourceRecord | SkippedRecord:
    if {"role", "content"} <= row.keys() and "session_id" not in columns_of(row, context.columns):
        if row["role"] not in _SAID_BY or not row["content"]:
            return SkippedRecord(place=place, reason="system and tool messages")
        row = {**row, "session_id": session, "position": number - 1}
    return memory_of_row(row, place, None, context, ids)


def _as_api(row: Mapping[str, Any], place: str, number: int, ids: RepeatableIds) -> SourceRecord:
    raw = msgspec.json.encode(row)
    return SourceRecord(place=place, memory=memory_in_api_form(raw, number, ids), size=len(raw))
