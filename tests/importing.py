"""Reading an export in memory."""

from __future__ import annotations

import io
from datetime import tzinfo

from retrieval.errors import InvalidInput
from retrieval.imports.files import ImportFile
from retrieval.imports.formats import detect, read
from retrieval.imports.records import ImportContext, SkippedRecord
from retrieval.types.memory import MemoryInput


class Imported:
    """The content of an export: memories, errors and skips by place, notes."""

    def __init__(
        self,
        data: bytes | str,
        format_: str | None = None,
        *,
        zone: tzinfo | None = None,
        day_first: bool | None = None,
    ) -> None:
        context = ImportContext(zone=zone, day_first=day_first)
        source = ImportFile(io.BytesIO(data.encode() if isinstance(data, str) else data), "export")
        self.format = format_ or detect(source)
        self.memories: list[MemoryInput] = []
        self.errors: dict[str, str] = {}
        self.skips: dict[str, str] = {}
        for record in read(source, self.format, context):
            if isinstance(record, SkippedRecord):
                self.skips[record.place] = record.reason
            elif isinstance(record.memory, InvalidInput):
                self.errors[record.place] = str(record.memory)
            else:
                self.memories.append(record.memory)
        self.notes = context.notes

    @property
    def texts(self) -> list[str]:
        """The memories' texts, in their order."""
        return [memory.text for memory in self.memories]
