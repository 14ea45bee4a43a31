"""Rows of an evaluation folder's corpus as memories."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from retrieval.errors import InvalidInput
from retrieval.parsing import invalid_input
from retrieval.types import MemoryInput


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusRow:
    """One row of `corpus.jsonl`.

    Attributes:
        line: its number in the file, from 1.
        id: the memory's id, unique within the namespace.
        namespace: the namespace it belongs to.
        memory: the memory; or why Trivet cannot hold it, such as a text that is too long.
    """

    line: int
    id: str
    namespace: str
    memory: MemoryInput | InvalidInput

    def sessionless(self) -> CorpusRow:
        """The same without its session and its position there."""
        if isinstance(self.memory, InvalidInput):
            return self
        return replace(self, memory=msgspec.structs.replace(self.memory, session_id=None, position=None))


class _Row(msgspec.Struct, frozen=True):
    """A line of the file. Other fields are let pass: the format may gain some."""

    id: str
    text: str
    namespace: str
    title: str | None = None
    speaker: str | None = None
    timestamp: str | None = None
    metadata: dict[str, Any] = {}


class CorpusReader:
    """Reads rows in file order, which is what gives turns of a session their positions."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(_Row)
        self._positions: Counter[tuple[str, str]] = Counter()

    def read(self, raw: bytes, line: int) -> CorpusRow:
        """The row on line `line`.

        `metadata.session` (or `metadata.session_id`) becomes the session; a row with a speaker or
        a session is a `message`, any other a `chunk`; a time without a zone is UTC.

        Raises:
            InvalidInput: no JSON object with the fields of a row.
        """
        try:
            row = self._decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise InvalidInput(str(exc)) from exc
        session = _session(row.metadata)
        position = None
        if session is not None:
            position = self._positions[row.namespace, session]
            self._positions[row.namespace, session] += 1
        fields = {
            "id": row.id,
            "text": row.text,
            "title": row.title,
            "speaker": row.speaker,
            "kind": "message" if row.speaker is not None or session is not None else "chunk",
            "session_id": session,
            "position": position,
            "created_at": _utc(row.timestamp),
            "metadata": row.metadata,
        }
        return CorpusRow(line=line, id=row.id, namespace=row.namespace, memory=_memory(fields))


def _memory(fields: dict[str, Any]) -> MemoryInput | InvalidInput:
    """The memory of these fields, or what stands against it."""
    try:
        return msgspec.convert(fields, MemoryInput)
    except msgspec.ValidationError as exc:
        return invalid_input(exc)


def _session(metadata: dict[str, Any]) -> str | None:
    """The session of a chat turn as text."""
    value = metadata.get("session", metadata.get("session_id"))
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InvalidInput(f"metadata.session must be text or a whole number, not {value!r}")
    return str(value)


def _utc(timestamp: str | None) -> datetime | None:
    """The time with a zone, UTC where it bears none."""
    if timestamp is None:
        return None
    try:
        parsed = datetime.fromisoformat(timestamp)
    except ValueError as exc:
        raise InvalidInput(f"timestamp {timestamp!r} is no ISO 8601 time") from exc
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
