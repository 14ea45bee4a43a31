"""Splits a text along its structure into chunks that fit the embedder's window; no I/O."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Literal, NamedTuple

from semantic_text_splitter import MarkdownSplitter, TextSplitter

Structure = Literal["markdown", "text", "code", "table"]
"""How a text shows its structure: Markdown; paragraphs and underlined headings; indented definitions; rows."""

CHUNK_PIECES = 144
"""Most word pieces of a chunk; chosen on technical documentation, docs/decisions/0016-documents.md."""

SMALL_PIECES = 48
"""A shorter section is joined with the one after it if both fit."""

MAX_CHUNK_CHARS = 4_000
"""Most characters of a chunk, unless they are blank: a word of any length is one word piece."""

MAX_HEADINGS, MAX_HEADING_CHARS = 8, 200
"""Most headings given for a chunk, the innermost ones, and most characters of each."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_ITEM = re.compile(r" {0,3}(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])")
_KEY = re.compile(r"[\w-]+:")
_TITLE = re.compile(r"title:[ \t]*(['\"]?)(\S.*?)\1")
_RULER = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*$")
_DEFINITION = re.compile(
    r"([ \t]*)((?:[a-z]+ ){0,3}?(?:class|def|enum|fn|func|function|impl|interface|module|namespace|struct|trait)"
    r" +[^\W\d][\w.]*)(?=\s*(?:[(:{<\[=;]|$)|\s+(?:extends|implements)\b|\s+for +[A-Z])"  # else it is prose
)
_ABOVE_DEFINITION = re.compile(r"[ \t]*(?:@|#|//|/?\*|--)")  # decorators and comments


class Heading(NamedTuple):
    """A heading and the offset of its line; a lower level is further out."""

    start: int
    end: int
    level: int
    title: str


class TextChunk(NamedTuple):
    """A chunk as it appears in the text, and the headings above it, outermost first."""

    text: str
    headings: tuple[str, ...]


class DocumentSplitter:
    """Splits texts into chunks of at most `pieces` word pieces; the chunks of a text, joined, are the text.

    Attributes:
        count: counts the word pieces of a text.
    """

    def __init__(self, count: Callable[[str], int], *, pieces: int = CHUNK_PIECES) -> None:
        """`count` is the counter of the embedder that will read the chunks, and must not raise."""
        self.count = count
        self._pieces = pieces
        self._markdown = MarkdownSplitter.from_callback(count, pieces, trim=False)
        self._plain = TextSplitter.from_callback(count, pieces, trim=False)
        # Input that takes the splitters quadratic time, such as ten thousand ">", is fast in small pieces.
        self._blocks = TextSplitter(MAX_CHUNK_CHARS, trim=False)

    def split(self, text: str, structure: Structure) -> list[TextChunk]:
        """The chunks of a text, none of them blank; none for a blank text."""
        found = list(headings(text, structure))
        splitter = self._markdown if structure == "markdown" else self._plain
        sections = [
            [chunk for block in self._blocks.chunks(section) for chunk in splitter.chunks(block)]
            for section in _sections(text, found)
        ]
        chunks = self._joined(sections)
        return [*_located(chunks, found, _table_bodies(text) if structure == "markdown" else [])]

    def _joined(self, sections: Iterable[Sequence[str]]) -> list[str]:
        """The parts of all sections; small and blank ones are joined with a neighbour, if possible in their section."""
        parts = ((part, number == 0) for section in sections for number, part in enumerate(section))
        chunks: list[str] = []
        held = 0
        for part, begins in parts:
            size = self.count(part)
            last = chunks[-1] if chunks else ""
            fits = held + size <= self._pieces + SMALL_PIECES and len(last) + len(part) <= MAX_CHUNK_CHARS
            is_small = held < SMALL_PIECES or (size < SMALL_PIECES and not begins)
            if chunks and ((fits and is_small) or not part.strip() or not last.strip()):
                chunks[-1] += part
                held += size
            else:
                chunks.append(part)
                held = size
        return chunks if any(chunk.strip() for chunk in chunks) else []


def headings(text: str, structure: Structure) -> Iterator[Heading]:
    r"""The headings of a text, in order.

    >>> [(each.level, each.title) for each in headings("# Tea\n\nGreen.\n\nBlack\n-----\n", "markdown")]
    [(1, 'Tea'), (2, 'Black')]
    """
    lines = text.splitlines(keepends=True)
    if structure == "markdown":
        return _of_markdown(lines)
    if structure == "table":
        return _of_table(lines)
    return _of_code(lines) if structure == "code" else _of_text(lines)


