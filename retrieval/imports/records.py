"""The records that readers yield: memories with deterministic ids, and skipped items with reason and place."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any, TypeAlias
from uuid import NAMESPACE_URL, uuid5

import msgspec

from retrieval.errors import InvalidInput
from retrieval.ingest.batches import Incoming
from retrieval.types.memory import MemoryInput
from retrieval.validation import Parsed, converted

_FROM_SOURCES = uuid5(NAMESPACE_URL, "trivet:import")
_MAX_NAME, _MAX_TITLE = 256, 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_AFTER_CLOCK = re.compile(r":\d\d\b[^(]*[^\W\d_]")

SECONDS_FROM, MILLISECONDS_FROM = 100_000_000, 100_000_000_000
"""Numbers from there on are seconds or milliseconds since 1970: times from 1973 to 5138. Smaller ones are years, days
of the calendar without hyphens, or counts.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceRecord(Incoming):
    """A memory of a source, or why it cannot be one.

    Attributes:
        place: where it is, for people: "line 3".
        line: the number of its line, in sources of lines.
    """

    place: str
    line: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedRecord:
    """An item left out on purpose, such as a system message."""

    place: str
    reason: str


Record: TypeAlias = SourceRecord | SkippedRecord
Records: TypeAlias = Iterator[Record]


@dataclass(kw_only=True)
class ImportContext:
    """The user's options for a source, and the reader's assumptions.

    Attributes:
        zone: for times without a zone; None for UTC, which is then noted.
        day_first: whether 03/04 is a day in April; None to infer it.
        columns: column names by field, instead of the usual ones.
        notes: assumptions, counted.
    """

    zone: tzinfo | None = None
    day_first: bool | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)

    def localized(self, time: datetime) -> datetime:
        """The time with its zone, or else the user's."""
        if time.tzinfo is not None:
            return time
        if self.zone is None:
            self.notes["times without a zone, taken as UTC (--timezone names another)"] += 1
        return time.replace(tzinfo=self.zone or UTC)

    def day(self, time: datetime | None) -> str:
        """The calendar day of a time in the user's zone; "undated" without a time."""
        return time.astimezone(self.zone or UTC).date().isoformat() if time else "undated"

    def time(self, value: Any) -> datetime | None:
        """A time from RFC 3339, RFC 2822, a calendar day, or seconds or milliseconds since 1970; None for nothing.

        Raises InvalidInput if it is something else, or outside the calendar.
        """
        if value is None or value == "" or isinstance(value, bool):
            return None
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return self._parsed(value)
        if number < SECONDS_FROM:
            return self._parsed(value)
        try:
            return self._dated(_EPOCH + timedelta(seconds=number / 1000 if number >= MILLISECONDS_FROM else number))
        except (OverflowError, ValueError) as exc:
            raise InvalidInput(f"cannot read the time {value!r}") from exc

    def _parsed(self, value: Any) -> datetime:
        text = value.strip() if isinstance(value, str) else ""
        try:
            try:
                # some exporters write "+00" or "UTC" for a zone, which only some parsers take
                time = datetime.fromisoformat(text.removesuffix(" UTC") + "Z" * text.endswith(" UTC"))
            except ValueError:
                time = parsedate_to_datetime(text)
                if time.tzinfo is None and _AFTER_CLOCK.search(text):  # would be ignored, such as "PM"
                    raise ValueError(text) from None
            return self._dated(self.localized(time))
        except (ValueError, IndexError, TypeError, OverflowError) as exc:
            raise InvalidInput(f"cannot read the time {str(value)[:60]!r}") from exc

    def _dated(self, time: datetime) -> datetime:
        """The same time; raises OverflowError unless it has a `day`."""
        time.astimezone(self.zone or UTC)
        return time


