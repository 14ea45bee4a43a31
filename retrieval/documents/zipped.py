"""Reads text, as Markdown, from files that are zip archives of XML: Word, OpenDocument, Excel, PowerPoint and EPUB."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from io import BytesIO
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree
from zipfile import ZipFile

import msgspec

from retrieval.documents.html import read_html
from retrieval.documents.reading import Reading

MAX_UNPACKED_BYTES = 256 * 1024**2

_TITLE = re.compile(r'<h1 class="title">(.*?)</h1>')
_ODT_TAGS = {
    "covered-table-cell": "td", "line-break": "br", "list": "ul", "list-item": "li", "p": "p", "table": "table",
    "table-cell": "td", "table-row": "tr", "th": "th",
}  # fmt: skip
_ODT_UNREAD = frozenset({"annotation", "desc", "note-citation", "table-of-content", "title", "tracked-changes"})
"""Comments, pictures' descriptions, repeated and deleted text; other indexes are left out, too."""
_DECK = "ppt/presentation.xml"
_RELATIONSHIP = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_TITLES = frozenset({"ctrTitle", "title"})
_FURNITURE = frozenset({"dt", "ftr", "hdr", "sldNum"})
"""Placeholders repeated on each slide: date, footer, header, number."""
_BESIDE_SLIDES = ("ppt/diagrams/data", "ppt/notesSlides/")


def read_word(content: bytes) -> Reading:
    """Headings, lists and tables of a Word document; needs mammoth."""
    import mammoth

    _opened(content)
    page = mammoth.convert_to_html(
        BytesIO(content),
        style_map="p[style-name='Title'] => h1.title:fresh",
        include_embedded_style_map=False,
        convert_image=lambda image: [],
        transform_document=mammoth.transforms.element_of_type(mammoth.documents.Table, _with_head),
    ).value
    title = _TITLE.search(page)
    return msgspec.structs.replace(read_html(page.encode()), title=read_html(title[1].encode()).text if title else None)


def _with_head(table: Any) -> Any:
    """A table with its first row as its head: Word seldom marks it, and Markdown has no tables without one."""
    rows = table.children
    if len(rows) < 2 or len(rows[0].children) < 2:
        return table
    return table.copy(children=[rows[0].copy(is_header=True), *rows[1:]])


def read_odt(content: bytes) -> Reading:
    """Headings, lists, tables and footnotes of an OpenDocument text, as LibreOffice and Google Docs write it."""
    body = _body(content)
    titles = (each for each in body.iterfind("{*}p") if _attribute(each, "style-name") == "Title")
    title = "".join(next(titles, ElementTree.Element("p")).itertext())
    return msgspec.structs.replace(read_html("".join(_html(body)).encode()), title=title.strip() or None)


def read_odp(content: bytes) -> Reading:
    """The slides of an OpenDocument presentation: title, texts, tables and notes."""
    slides = []
    for page in _body(content).iterfind("{*}page"):
        frames = [each for each in page.iterfind("{*}frame") if _attribute(each, "class") == "title"]
        for frame in frames:
            page.remove(frame)
        title, text = (
            read_html("".join(markup for each in shown for markup in _html(each)).encode()).text
            for shown in (frames, [page])
        )
        slides.append((" ".join(title.split()), text))
    return _presentation(slides)


def _body(content: bytes) -> ElementTree.Element:
    """The body of an OpenDocument file, prepared for `_html`."""
    body = next(_root(_opened(content), "content.xml").iterfind("{*}body/*"))
    for table in body.iterfind(".//{*}table"):
        rows = table.findall(".//{*}table-row")
        if len(rows) > 1 and len(rows[0]) > 1:  # as in `_with_head`
            for cell in rows[0]:
                cell.tag = "th"
    for each in (*body.iterfind(".//{*}list-item"), *body.iterfind(".//{*}table-row/*")):
        if len(each.findall("{*}p")) == 1:
            each[0].tag = "span"  # or lists would have empty lines
    return body


def _html(element: ElementTree.Element) -> Iterator[str]:
    """An element of an OpenDocument file as HTML."""
    tag = element.tag.rpartition("}")[2]
    if tag in _ODT_UNREAD or tag.endswith("-index"):
        return
    if tag == "note-body":
        yield f" ({escape(' '.join(''.join(element.itertext()).split()))})"
        return
    name = _ODT_TAGS.get(tag, "span")
    if tag == "h":
        name = f"h{min(int(_attribute(element, 'outline-level') or 1), 6)}"
    elif tag == "p" and _attribute(element, "style-name") == "Title":
        name = "h1"
    yield f"<{name}>{' ' * (tag in ('s', 'tab'))}{escape(element.text or '')}"
    for child in element:
        yield from _html(child)
        yield escape(child.tail or "")
    yield f"</{name}>"


def _attribute(element: ElementTree.Element, name: str) -> str | None:
    return next((value for key, value in element.items() if key.endswith(f"}}{name}")), None)


