"""The text of a context pack as markdown, XML or JSON, escaped so that no memory can imitate its structure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Literal

import msgspec

from retrieval.text.normalized_text import without_speaker
from retrieval.types.memory import Kind
from retrieval.types.search import PackFormat

# Characters that JSON or XML 1.0 must not contain, or that are invisible.
_UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_CITATION = re.compile(r"(?<!\\)(\\*)(\[\s*\d+\s*\])")
_DEEP_INDENT = re.compile(r"[^\S\n]{64,}")
_INDENT = " " * 4
_WIDEST = " " * 64


@dataclass(frozen=True, kw_only=True, slots=True)
class PackCandidate:
    """A memory that may go into the pack.

    Attributes:
        created_at: the time of the event, shown in UTC.
        place: orders the turns of a session that have the same time.
        superseded: whether a newer memory replaces it.
        excerpt: whether the text is only a part of the memory's.
        entities: names that it and other candidates mention, by weight, greatest first.
        duplicates: ids of its duplicates, which are not shown.
        last_said_at: the time of the latest duplicate.
        needs: the question that it answers or, if it is a question, its answer.
        answers: whether it answers a question in the conversation.
        timed: whether it is a fact that is shown with the time of day.
    """

    id: str
    text: str
    created_at: datetime
    expires_at: datetime | None = None
    title: str | None = None
    speaker: str | None = None
    kind: Kind = "memory"
    session_id: str | None = None
    document_id: str | None = None
    place: int = 0
    superseded: bool = False
    excerpt: bool = False
    entities: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    last_said_at: datetime | None = None
    needs: PackCandidate | None = None
    answers: bool = False
    timed: bool = False

    @property
    def said(self) -> str:
        """The text without its speaker's name in front."""
        return without_speaker(self.text, self.speaker)

    @property
    def time(self) -> datetime:
        """`created_at` in UTC; unchanged if it has no time zone."""
        return _in_utc(self.created_at)

    @property
    def last_time(self) -> datetime:
        """When it was last said, in UTC: a repeated statement is newer than what was said in between."""
        return max(self.time, _in_utc(self.last_said_at or self.created_at))

    @property
    def is_fact(self) -> bool:
        """Whether it is a statement on its own, not part of a chat or document."""
        return self.kind == "memory" and not (self.document_id or (self.session_id and self.speaker))


def _in_utc(time: datetime) -> datetime:
    return time.astimezone(UTC) if time.tzinfo else time


SectionKey = tuple[Literal["facts", "session", "document"], str | None, str | None, str]
"""What the entries of a section have in common: its kind, source, title and day."""


@dataclass(frozen=True, slots=True)
class Section:
    """The entries under one heading: facts, turns of one session and day, or parts of one document."""

    kind: Literal["facts", "session", "document"]
    source: str | None
    title: str | None
    entries: list[PackCandidate] = field(default_factory=list)

    @classmethod
    def key(cls, candidate: PackCandidate) -> SectionKey:
        """The key of the section that a memory belongs to."""
        if candidate.is_fact:
            return "facts", None, None, ""
        if candidate.document_id or candidate.kind == "chunk":
            day = "" if candidate.document_id else _date(candidate)
            return "document", candidate.document_id, candidate.title, day
        return "session", candidate.session_id, candidate.title, _date(candidate)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """A format: opening + parts joined by the separator + closing.

    The parts are each section's heading, entries and ending, and the line of related entities; empty ones are left out.
    """

    opening: str
    separator: str
    closing: str
    heading: Callable[[Section], str]
    ending: Callable[[Section], str]
    entry: Callable[[PackCandidate, int], str]
    related: Callable[[Sequence[str]], str]

    def parts(self, sections: Sequence[Section]) -> Iterator[tuple[PackCandidate | None, str]]:
        """The sections as text, each entry with its memory, with citations from 1 in the order shown."""
        numbers = itertools.count(1)
        for section in sections:
            yield None, self.heading(section)
            yield from ((entry, self.entry(entry, next(numbers))) for entry in section.entries)
            yield None, self.ending(section)

    def joined(self, parts: Iterable[str]) -> str:
        """The whole pack."""
        return self.opening + self.separator.join(filter(None, parts)) + self.closing

    def frame(self, candidate: PackCandidate) -> str:
        """The text of a section without its entries, if this is its first."""
        section = Section(*Section.key(candidate)[:3], [candidate])
        return f"{self.separator}{self.heading(section)}{self.separator}{self.ending(section)}"


def citation(number: int) -> str:
    """The citation of the entry with that number, from 1."""
    return f"[{number}]"


def _clean(text: str) -> str:
    r"""The text with \n line ends, unprintable characters replaced, and runs of blank lines and spaces shortened."""
    if text.isprintable() and _WIDEST not in text:  # most: a single line without changes
        return text.rstrip()
    lines = [_DEEP_INDENT.sub(_WIDEST, line).rstrip() for line in _UNPRINTABLE.sub("\ufffd", text).splitlines()]
    return "\n".join(line for position, line in enumerate(lines) if line or (position and lines[position - 1])).strip(
        "\n"
    )


def _line(text: str | None) -> str:
    """The cleaned text on one line; empty for None."""
    return " ".join(_clean(text).split()) if text else ""