def title_in(text: str, structure: Structure) -> str | None:
    r"""The title of a text: that of its front matter, or its first heading if all others are below it.

    Nothing may stand above that heading, unless it is Markdown's of level 1. Code and tables have no title.

    >>> title_in("[badge]\n\n# Tea\n\n## Green\n", "markdown")
    'Tea'
    >>> title_in("---\ntitle: 'Tea'\n---\n# Green\n", "markdown")
    'Tea'
    >>> title_in("# Green\n# Black\n", "markdown")
    """
    if structure in ("code", "table"):
        return None
    lines = text.splitlines(keepends=True)
    front = lines[: _front_matter(lines)] if structure == "markdown" else []
    if said := next(filter(None, map(_TITLE.fullmatch, map(str.rstrip, front))), None):
        return said[2]
    found = [*headings(text, structure)]
    if not found or any(each.level <= found[0].level for each in found[1:]):
        return None
    begins_text = not text[: found[0].start].strip()
    return found[0].title if begins_text or (structure == "markdown" and found[0].level == 1) else None


def _heading(start: int, end: int, level: int, title: str) -> Heading:
    return Heading(start, end, level, title.strip()[:MAX_HEADING_CHARS].strip())


def _of_markdown(lines: Sequence[str]) -> Iterator[Heading]:
    skipped = _front_matter(lines)
    start, fence, before = sum(map(len, lines[:skipped])), "", ""
    for line in lines[skipped:]:
        end = start + len(line)
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
            before = ""
        elif fence:
            pass
        elif atx := _ATX.match(line):
            yield _heading(start, end, len(atx[1]), atx[2].rstrip().rstrip("#").rstrip() or atx[2])
            before = ""
        elif (ruler := _SETEXT.match(line)) and before and not (ruler[1][0] == "-" and _ITEM.match(before)):
            yield _heading(start - len(before), end, 1 if ruler[1][0] == "=" else 2, before)
            before = ""
        else:
            before = line if line.strip() else ""
        start = end


def _front_matter(lines: Sequence[str]) -> int:
    """The number of lines of front matter, as static site generators use it."""
    block = [line.rstrip() for line in takewhile(str.strip, lines)]
    return block.index("---", 1) + 1 if block[:1] == ["---"] and "---" in block[1:] and _KEY.match(block[1]) else 0


def _of_text(lines: Sequence[str]) -> Iterator[Heading]:
    """Lines that are underlined in full; levels are in the order in which underlines are first used."""
    levels: dict[tuple[str, bool], int] = {}
    start = 0
    for position, (title, below) in enumerate(pairwise([*lines, ""])):
        ruler = _RULER.match(below)
        if ruler and 0 < len(title.rstrip()) <= len(below.rstrip()) and not _RULER.match(title):
            above = lines[position - 1] if position else ""
            has_overline = above.rstrip() == below.rstrip()
            level = levels.setdefault((ruler[1], has_overline), len(levels) + 1)
            first = start - len(above) if has_overline else start
            if title.strip():
                yield _heading(first, start + len(title) + len(below), level, title)
        start += len(title)


def _of_code(lines: Sequence[str]) -> Iterator[Heading]:
    start = begun = 0
    for line in lines:
        if definition := _DEFINITION.match(line):
            yield _heading(begun, start + len(line), len(definition[1].expandtabs()), definition[2])
        start += len(line)
        if not _ABOVE_DEFINITION.match(line):
            begun = start


def _of_table(lines: Sequence[str]) -> Iterator[Heading]:
    """The names of the columns as a heading, since they say what the values of each row are."""
    if lines and lines[0].strip():
        yield _heading(0, len(lines[0]), 1, lines[0])


def _table_bodies(text: str) -> list[Heading]:
    """Where the rows of Markdown's tables are, below the names of their columns."""
    bodies: list[Heading] = []
    start, before = 0, ""
    for line in text.splitlines(keepends=True):
        end = start + len(line)
        if bodies and bodies[-1].end == start and "|" in line:
            bodies[-1] = bodies[-1]._replace(end=end)
        elif "|" in before and "|" in line and "-" in line and not line.strip("|:- \t\r\n"):
            bodies.append(_heading(end, end, 1, before.strip("| \t\r\n")))
        start, before = end, line
    return bodies


def _sections(text: str, found: Sequence[Heading]) -> list[str]:
    """The text cut before each heading."""
    starts = sorted({0, *(each.start for each in found), len(text)})
    return [text[start:end] for start, end in pairwise(starts)]


def _located(chunks: Iterable[str], found: Sequence[Heading], tables: Sequence[Heading]) -> Iterator[TextChunk]:
    """The chunks with the headings above their first line of text, or the columns if it is a row of a table."""
    path: list[Heading] = []
    start = passed = 0
    for chunk in chunks:
        body = start + len(chunk) - len(chunk.lstrip())
        while passed < len(found) and found[passed].start <= body:
            heading = found[passed]
            path = [each for each in path if each.level < heading.level] + [heading]
            rest = chunk[heading.end - start :] if heading.start >= start else ""
            body = max(body, heading.end + len(rest) - len(rest.lstrip())) if rest.strip() else body
            passed += 1
        begun = bisect_right(tables, body, key=lambda each: each.start)
        under = path + [each for each in tables[max(0, begun - 1) : begun] if body < each.end and each.title]
        yield TextChunk(chunk, tuple(each.title for each in under[-MAX_HEADINGS:]))
        start += len(chunk)
