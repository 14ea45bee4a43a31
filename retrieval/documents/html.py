"""Reads text from HTML, as Markdown."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from retrieval.documents.reading import Reading

_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "header", "hr", "main", "ol", "p", "pre", "section", "summary", "table",
    "ul",
})  # fmt: skip
_PARAGRAPHS = frozenset({"div", "p"})
_LINES = frozenset({"br", "li", "tbody", "tfoot", "thead", "tr"})
_IN_CELLS = frozenset({"br", "div", "li", "ol", "p", "ul"})
"""Tags that do not start a line in a cell of a table with a head, as each row is one line."""
_UNREAD = frozenset({"button", "iframe", "nav", "noscript", "object", "script", "select", "style", "svg", "template"})
_SPACES = re.compile(r"\s+")
_FENCE = re.compile("`{3,}")
_PERMALINKS = frozenset({"¶", "§", "🔗", "\u200b"})
"""Texts of a heading's link to itself, as in documentation."""


class _Page(HTMLParser):
    """Writes a page as Markdown: headings, list items, table rows and preformatted text; no scripts, no navigation.

    If the page marks its main content, everything around it counts as navigation. A table whose first row has only
    header cells becomes a Markdown table.
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
        self._is_opened = False  # a cell or list item has begun: a paragraph in it does not start a line
        self._heads = -1  # cells of a table's first row, as long as all are header cells
        self._has_head = self._is_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_main = (tag == "main" or ("role", "main") in attrs) and "hidden" not in dict(attrs)
        if is_main and not self._main_depth:
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
            self._is_cell = tag == "th" or self._has_head
            self._heads = self._heads + 1 if tag == "th" and self._heads >= 0 else -1
        elif self._is_cell and tag in _IN_CELLS:
            self._prefix = self._prefix or " "
        elif tag in _HEADINGS or tag in _BLOCKS or tag in _LINES:
            if not self._is_opened or tag not in _PARAGRAPHS:
                self._break(1 if tag in _LINES else 2)
                self._prefix = _HEADINGS.get(tag, "- " if tag == "li" else "")
            self._is_heading, self._is_opened = tag in _HEADINGS, self._is_opened or tag == "li"
            if tag == "table":
                self._heads, self._has_head, self._is_cell = 0, False, False
            elif tag == "tr" and self._heads > 0 and not self._unread:
                self._write("|---" * self._heads + "|")
                self._break(1)
                self._heads, self._has_head = -1, True
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
                self._breaks = 0  # the next cell is in the same line
            self._is_opened = self._is_cell = False
        elif tag in (_IN_CELLS if self._is_cell else _PARAGRAPHS if self._is_opened else ()):
            pass
        elif tag in _HEADINGS or tag in _BLOCKS or tag in _LINES:
            if tag == "pre" and self._is_verbatim:
                self._end_verbatim()
            self._is_heading = self._is_opened = self._is_cell = False
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
        """The main content of the page if it marks one, else everything."""
        end = len(self.parts) if self._main_depth else self._main_end  # it may never be closed
        return "".join(self.parts[self._main_start : end]).lstrip() or "".join(self.parts)

    def _end_verbatim(self) -> None:
        self._write("")
        self.parts[self._fence :] = [fenced("".join(self.parts[self._fence :]))]
        self._is_verbatim = False

    def _is_unread(self, tag: str) -> bool:
        """Whether a tag's content is left out; a button that begins a heading only folds its section, so it is read."""
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


def fenced(text: str) -> str:
    """Preformatted text between more backticks than are in it."""
    fence = "`" * max((len(run) + 1 for run in _FENCE.findall(text)), default=3)
    return f"{fence}\n{text}\n{fence}"


def _closed(page: str) -> str:
    """The page with comments and tags that are never closed as text: the parser would read to the end for each."""
    for opening, closing in (("<!--", "-->"), ("<", ">")):
        head, end, rest = page.rpartition(closing)
        page = head + end + rest.replace(opening, f"&lt;{opening[1:]}")
    return page


def read_html(content: bytes) -> Reading:
    """The text of a page in UTF-8."""
    page = _Page()
    page.feed(_closed(content.decode("utf-8-sig")))
    page.close()
    return Reading(text=page.text, title=_SPACES.sub(" ", page.title).strip() if page.title else None)
