"""One JSON document: a list of rows, of memories as the API takes them, of chat messages or conversations; or one."""

from __future__ import annotations

import msgspec

from retrieval.errors import InvalidInput
from retrieval.imports.chat_messages import MESSAGE, is_conversation, is_message, read_conversation, read_message
from retrieval.imports.columns import USUAL_NAMES, columns_of, has_usual_names, memory_of_row
from retrieval.imports.files import ImportFile
from retrieval.imports.json_values import keys_in, keys_of_parts, objects_at
from retrieval.imports.jsonl import are_lines, memory_in_api_form
from retrieval.imports.records import ImportContext, Records, RepeatableIds, SourceRecord, refused

FILES = ("*.json",)


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether it is a conversation, or a list of them or of objects with a text under a usual or the given name."""
    names = {context.columns["text"]} if "text" in context.columns else USUAL_NAMES["text"]
    found = keys_of_parts(source, FILES)
    return any(keys["item"] & {*names} or keys["item.messages.item"] >= MESSAGE for keys in found) or (
        any(keys["messages.item"] >= MESSAGE for keys in found) and not are_lines(source, context)
    )


def read(source: ImportFile, context: ImportContext) -> Records:
    """The objects, all read as the kind of the first. A list of a chat model's messages is one session."""
    ids = RepeatableIds("json")
    for part in source.parts(*FILES):
        session, number, usual = part.name or source.name or "chat", 0, False
        try:
            item = "" if keys_in(part)["messages.item"] >= MESSAGE else "item"
            for number, row in enumerate(objects_at(part, {item}, context), start=1):
                usual = usual or (number == 1 and (bool(context.columns) or has_usual_names(row)))
                place = part.place(f"item {number}")
                if is_conversation(row):
                    yield from read_conversation(row, place, None, context, ids)
                elif not usual:
                    raw = msgspec.json.encode(row)
                    yield SourceRecord(place=place, memory=memory_in_api_form(raw, number, ids), size=len(raw))
                elif is_message(row) and "session_id" not in columns_of(row, context.columns):
                    turn = {**row, "session_id": session, "position": number - 1}
                    yield read_message(turn, place, None, context, ids)
                else:
                    yield memory_of_row(row, place, None, context, ids)
        except InvalidInput as exc:
            yield refused(part.place(f"after item {number}"), exc)
