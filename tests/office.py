"""Word, Excel and PowerPoint files, books and notebooks, as small as possible."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from io import BytesIO
from zipfile import ZipFile

from tests.exports import zipped

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
_P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
_TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_R = f'xmlns:r="{_TYPES}"'
_FIRST_DAY = date(1899, 12, 30)


def _related(**targets: str) -> str:
    """Relationships by id; each id is its type and a number."""
    rows = (
        f'<Relationship Id="{name}" Type="{_TYPES}/{name.rstrip("0123456789")}" Target="{target}"/>'
        for name, target in targets.items()
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{"".join(rows)}</Relationships>'


def word(*blocks: tuple[str, str] | list[list[str]]) -> bytes:
    """A Word document of paragraphs, each with the name of its style, and tables; a line end begins a paragraph."""
    body = "".join(
        _word_paragraph(block[1], block[0])
        if isinstance(block, tuple)
        else f"<w:tbl>{''.join(map(_word_row, block))}</w:tbl>"
        for block in blocks
    )
    styles = dict.fromkeys(block[0] for block in blocks if isinstance(block, tuple) and block[0])
    named = "".join(
        f'<w:style w:type="paragraph" w:styleId="s{name}"><w:name w:val="{name}"/></w:style>' for name in styles
    )
    return zipped(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
            "_rels/.rels": _related(officeDocument="word/document.xml"),
            "word/styles.xml": f"<w:styles {_W}>{named}</w:styles>",
            "word/document.xml": f"<w:document {_W}><w:body>{body}</w:body></w:document>",
        }
    )


def _word_paragraph(text: str, style: str) -> str:
    properties = f'<w:pPr><w:pStyle w:val="s{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def _word_row(cells: Sequence[str]) -> str:
    filled = ("".join(_word_paragraph(line, "") for line in cell.split("\n")) for cell in cells)
    return f"<w:tr>{''.join(f'<w:tc>{paragraphs}</w:tc>' for paragraphs in filled)}</w:tr>"


def open_document(kind: str, body: str) -> bytes:
    """An OpenDocument text, spreadsheet or presentation of this XML."""
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text", "table", "draw", "presentation")
    )
    written = BytesIO()
    with ZipFile(written, "w") as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        content = f"<office:document-content{names}><office:body><office:{kind}>{body}</office:{kind}></office:body>"
        archive.writestr("content.xml", f"{content}</office:document-content>")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return written.getvalue()


def odt(body: str) -> bytes:
    """An OpenDocument text of this XML."""
    return open_document("text", body)


def ods(*rows: Sequence[str]) -> bytes:
    """An OpenDocument spreadsheet of one sheet."""
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    lines = "".join(f"<table:table-row>{''.join(map(cell.format, row))}</table:table-row>" for row in rows)
    return open_document("spreadsheet", f'<table:table table:name="Sheet1">{lines}</table:table>')


def workbook(**sheets: Sequence[Sequence[object]]) -> bytes:
    """An Excel workbook of sheets by name."""
    names = list(enumerate(sheets, 1))
    listed = "".join(f'<sheet name="{name}" sheetId="{number}" r:id="worksheet{number}"/>' for number, name in names)
    return zipped(
        {
            "_rels/.rels": _related(officeDocument="xl/workbook.xml"),
            "xl/_rels/workbook.xml.rels": _related(
                styles="styles.xml", **{f"worksheet{number}": f"worksheets/sheet{number}.xml" for number, _ in names}
            ),
            "xl/workbook.xml": f"<workbook {_S} {_R}><sheets>{listed}</sheets></workbook>",
            "xl/styles.xml": f'<styleSheet {_S}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
            **{f"xl/worksheets/sheet{number}.xml": _worksheet(sheets[name]) for number, name in names},
        }
    )


def _worksheet(rows: Sequence[Sequence[object]]) -> str:
    lines = "".join(f'<row r="{number}">{"".join(_cells(number, row))}</row>' for number, row in enumerate(rows, 1))
    return f"<worksheet {_S}><sheetData>{lines}</sheetData></worksheet>"


def _cells(number: int, row: Sequence[object]) -> Iterator[str]:
    for column, value in zip("ABCDEFGH", row, strict=False):
        if isinstance(value, str):
            yield f'<c r="{column}{number}" t="inlineStr"><is><t>{value}</t></is></c>'
        elif isinstance(value, date):
            yield f'<c r="{column}{number}" s="1"><v>{(value - _FIRST_DAY).days}</v></c>'
        elif value is not None:
            yield f'<c r="{column}{number}"><v>{value!r}</v></c>'


def slides(*shapes: str, notes: Mapping[int, str] | None = None, diagrams: Mapping[int, str] | None = None) -> bytes:
    """A PowerPoint presentation of the shapes of each slide, and notes and diagrams by the number of their slide.

    The files of the slides are numbered backwards, as can happen when slides are moved.
    """
    numbers = range(1, len(shapes) + 1)
    listed = "".join(f'<p:sldId id="{255 + number}" r:id="slide{number}"/>' for number in numbers)
    names = {number: f"slide{len(shapes) + 1 - number}.xml" for number in numbers}
    files = {
        "ppt/presentation.xml": f"<p:presentation {_P} {_R}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": _related(
            **{f"slide{number}": f"slides/{name}" for number, name in names.items()}
        ),
    }
    for number, name in names.items():
        beside = {}
        if text := (notes or {}).get(number):
            beside["notesSlide1"] = f"../notesSlides/notesSlide{number}.xml"
            files[f"ppt/notesSlides/notesSlide{number}.xml"] = _slide(shape("1", "sldNum") + shape(text, "body"))
        if text := (diagrams or {}).get(number):
            beside["diagramData1"] = f"/ppt/diagrams/data{number}.xml"
            files[f"ppt/diagrams/data{number}.xml"] = f"<model {_A}><pt><t>{_paragraphs(text)}</t></pt></model>"
        files[f"ppt/slides/{name}"] = _slide(shapes[number - 1])
        files[f"ppt/slides/_rels/{name}.rels"] = _related(**beside)
    return zipped(files)


def _slide(shapes: str) -> str:
    return f"<p:sld {_P} {_A} {_R}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"


def shape(text: str, place: str | None = None) -> str:
    """A shape with a text of lines; `place` is its placeholder type on the slide."""
    role = f'<p:nvSpPr><p:nvPr><p:ph type="{place}"/></p:nvPr></p:nvSpPr>' if place else ""
    return f"<p:sp>{role}<p:txBody>{_paragraphs(text)}</p:txBody></p:sp>"


def slide_table(*rows: Sequence[str]) -> str:
    """A table on a slide."""
    lines = (
        f"<a:tr>{''.join(f'<a:tc><a:txBody>{_paragraphs(cell)}</a:txBody></a:tc>' for cell in row)}</a:tr>"
        for row in rows
    )
    return f"<p:graphicFrame><a:tbl>{''.join(lines)}</a:tbl></p:graphicFrame>"


def _paragraphs(text: str) -> str:
    return "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))


def epub(title: str, pages: Mapping[str, str | bytes]) -> bytes:
    """A book of pages by the names of their files, in reading order."""
    items = "".join(f'<item id="p{number}" href="{name.replace(" ", "%20")}"/>' for number, name in enumerate(pages))
    spine = "".join(f'<itemref idref="p{number}"/>' for number, _ in enumerate(pages))
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": (
                '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
                '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
            ),
            "OEBPS/book.opf": (
                '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
                f"<dc:title>{title}</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
            ),
            **{f"OEBPS/{name}": pages[name] for name in sorted(pages)},
        }
    )


def notebook(*cells: tuple[str, str]) -> bytes:
    """A Jupyter notebook of cells with their types; code has an output."""
    written = [
        {
            "cell_type": kind,
            "source": source.splitlines(keepends=True),
            "metadata": {},
            **({"outputs": [{"output_type": "stream", "text": ["printed"]}]} if kind == "code" else {}),
        }
        for kind, source in cells
    ]
    return json.dumps({"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1).encode()
