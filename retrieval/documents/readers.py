"""Reads text from HTML and PDF; run as a program, it does so in a process of its own, with bounded time and memory.

`python -m retrieval.documents.readers pdf` reads a file from standard input and writes a `Reading` as JSON.
"""

from __future__ import annotations

import logging
import re
import resource
import sys
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from io import BytesIO

import msgspec

MAX_PAGES = 5_000
MAX_MEMORY_BYTES = 2 * 1024**3
MAX_CPU_S = 120

_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "header", "hr", "main", "ol", "p", "pre", "section", "summary", "table",
    "tbody", "tfoot", "thead", "ul",
})  # fmt: skip
_PARAGRAPHS = frozenset({"div", "p"})
_LINES = frozenset({"br", "li", "tr"})
_UNREAD = frozenset({"button", "iframe", "nav", "noscript", "object", "script", "select", "style", "svg", "template"})
_SPACES = re.compile(r"\s+")
_FENCE = re.compile("`{3,}")
_PERMALINKS = frozenset({"¶", "§", "🔗", "\u200b"})
"""What stands in a heading for a link to itself, as documentation has it."""

_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[a-z])")
_LEADER = re.compile(r"(?:\. ?){5,}")
"""The dots of a table of contents, of which each is a word piece."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A text, HTML's as Markdown, and its title; or why nothing could be read."""

    text: str = ""
    title: str | None = None
    error: str | None = None


class _Page(HTMLParser):
    """Writes a page as Markdown: headings, list items, table rows and preformatted text; no scripts, no navigation.

    What lies around the main content, where the page marks that, is navigation, too.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: str | None = None
        self.parts: list[str] = []
        self._main_tag: str | None = None
        self._main_depth = self._main_start = self._main_end = 0  # where in `parts` the main content is
        self._breaks = 0  # line ends to write before the next text
        self._prefix = ""
        self._fence = 0  # where in `parts` the preformatted text begins
        self._unread = 0
        self._is_verbatim = self._is_title = self._is_heading = False
        self._is_opened = False  # a cell or list item has begun: a paragraph in it begins no line of its own

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._main_depth and (tag == "main" or ("role", "main") in attrs):
            self._main_start = self._main_start if self._main_tag else len(self.parts)
            self._main_tag, self._main_depth = tag, 1
        elif self._main_depth and tag == self._main_tag:
            self._main_depth += 1
        if self._is_unread(tag):
            self._unread += 1
        elif tag == "title":
            self._is_title = self.title is None and not self._unread
        elif tag in ("td", "th"):
            self._prefix += "| " if self._breaks else " | "
            self._is_opened = True
        elif tag in _HEADINGS or tag in _BLOCKS or tag in _LINES:
            if not self._is_opened or tag not in _PARAGRAPHS:
                self._break(1 if tag in _LINES else 2)
                self._prefix = _HEADINGS.get(tag, "- " if tag == "li" else "")
            self._is_heading, self._is_opened = tag in _HEADINGS, self._is_opened or tag == "li"
            if tag == "pre" and not self._is_verbatim:
                self._write("")
                self._fence = len(self.parts)
                self._is_verbatim = True

    def handle_endtag(self, tag: str) -> None:
        if self._is_unread(tag):
            self._unread = max(0, self._unread - 1)
        elif tag == "title":
            self._is_title = False
        elif tag in ("td", "th"):
            if not self._is_opened:
                self._breaks = 0  # the next cell is of the same line
            self._is_opened = False
        elif self._is_opened and tag in _PARAGRAPHS:
            pass
        elif tag in _HEADINGS or tag in _BLOCKS or tag in _LINES:
            if tag == "pre" and self._is_verbatim:
                self._end_verbatim()
            self._is_heading = self._is_opened = False
            self._break(1 if tag in _LINES else 2)
        if tag == self._main_tag and self._main_depth:
            self._main_depth -= 1
            self._main_end = len(self.parts)

    def close(self) -> None:
        super().close()
        if self._is_verbatim:
            self._end_verbatim()

    @property
    def text(self) -> str:
        """The main content of the page if it marks one, else all."""
        end = len(self.parts) if self._main_depth else self._main_end  # it may never be closed
        return "".join(self.parts[self._main_start : end]).lstrip() or "".join(self.parts)

    def _end_verbatim(self) -> None:
        """Fence the preformatted text by more backticks than are in it."""
        runs = _FENCE.findall("".join(self.parts[self._fence :]))
        fence = "`" * max((len(run) + 1 for run in runs), default=3)
        self.parts.insert(self._fence, f"{fence}\n")
        self._write(f"\n{fence}")
        self._is_verbatim = False

    def _is_unread(self, tag: str) -> bool:
        """Whether a tag's content is left out; a button that begins a heading is what unfolds its section."""
        return tag in _UNREAD and not (tag == "button" and self._is_heading and self._breaks)

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.title = f"{self.title or ''}{data}"
        elif self._is_verbatim:
            self._write(data)
        elif not self._unread:
            words = _SPACES.sub(" ", data)
            if words.strip() and not (self._is_heading and words.strip() in _PERMALINKS):
                self._write(words)
            elif self.parts and not self._breaks:
                self._prefix = self._prefix or " "

    def _break(self, lines: int) -> None:
        self._breaks = max(self._breaks, lines)
        self._prefix = ""

    def _write(self, text: str) -> None:
        if self._breaks:
            self.parts.append("\n" * self._breaks if self.parts else "")
            text = text if self._is_verbatim else text.lstrip()
        self.parts += (self._prefix, text)
        self._breaks, self._prefix, self._is_opened = 0, "", False