def memory_record(place: str, line: int | None = None, **fields: Any) -> SourceRecord:
    """A record of a memory with these fields, checked as in the API; None and "" count as not given.

    Null bytes and lone surrogates are repaired; names and titles that are too long are cut.
    """
    given = {name: value for name, value in fields.items() if value is not None and value != ""}
    try:
        given["text"] = clean_text(given.get("text", ""))
        for name, longest in (("title", _MAX_TITLE), ("speaker", _MAX_NAME)):
            if name in given:
                given[name] = clean_text(given[name])[:longest]
        if "metadata" in given:
            given["metadata"] = _clean(given["metadata"])
        memory: Parsed = converted(given, MemoryInput)
    except InvalidInput as exc:
        memory = exc
    except RecursionError:
        memory = InvalidInput("is nested too deeply", loc=("metadata",))
    return SourceRecord(place=place, line=line, memory=memory, size=len(given["text"]))


def text_naming(name: str, text: str) -> str:
    """A text about something, preceded by its name unless the text contains it."""
    return text if name.lower() in text.lower() else f"{name}: {text}"


def relation_record(place: str, format_: str, source: str, type_: str, target: str) -> Record:
    """A record of a memory that states a relation from another memory server's graph."""
    if not (source and type_ and target):
        return SkippedRecord(place=place, reason="relation without an end")
    return memory_record(
        place,
        id=content_id(format_, source, type_, target),
        text=" ".join(part.replace("_", " ") for part in (source, type_, target)),
        relations=[{"source": source, "type": type_, "target": target}],
    )


def refused(place: str, reason: str | InvalidInput, line: int | None = None) -> SourceRecord:
    """A record of an item that could not be read."""
    fault = reason if isinstance(reason, InvalidInput) else InvalidInput(reason)
    return SourceRecord(place=place, line=line, memory=fault)


def source_id(source: str, *parts: Any) -> str:
    """An id made of the source's own ids, unchanged if they fit.

    >>> source_id("slack", "C1", "17.5")
    'slack:C1:17.5'
    """
    name = clean_text(":".join([source, *map(str, parts)]))
    return name if len(name) <= _MAX_NAME else content_id(source, *parts)


def content_id(source: str, *parts: Any) -> str:
    """An id derived from content, for sources without ids; the same parts give the same id."""
    return f"{source}:{uuid5(_FROM_SOURCES, clean_text(repr([source, *map(str, parts)])))}"


class RepeatableIds:
    """Ids from content; equal messages are told apart by the number of earlier ones."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._seen: Counter[str] = Counter()

    def next(self, *parts: Any) -> str:
        """The id of the next message that consists of `parts`."""
        first = content_id(self._source, *parts)
        self._seen[first] += 1
        return first if self._seen[first] == 1 else content_id(self._source, *parts, self._seen[first])


class Turns:
    """Makes records of a source's messages, numbered in each session from 0 in the order in which they are read."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._positions: defaultdict[str, Iterator[int]] = defaultdict(count)

    def record(self, place: str, *, session_id: str, metadata: Mapping[str, Any] = {}, **fields: Any) -> SourceRecord:
        """A record of the next message of a session; empty metadata are left out."""
        return memory_record(
            place,
            kind="message",
            session_id=session_id,
            position=next(self._positions[session_id]),
            tags=[self._source],
            metadata={name: value for name, value in metadata.items() if value},
            **fields,
        )


def clean_text(value: str) -> str:
    r"""Text that can be stored: without null bytes and lone surrogates.

    >>> clean_text("a\x00b\ud83d") == "ab\ufffd"
    True
    """
    value = value.replace("\x00", "")
    if value.isascii():
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_text(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


def text_of(value: Any) -> str:
    """The value if it is text, else ""."""
    return value if isinstance(value, str) else ""


def text_of_part(part: Any) -> str:
    """The text of a part of a message; speech has a transcript, an image no text."""
    return part if isinstance(part, str) else text_of(mapping_of(part).get("text"))


def mapping_of(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def object_in(text: bytes | str) -> dict[str, Any] | None:
    """The object that a JSON text is, or None."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