def _date(memory: PackCandidate) -> str:
    return memory.time.date().isoformat()


def _time(memory: PackCandidate) -> str:
    """A fact's time of day; empty if its date suffices."""
    return f"{memory.time:%H:%M}" if memory.timed else ""


def _last_date(memory: PackCandidate) -> str:
    """The day on which it was last said; empty if that is the day shown."""
    return memory.last_time.date().isoformat() if memory.last_time.date() > memory.time.date() else ""


def _spelled_date(time: datetime) -> str:
    """`8 May 2023`, which is fewer tokens than a date in digits."""
    return f"{time.day} {time:%B} {time.year}"


def _escaped(text: str) -> str:
    """The text with what looks like a citation escaped."""
    return _CITATION.sub(r"\1\1\\\2", text) if "[" in text else text  # most have none, and the pattern is slow


def _notes(memory: PackCandidate) -> str:
    times = len(memory.duplicates) + 1
    last = f", the last on {_spelled_date(memory.last_time)}" if _last_date(memory) else ""
    notes = [f"{times} times{last}"] * (times > 1) + ["superseded"] * memory.superseded
    return f" ({', '.join(notes)})" if notes else ""


def _markdown_heading(section: Section) -> str:
    """`## Monday 8 May 2023, 13:56 (title)` for a session; the time is that of its first entry."""
    first = section.entries[0]
    title = _escaped(_line(section.title))
    if section.kind == "facts":
        return "\n## Facts"
    if section.kind == "document":
        return f"\n## {title or _escaped(_line(section.source)) or 'Documents'} ({_spelled_date(first.time)})"
    return f"\n## {first.time:%A} {_spelled_date(first.time)}, {first.time:%H:%M}" + (f" ({title})" if title else "")


def _markdown(memory: PackCandidate, number: int) -> str:
    """`[1] Caroline: text`, a fact with its date; continuation lines are indented, citations in the text escaped."""
    speaker = _line(memory.speaker)
    about = [_spelled_date(memory.time), _time(memory), _line(memory.title), speaker] if memory.is_fact else [speaker]
    head = ", ".join(filter(None, about))
    body = (f" {head}: " if head else " ") + _clean(memory.said) + _notes(memory)
    return citation(number) + _escaped(body.replace("\n", f"\n{_INDENT}").replace(f"\n{_INDENT}\n", "\n\n"))


def _xml_heading(section: Section) -> str:
    first = section.entries[0]
    if section.kind == "facts":
        return "<facts>"
    fields = {"id": _line(section.source), "title": _line(section.title), "date": _date(first)}
    if section.kind == "session":
        fields |= {"weekday": f"{first.time:%A}", "time": f"{first.time:%H:%M}"}
    return f"<{section.kind} {_attributes(fields)}>"


def _xml(memory: PackCandidate, number: int) -> str:
    fields = {"citation": str(number), "id": _line(memory.id)}
    if memory.is_fact:
        fields |= {"date": _date(memory), "time": _time(memory), "title": _line(memory.title)}
    fields |= {"speaker": _line(memory.speaker), "superseded": "true" if memory.superseded else ""}
    fields |= {"times": str(len(memory.duplicates) + 1) if memory.duplicates else "", "last": _last_date(memory)}
    return f"<memory {_attributes(fields)}>{escape(_clean(memory.said), quote=False)}</memory>"


def _attributes(fields: Mapping[str, str]) -> str:
    return " ".join(f'{name}="{escape(value)}"' for name, value in fields.items() if value)


def _json(memory: PackCandidate, number: int) -> str:
    fields = {"citation": citation(number), "id": _clean(memory.id), "date": _date(memory), "time": _time(memory)}
    if not memory.is_fact:
        fields |= {"weekday": f"{memory.time:%A}", "time": f"{memory.time:%H:%M}"}
        fields |= {"session_id": _line(memory.session_id), "document_id": _line(memory.document_id)}
    fields |= {"speaker": _line(memory.speaker), "title": _line(memory.title), "text": _clean(memory.said)}
    fields |= {"last": _last_date(memory)}
    numbers = {"times": len(memory.duplicates) + 1} if memory.duplicates else {}
    marks = {"superseded": True} if memory.superseded else {}
    shown = {name: value for name, value in fields.items() if value} | numbers | marks
    return msgspec.json.encode(shown).decode()


def _nothing(_: object) -> str:
    return ""


LAYOUTS: Mapping[PackFormat, Layout] = {
    "markdown": Layout(
        opening="# Relevant memories\n",
        separator="\n",
        closing="",
        heading=_markdown_heading,
        ending=_nothing,
        entry=_markdown,
        related=lambda names: f"\nRelated: {_escaped(', '.join(map(_line, names)))}",
    ),
    "xml": Layout(
        opening="<context>\n",
        separator="\n",
        closing="\n</context>",
        heading=_xml_heading,
        ending=lambda section: f"</{section.kind}>",
        entry=_xml,
        related=lambda names: f"<related>{escape(', '.join(map(_line, names)), quote=False)}</related>",
    ),
    "json": Layout(
        opening="[", separator=",\n", closing="]", heading=_nothing, ending=_nothing, entry=_json, related=_nothing
    ),
}