def read_html(content: bytes) -> Reading:
    """The text of a page in UTF-8."""
    page = _Page()
    page.feed(content.decode())
    page.close()
    title = _SPACES.sub(" ", page.title).strip() if page.title else None
    return Reading(text=_storable(page.text), title=_storable(title) if title else None)


def read_pdf(content: bytes) -> Reading:
    """The text of a PDF, page after page; needs pypdf."""
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        return Reading(error="is encrypted; remove the password first")
    pages = len(reader.pages)
    if pages > MAX_PAGES:
        return Reading(error=f"has {pages:,} pages, more than {MAX_PAGES:,}; split it")
    text = "\n\n".join(page.extract_text().strip() for page in reader.pages)
    if not text.strip():
        return Reading(error=f"has no text: its {pages} pages are pictures, which a program for OCR can read")
    text = _LEADER.sub("… ", _HYPHENATED.sub("", text))
    title = reader.metadata.title if reader.metadata is not None else None
    return Reading(text=_storable(text), title=_storable(str(title)) if title else None)


def _storable(text: str) -> str:
    """A text without what the database cannot hold; fonts and references of a file may stand for anything."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


READERS: Mapping[str, Callable[[bytes], Reading]] = {"html": read_html, "pdf": read_pdf}


def confine() -> None:
    """Limit what this process may take, and what it says of a file."""
    logging.disable()
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
    if sys.platform == "linux":  # elsewhere the limit is not kept, or counts what is merely mapped
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


def main() -> None:
    """Read standard input as what the argument says; whatever goes wrong is what is wrong with the file."""
    content = sys.stdin.buffer.read()
    try:
        reading = READERS[sys.argv[1]](content)
    except ModuleNotFoundError as exc:
        reading = Reading(error=f"cannot be read here without {exc.name}: pip install 'trivet[documents]'")
    except MemoryError:
        reading = Reading(error=f"takes more than {MAX_MEMORY_BYTES // 1024**3} GiB of memory to read")
    except Exception as exc:
        reading = Reading(error=f"cannot be read: {str(exc) or type(exc).__name__}")
    sys.stdout.buffer.write(msgspec.json.encode(reading))


if __name__ == "__main__":
    confine()
    main()
