"""The context pack: the best memories that fit a token budget, cited, in one text that no memory can imitate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

import msgspec

from retrieval.ranking.diversity import source_of
from retrieval.text.normalized_text import without_speaker
from retrieval.types.memory import Kind
from retrieval.types.search import DroppedItem, PackFormat, PackItem, PackOrder

OVER_BUDGET = "over_budget"
SOURCE_CAP = "source_cap"
DUPLICATE_OF = "duplicate_of:"

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
class _Layout:
    """The format of a pack: opening + entries joined by separator + closing; `entry` renders one by its number."""

    opening: str
    separator: str
    closing: str
    entry: Callable[[PackCandidate, int], str]

    def render(self, entries: Sequence[str]) -> str:
        """The whole pack."""
        return self.opening + self.separator.join(entries) + self.closing


def _citation(number: int) -> str:
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
    return f"{_citation(number)} {_date(memory)}" + _CITATION.sub(r"\1\1\\\2", body)


def _xml(memory: PackCandidate, number: int) -> str:
    fields = {"citation": str(number), "id": _line(memory.id), "date": _date(memory)}
    fields |= {"speaker": _line(memory.speaker), "title": _line(memory.title)}
    attributes = " ".join(f'{name}="{escape(value)}"' for name, value in fields.items() if value)
    return f"<memory {attributes}>{escape(_said(memory), quote=False)}</memory>"


def _json(memory: PackCandidate, number: int) -> str:
    fields = {"citation": _citation(number), "id": _clean(memory.id), "date": _date(memory)}
    fields |= {"speaker": _line(memory.speaker), "title": _line(memory.title), "text": _said(memory)}
    return msgspec.json.encode({name: value for name, value in fields.items() if value}).decode()


_LAYOUTS: Mapping[PackFormat, _Layout] = {
    "markdown": _Layout(opening="# Relevant memories\n\n", separator="\n", closing="", entry=_markdown),
    "xml": _Layout(opening="<context>\n", separator="\n", closing="\n</context>", entry=_xml),
    "json": _Layout(opening="[", separator=",\n", closing="]", entry=_json),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """A rendered pack, never above the budget; its text is empty if nothing fits.

    The items are in the order shown, and their `tokens` count the entry alone.
    """

    context: str
    tokens_used: int
    items: list[PackItem]
    dropped: list[DroppedItem]


def pack(
    candidates: Sequence[PackCandidate],
    *,
    max_tokens: int,
    format: PackFormat,
    order: PackOrder,
    count: Callable[[str], int],
    source_cap: int | None = None,
) -> Packed:
    """Fill the budget greedily by relevance and render the chosen memories.

    A memory that does not fit is skipped; smaller ones after it may still fit. The budget covers the whole text with
    headers and citations. The text is counted again when complete: if the joined parts cost more than their sum, the
    least relevant are removed. `order` arranges the chosen memories, by relevance or oldest first, and numbers their
    citations; it does not affect the choice.

    The candidates are best first, with unique ids. `count` counts the tokens of a text, at least 1 per
    whitespace-separated word; `source_cap` is the most memories of one document or session, None for no cap.
    """
    layout = _LAYOUTS[format]
    dropped = [
        DroppedItem(id=duplicate, reason=f"{DUPLICATE_OF}{candidate.id}")
        for candidate in candidates
        for duplicate in candidate.duplicates
    ]
    chosen: list[PackCandidate] = []
    left = max_tokens - count(layout.render([]))
    per_source: Counter[tuple[str, str]] = Counter()
    for candidate in candidates:
        source = source_of(candidate.document_id, candidate.session_id)
        if source_cap is not None and source and per_source[source] >= source_cap:
            dropped.append(DroppedItem(id=candidate.id, reason=SOURCE_CAP))
            continue
        cost = _cost(candidate, len(chosen) + 1, left, layout, count)
        if cost is None:
            dropped.append(DroppedItem(id=candidate.id, reason=OVER_BUDGET))
            continue
        left -= cost
        chosen.append(candidate)
        if source:
            per_source[source] += 1
    for shown in _shrinking(chosen, dropped):
        arranged = sorted(shown, key=lambda one: one.created_at) if order == "time" else shown
        entries = [layout.entry(candidate, number) for number, candidate in enumerate(arranged, 1)]
        context = layout.render(entries)
        tokens_used = count(context)
        if tokens_used <= max_tokens:
            items = [
                PackItem(id=candidate.id, tokens=count(entry), citation=_citation(number))
                for number, (candidate, entry) in enumerate(zip(arranged, entries, strict=True), 1)
            ]
            return Packed(context=context, tokens_used=tokens_used, items=items, dropped=dropped)
    return Packed(context="", tokens_used=0, items=[], dropped=dropped)


def _cost(candidate: PackCandidate, number: int, left: int, layout: _Layout, count: Callable[[str], int]) -> int | None:
    """Tokens an entry adds to the pack; None if more than are left. A text with more words than that is not counted."""
    if left <= 0 or (len(candidate.text) > left and len(candidate.text.split(maxsplit=left)) > left):
        return None
    cost = count(layout.separator + layout.entry(candidate, number))
    return cost if cost <= left else None


def _shrinking(chosen: list[PackCandidate], dropped: list[DroppedItem]) -> Iterator[list[PackCandidate]]:
    """The chosen memories, then the same without the least relevant, and so on until none is left."""
    while chosen:
        yield chosen
        dropped.append(DroppedItem(id=chosen.pop().id, reason=OVER_BUDGET))
