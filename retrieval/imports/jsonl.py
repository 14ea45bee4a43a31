"""JSON lines: memories in the API's form, rows of an evaluation corpus or with the usual names, conversations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from retrieval.errors import InvalidInput
from retrieval.evaluation.folder import CORPUS_FIELDS, CorpusReader
from retrieval.imports.chat_messages import is_conversation, read_conversation
from retrieval.imports.columns import has_usual_names, memory_of_row
from retrieval.imports.files import ImportFile
from retrieval.imports.records import ImportContext, Records, RepeatableIds, SourceRecord, object_in, refused
from retrieval.lifecycle.export import MARK, ExportHeader, read_header
from retrieval.types.memory import MemoryInput
from retrieval.validation import MAX_MEMORY_BYTES, Parsed, parse_memory

FILES = ("*.jsonl", "*.ndjson")

_FIRST_LINES = 20

_NOT_OF_A_CORPUS = {*MemoryInput.__struct_fields__} - CORPUS_FIELDS
"""Fields of memories that a corpus would ignore, so that a row with a namespace and one of them is not a corpus'."""

MAX_LINE_BYTES = 16 * 1024**2
"""Longer lines are refused without being read as a whole."""


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether half of the first lines are complete objects: a text may have some, too."""
    return any(source.parts(*FILES)) and are_lines(source, context)


def are_lines(source: ImportFile, context: ImportContext) -> bool:
    """Whether half of its first lines are complete objects."""
    head = source.part(*FILES).decoded(context).read(MAX_MEMORY_BYTES)
    lines = [line for line in head.splitlines() if line.strip()][:_FIRST_LINES]
    return 0 < len(lines) <= 2 * sum(object_in(line) is not None for line in lines)


def header_of(source: ImportFile) -> ExportHeader | None:
    """The header of an export; None for any other file."""
    line = source.part(*FILES).decoded(ImportContext()).readline(MAX_LINE_BYTES)
    return read_header(line) if line.startswith(MARK) else None


def count_memories(source: ImportFile) -> int | None:
    """The number of memories, one per line; None for conversations, whose lines have several."""
    if is_conversation(_first_object(source)):
        return None
    count = 0
    with suppress(InvalidInput):  # a damaged zip, which reading reports
        for _ in _lines(source, ImportContext()):
            count += 1
    return count


def read(source: ImportFile, context: ImportContext) -> Records:
    """The lines, all read as the kind of the first object."""
    first = _first_object(source)
    if context.columns:
        yield from _read_rows(source, context)
    elif "namespace" in first and _NOT_OF_A_CORPUS.isdisjoint(first):
        yield from read_corpus(source, context)
    elif is_conversation(first):
        yield from _read_rows(source, context, are_conversations=True)
    else:
        yield from (_read_rows if has_usual_names(first) else read_memories)(source, context)


def read_memories(source: ImportFile, context: ImportContext) -> Records:
    """Memories in the API's form; a memory without an id gets one from its content."""
    ids = RepeatableIds("jsonl")
    for number, raw in _lines(source, context):
        memory = memory_in_api_form(raw, number, ids)
        yield SourceRecord(place=f"line {number}", line=number, memory=memory, size=len(raw))


def memory_in_api_form(raw: bytes, number: int, ids: RepeatableIds) -> Parsed:
    """A memory in the API's form, or its fault; one without an id gets a repeatable one."""
    memory = parse_memory(raw, number)
    if isinstance(memory, MemoryInput) and memory.id is None:
        return msgspec.structs.replace(memory, id=ids.next(raw.decode().strip()))
    return memory


def read_corpus(source: ImportFile, context: ImportContext) -> Records:
    """Rows of an evaluation folder's corpus.jsonl."""
    corpus = CorpusReader()
    for number, raw in _lines(source, context):
        place = f"line {number}"
        try:
            row = corpus.read(raw, number)
        except InvalidInput as exc:
            yield refused(place, exc, number)
        else:
            yield SourceRecord(place=place, line=number, memory=row.memory, size=len(raw), namespace=row.namespace)


def _read_rows(source: ImportFile, context: ImportContext, *, are_conversations: bool = False) -> Records:
    ids = RepeatableIds("jsonl")
    for number, raw in _lines(source, context):
        place, row = f"line {number}", object_in(raw)
        if row is None or (are_conversations and not is_conversation(row)):
            yield refused(place, "has no messages" if are_conversations else "is not a JSON object", number)
        elif are_conversations:
            yield from read_conversation(row, place, number, context, ids)
        else:
            yield memory_of_row(row, place, number, context, ids)


def _lines(source: ImportFile, context: ImportContext) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, by number from 1, without the header of an export."""
    stream = source.part(*FILES).decoded(context)
    number = 0
    whole = True
    while raw := stream.readline(MAX_LINE_BYTES):
        if whole and raw.strip() and not (number == 0 and raw.startswith(MARK)):
            yield number + 1, raw
        whole = raw.endswith(b"\n")
        number += whole


def _first_object(source: ImportFile) -> dict[str, Any]:
    """The first line that is an object; an empty object if none is."""
    return next((row for _, raw in _lines(source, ImportContext()) if (row := object_in(raw)) is not None), {})
