"""The table of formats, and detecting a file's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from retrieval.errors import InvalidInput
from retrieval.imports.files import ImportFile
from retrieval.imports.records import ImportContext, Records, SkippedRecord, SourceRecord, refused
from retrieval.types.memory import MemoryInput


class ImportFormat(NamedTuple):
    """A format.

    Attributes:
        module: has `read`, and `recognise` if the format is detected by content.
        of_lines: whether each record is a line, so that they can be counted beforehand.
        reader: the function that reads it.
        detected: whether `auto` looks for it.
    """

    module: str
    of_lines: bool = False
    reader: str = "read"
    detected: bool = True


FORMATS: dict[str, ImportFormat] = {
    "chatgpt": ImportFormat("chatgpt"),
    "claude": ImportFormat("claude"),
    "slack": ImportFormat("slack"),
    "telegram": ImportFormat("telegram"),
    "discord": ImportFormat("discord"),
    "zep": ImportFormat("zep"),
    "hindsight": ImportFormat("hindsight"),
    "mem0": ImportFormat("mem0"),
    "mcp": ImportFormat("mcp_memory"),
    "mbox": ImportFormat("mbox"),
    "whatsapp": ImportFormat("whatsapp"),
    "json": ImportFormat("json_list"),
    "jsonl": ImportFormat("jsonl", of_lines=True),
    "memories": ImportFormat("jsonl", of_lines=True, reader="read_memories", detected=False),
    "corpus": ImportFormat("jsonl", of_lines=True, reader="read_corpus", detected=False),
    "csv": ImportFormat("csv_rows"),
}
"""By name, in the order in which `auto` tries them: the most specific ones come first."""


def detect(source: ImportFile, columns: Mapping[str, str] | None = None) -> str:
    """The name of the format that the content has; `columns` are names given by the user.

    Raises InvalidInput if it has none, or is a zip that cannot be opened.
    """
    if source.is_empty:
        return "jsonl"  # it has no lines
    if source.is_hollow:
        return "json"
    context = ImportContext(columns=columns or {})  # reading will note the same assumptions again
    for name, entry in FORMATS.items():
        if entry.detected and _function(entry, "recognise")(source, context):
            return name
    for part in source.parts("*"):
        part.open()  # a zip that cannot be read is not of an unknown format
    names = ", ".join(name for name, entry in FORMATS.items() if entry.detected)
    raise InvalidInput(
        f"the file is of none of these formats: {names}; --format names one (document stores it as it is), "
        "--map text=NAME what its texts are called"
    )


def read(source: ImportFile, name: str, context: ImportContext) -> Records:
    """The records of a file. A fault of the whole file is raised; damage further on becomes a record.

    Raises InvalidInput if the file is not of this format, or needs an option from the user.
    """
    yield from source.climbing()
    entry = FORMATS[name]
    records: Records = _function(entry, entry.reader)(source, context)
    begun = False
    try:
        for record in records if entry.of_lines else _once(records):
            begun = True
            yield record
    except InvalidInput as exc:
        if not begun:
            raise
        yield refused("the rest of the file", exc)


def _once(records: Records) -> Records:
    """The records without repeated ids, which would replace each other at each import."""
    seen: set[int] = set()
    for record in records:
        if isinstance(record, SourceRecord) and isinstance(record.memory, MemoryInput):
            key = hash(record.memory.id)
            if key in seen:
                yield SkippedRecord(place=record.place, reason="same id as an earlier one")
                continue
            seen.add(key)
        yield record


def _function(entry: ImportFormat, name: str) -> Callable[[ImportFile, ImportContext], Any]:
    """A function of the format's module, which is imported only now."""
    function: Callable[[ImportFile, ImportContext], Any] = getattr(import_module(f".{entry.module}", __package__), name)
    return function