def read_workbook(content: bytes) -> Reading:
    """The sheets of an Excel workbook or an OpenDocument spreadsheet as tables, under their names if there are several.

    Needs python-calamine.
    """
    from python_calamine import CalamineWorkbook, SheetTypeEnum

    _opened(content)
    workbook = CalamineWorkbook.from_filelike(BytesIO(content))
    names = [sheet.name for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    texts = {name: text for name in names if (text := _sheet(workbook.get_sheet_by_name(name).to_python()))}
    sheets = [f"## {name}\n\n{text}" if len(texts) > 1 else text for name, text in texts.items()]
    return Reading(text="\n\n".join(sheets))


read_ods = read_workbook


def _sheet(values: Iterable[Sequence[Any]]) -> str:
    """The single cells above the first row of several cells as text, and the table that begins there."""
    rows = [row for row in ([*map(_cell, cells)] for cells in values) if any(row)]
    head = next((number for number, row in enumerate(rows) if sum(map(bool, row)) > 1), 0)
    return "\n\n".join(["".join(row) for row in rows[:head]] + [_table(rows[head:])])


def _cell(value: Any) -> str:
    """A value as Excel shows it: a whole number without a point, others with their exact digits."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with the first row as its head."""
    lines = ["| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines[:1] + ["|" + "---|" * len(row) for row in rows[:1]] + lines[1:])


def read_slides(content: bytes) -> Reading:
    """The slides of a PowerPoint presentation: title, texts, tables, diagrams and notes."""
    archive = _opened(content)
    slides = _related(archive, _DECK)
    order = [each.get(_RELATIONSHIP, "") for each in _root(archive, _DECK).iterfind("{*}sldIdLst/{*}sldId")]
    read = []
    for part in (slides[each] for each in order):
        blocks = [*_blocks(_root(archive, part))]
        title = next((" ".join(text.split()) for kind, text in blocks if kind in _TITLES), "")
        shown = [text for kind, text in blocks if kind not in _TITLES and kind not in _FURNITURE]
        for path in _related(archive, part).values():
            if path.startswith(_BESIDE_SLIDES):
                shown += [text for kind, text in _blocks(_root(archive, path)) if kind in ("", "body")]
        read.append((title, "\n\n".join(shown)))
    return _presentation(read)


def _presentation(slides: Iterable[tuple[str, str]]) -> Reading:
    """The slides as text, without those that have neither title nor text."""
    shown = [(number, title, text) for number, (title, text) in enumerate(slides, 1) if title or text]
    texts = [f"# {title or f'Slide {number}'}\n\n{text}".strip() for number, title, text in shown]
    title = next((title for _, title, _ in shown if title), "")
    return Reading(text="\n\n".join(texts), title=title or None)


def _blocks(element: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """The shapes, tables and diagrams' points that have text, and the type of shapes' placeholders, such as "title"."""
    for child in element:
        match child.tag.rpartition("}")[2]:
            case "sp" | "pt":
                place = child.find(".//{*}ph")
                if text := _text(child):
                    yield "" if place is None else place.get("type", "body"), text
            case "tbl":
                rows = [[_text(cell) for cell in row.iterfind("{*}tc")] for row in child.iterfind("{*}tr")]
                yield "", _table(rows)
            case "Fallback":  # the same content for programs that do not know the choice beside it
                pass
            case _:
                yield from _blocks(child)


def _text(element: ElementTree.Element) -> str:
    """The paragraphs of a shape, one per line."""
    lines = ("".join(_runs(paragraph)).strip() for paragraph in element.iterfind(".//{*}p"))
    return "\n".join(filter(None, lines))


def _runs(paragraph: ElementTree.Element) -> Iterator[str]:
    for node in paragraph.iter():
        tag = node.tag.rpartition("}")[2]
        if tag in ("br", "t"):
            yield " " if tag == "br" else node.text or ""


def read_epub(content: bytes) -> Reading:
    """The pages of a book, in reading order."""
    archive = _opened(content)
    container = _root(archive, "META-INF/container.xml")
    book = next(each.attrib["full-path"] for each in container.iterfind(".//{*}rootfile"))
    root = _root(archive, book)
    pages = {each.get("id"): _path(book, each.attrib["href"]) for each in root.iterfind("{*}manifest/{*}item")}
    try:
        texts = [
            read_html(archive.read(pages[each.get("idref")])).text for each in root.iterfind("{*}spine/{*}itemref")
        ]
    except UnicodeDecodeError:
        return Reading(error="has pages that are no text; it may be locked by its seller")
    title = " ".join(root.findtext("{*}metadata/{*}title", "").split())
    return Reading(text="\n\n".join(filter(None, texts)), title=title or None)


def _opened(content: bytes) -> ZipFile:
    """A zip archive; raises ValueError if it unpacks to more than `MAX_UNPACKED_BYTES`."""
    archive = ZipFile(BytesIO(content))
    if sum(member.file_size for member in archive.infolist()) > MAX_UNPACKED_BYTES:
        raise ValueError(f"it unpacks to more than {MAX_UNPACKED_BYTES // 1024**2} MiB")
    return archive


def _root(archive: ZipFile, part: str) -> ElementTree.Element:
    return ElementTree.fromstring(archive.read(part))  # noqa: S314  # in a process with bounded time and memory


def _related(archive: ZipFile, part: str) -> dict[str, str]:
    """The parts that a part of an Office file refers to, by reference id."""
    folder, name = posixpath.split(part)
    relationships = f"{folder}/_rels/{name}.rels"
    if relationships not in archive.NameToInfo:
        return {}
    return {each.attrib["Id"]: _path(part, each.attrib["Target"]) for each in _root(archive, relationships)}


def _path(part: str, target: str) -> str:
    """The path in an archive of a part's target, which is relative to the part's folder or the archive."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(part), unquote(target))).lstrip("/")
