"""The three formats of a context pack, each safe against texts that imitate it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

import msgspec

from retrieval.text.normalized_text import without_speaker
from retrieval.types.memory import Kind
from retrieval.types.search import PackFormat

# Characters that JSON or XML 1.0 must not contain, or that are invisible.
_UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_CITATION = re.compile(r"(\\*)(\[\s*\d+\s*\])")
_DEEP_INDENT = re.compile(r"[^\S\n]{16,}")
_INDENT = " " * 4


@dataclass(frozen=True, kw_only=True, slots=True)
class PackCandidate:
    """A memory that may go into the pack, with the ids of its duplicates, which are reported as dropped.

    `created_at` is the time of the event, shown as its date in UTC.
    """

    id: str
    text: str
    created_at: datetime
    title: str | None = None
    speaker: str | None = None
    kind: Kind = "memory"
    session_id: str | None = None
    document_id: str | None = None
    duplicates: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The format of a pack: opening + entries joined by separator + closing; `entry` renders one by its number."""

    opening: str
    separator: str
    closing: str
    entry: Callable[[PackCandidate, int], str]

    def render(self, entries: Sequence[str]) -> str:
        """The whole pack."""
        return self.opening + self.separator.join(entries) + self.closing


def citation(number: int) -> str:
    """The citation of the entry with that number, from 1."""
    return f"[{number}]"


def _clean(text: str) -> str:
    r"""The text with \n line ends, unprintable characters replaced, and runs of blank lines and spaces shortened."""
    lines = [_DEEP_INDENT.sub(" " * 16, line).rstrip() for line in _UNPRINTABLE.sub("\ufffd", text).splitlines()]
    return "\n".join(line for position, line in enumerate(lines) if line or (position and lines[position - 1])).strip(
        "\n"
    )


def _line(text: str | None) -> str:
    """The cleaned text on one line; empty for None."""
    return " ".join(_clean(text).split()) if text else ""


def _date(memory: PackCandidate) -> str:
    created = memory.created_at
    return (created.astimezone(UTC) if created.tzinfo else created).date().isoformat()


def _said(memory: PackCandidate) -> str:
    return _clean(without_speaker(memory.text, memory.speaker))


def _markdown(memory: PackCandidate, number: int) -> str:
    """`[1] 2023-05-08, Caroline: text`, continuation lines indented; citations within the text are escaped."""
    about = ", ".join(filter(None, (_line(memory.title), _line(memory.speaker))))
    head = f", {about}: " if about else ": "
    body = (head + _said(memory)).replace("\n", f"\n{_INDENT}").replace(f"\n{_INDENT}\n", "\n\n")
    return f"{citation(number)} {_date(memory)}" + _CITATION.sub(r"\1\1\\\2", body)


def _xml(memory: PackCandidate, number: int) -> str:
    fields = {"citation": str(number), "id": _line(memory.id), "date": _date(memory)}
    fields |= {"speaker": _line(memory.speaker), "title": _line(memory.title)}
    attributes = " ".join(f'{name}="{escape(value)}"' for name, value in fields.items() if value)
    return f"<memory {attributes}>{escape(_said(memory), quote=False)}</memory>"


def _json(memory: PackCandidate, number: int) -> str:
    fields = {"citation": citation(number), "id": _clean(memory.id), "date": _date(memory)}
    fields |= {"speaker": _line(memory.speaker), "title": _line(memory.title), "text": _said(memory)}
    return msgspec.json.encode({name: value for name, value in fields.items() if value}).decode()


LAYOUTS: Mapping[PackFormat, Layout] = {
    "markdown": Layout(opening="# Relevant memories\n\n", separator="\n", closing="", entry=_markdown),
    "xml": Layout(opening="<context>\n", separator="\n", closing="\n</context>", entry=_xml),
    "json": Layout(opening="[", separator=",\n", closing="]", entry=_json),
}
