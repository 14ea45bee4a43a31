"""Word, Excel and PowerPoint files, books and notebooks become Markdown; what is broken is refused with the reason."""

from __future__ import annotations

from datetime import date
from io import BytesIO
from zipfile import ZIP_STORED, ZipFile

import pytest

from retrieval.documents import zipped as zipped_files
from retrieval.documents.extraction import MEDIA_TYPES, extract
from retrieval.documents.splitting import DocumentSplitter
from retrieval.documents.zipped import read_workbook
from retrieval.errors import InvalidInput
from retrieval.text.word_pieces import count_pieces
from tests.exports import zipped
from tests.office import (
    epub,
    notebook,
    ods,
    odt,
    open_document,
    shape,
    slide_table,
    slides,
    word,
    workbook,
)

DOCUMENT = word(
    ("Title", "Tea handbook"),
    ("heading 1", "Green"),
    ("", "Steep it at 70 degrees."),
    [["Leaf", "Minutes"], ["Sencha", "2\nor 3"]],
    ("heading 2", "Matcha"),
    ("", "Whisk it."),
)
TEXT = odt(
    """<text:tracked-changes><text:p>Deleted.</text:p></text:tracked-changes>
<text:table-of-content><text:p>Green 1</text:p></text:table-of-content>
<text:p text:style-name="Title">Tea handbook</text:p><text:h text:outline-level="2">Green</text:h>
<text:p>Steep<text:s/>it at <text:span>70</text:span> degrees<text:note><text:note-citation>1</text:note-citation>
<text:note-body><text:p>Not more.</text:p></text:note-body></text:note> &amp; pour.<office:annotation><text:p>Why
</text:p></office:annotation></text:p><text:list><text:list-item><text:p>Sencha</text:p></text:list-item><text:list-item>
<text:p>Matcha</text:p></text:list-item></text:list><table:table><table:table-row><table:table-cell><text:p>Leaf</text:p>
</table:table-cell><table:table-cell><text:p>Minutes</text:p></table:table-cell></table:table-row><table:table-row>
<table:table-cell><text:p>Sencha</text:p></table:table-cell><table:table-cell><text:p>2</text:p><text:p>or 3</text:p>
</table:table-cell></table:table-row></table:table><text:section><text:p>Drink.</text:p></text:section>""".replace(
        "\n", ""
    )
)
PRICES = workbook(Prices=[["lamp", "price"], ["Bergamot", 39]])
DECK = slides(shape("Tea in 2024", "ctrTitle") + shape("by the kettle team", "subTitle"))
SHEET = ods(["lamp", "price"], ["Bergamot", "39"])
SHOW = open_document(
    "presentation",
    """<presentation:footer-decl>2024</presentation:footer-decl><draw:page><draw:frame presentation:class="title">
<draw:text-box><text:p>Tea<text:line-break/>in <text:span>2024</text:span></text:p></draw:text-box></draw:frame>
<draw:frame><draw:text-box><text:list><text:list-item><text:p>Green</text:p></text:list-item></text:list></draw:text-box>
</draw:frame><presentation:notes><draw:frame presentation:class="notes"><draw:text-box><text:p>Slowly.</text:p>
</draw:text-box></draw:frame></presentation:notes></draw:page><draw:page/><draw:page><draw:custom-shape><text:p>Drink.</text:p></draw:custom-shape>
</draw:page>""".replace("\n", ""),
)
BOOK = epub("The book of tea", {"1.xhtml": "<h1>Green</h1>"})
NOTEBOOK = notebook(("markdown", "# Tea"), ("code", "print('printed')"))


async def test_a_word_document() -> None:
    found = await extract(DOCUMENT, None)
    assert found.text == (
        "# Tea handbook\n\n# Green\n\nSteep it at 70 degrees.\n\n"
        "| Leaf | Minutes\n|---|---|\n| Sencha | 2 or 3\n\n## Matcha\n\nWhisk it."
    )
    assert (found.title, found.structure) == ("Tea handbook", "markdown")


async def test_a_word_document_without_a_title_has_that_of_its_one_heading() -> None:
    assert (await extract(word(("heading 1", "Green"), ("", "Steep it.")), None)).title == "Green"


async def test_a_frame_around_a_text_is_no_table() -> None:
    framed = word([["Beware.\nIt is hot."], ["Steep it.\nPour it."]])
    assert (await extract(framed, None)).text == "| Beware.\n\nIt is hot.\n| Steep it.\n\nPour it."


async def test_an_opendocument_text() -> None:
    """Without comments, what was deleted and the table of contents."""
    found = await extract(TEXT, None)
    assert found.text == (
        "# Tea handbook\n\n## Green\n\nSteep it at 70 degrees (Not more.) & pour.\n\n- Sencha\n- Matcha\n\n"
        "| Leaf | Minutes\n|---|---|\n| Sencha | 2 or 3\n\nDrink."
    )
    assert (found.title, found.structure) == ("Tea handbook", "markdown")


@pytest.mark.parametrize("file", [odt("<table:table/><text:p>Steep it.</text:p>"), word([], ("", "Steep it."))])
async def test_a_table_without_rows_is_nothing(file: bytes) -> None:
    assert (await extract(file, None)).text == "Steep it."


async def test_an_opendocument_text_without_a_title_has_that_of_its_one_heading() -> None:
    assert (await extract(odt("<text:h>Green</text:h><text:p>Steep it.</text:p>"), None)).title == "Green"


async def test_an_opendocument_spreadsheet_is_read_as_a_workbook() -> None:
    assert (await extract(SHEET, None)).text == "| lamp | price |\n|---|---|\n| Bergamot | 39 |"


async def test_an_opendocument_presentation_is_read_as_slides() -> None:
    found = await extract(SHOW, None)
    assert found.text == "# Tea in 2024\n\n- Green\n\nSlowly.\n\n# Slide 3\n\nDrink."
    assert found.title == "Tea in 2024"


async def test_a_workbook() -> None:
    found = await extract(
        workbook(
            Prices=[
                ["Price list"],
                [],
                ["lamp", "price", "since"],
                ["Bergamot", 39, date(2024, 5, 1)],
                ["Cop|per", 0.1 + 0.2],
            ],
            Empty=[],
            Staff=[["name"], ["Ana"]],
        ),
        None,
    )
    assert found.text == (
        "## Prices\n\nPrice list\n\n| lamp | price | since |\n|---|---|---|\n| Bergamot | 39 | 2024-05-01 |\n"
        "| Cop\\|per | 0.3 |  |\n\n## Staff\n\n| name |\n|---|\n| Ana |"
    )
    assert found.title is None


async def test_each_chunk_of_a_sheet_has_the_names_of_its_columns() -> None:
    rows = [[f"Lamp {number}", number * 7, number % 5] for number in range(90)]
    found = await extract(workbook(Lamps=[["lamp", "price", "in stock"], *rows]), None)
    first, *others = DocumentSplitter(count_pieces).split(found.text, found.structure)
    assert first.text.startswith("| lamp | price | in stock |")
    assert {chunk.headings for chunk in others} == {("lamp | price | in stock",)}


async def test_slides() -> None:
    """In the order in which they are shown; a slide without a title has its number."""
    choice = f"<Choice>{shape('Sencha')}</Choice><Fallback>{shape('Sencha')}</Fallback>"
    found = await extract(
        slides(
            shape("Tea\nin 2024", "ctrTitle") + shape("by the kettle team", "subTitle"),
            f"<p:grpSp>{choice}</p:grpSp>" + slide_table(["Leaf", "Minutes"], ["Sencha", "2"]) + shape("7", "sldNum"),
            shape("", "body"),
            shape("First\nSecond") + shape("Plan", "title"),
            notes={4: "Say hello."},
            diagrams={4: "Third"},
        ),
        None,
    )
    assert found.text == (
        "# Tea in 2024\n\nby the kettle team\n\n"
        "# Slide 2\n\nSencha\n\n| Leaf | Minutes |\n|---|---|\n| Sencha | 2 |\n\n"
        "# Plan\n\nFirst\nSecond\n\nSay hello.\n\nThird"
    )
    assert found.title == "Tea in 2024"


async def test_a_book() -> None:
    """Its pages in the order of reading, whatever their names are."""
    found = await extract(
        epub(
            "The book\n of tea",
            {
                "toc.xhtml": "<html><body><nav>Contents</nav></body></html>",
                "text/b 2.xhtml": "\ufeff<html><head><title/></head><body><h1>Green</h1></body></html>",
                "a.xhtml": "<h1>Black</h1><p>Boil it.</p>",
            },
        ),
        None,
    )
    assert (found.text, found.title) == ("# Green\n\n# Black\n\nBoil it.", "The book of tea")


async def test_a_notebook() -> None:
    """Without what its code has printed."""
    cells = ("markdown", "# Tea\n\nHow long?"), ("code", "# steep\nminutes = '```'"), ("code", ""), ("raw", "Done.")
    found = await extract(notebook(*cells), None)
    assert found.text == "# Tea\n\nHow long?\n\n````\n# steep\nminutes = '```'\n````\n\nDone."
    assert found.title == "Tea"


@pytest.mark.parametrize(
    ("content", "form"),
    [
        *((DOCUMENT, "word"), (PRICES, "workbook"), (DECK, "slides"), (TEXT, "odt"), (SHEET, "ods"), (SHOW, "odp")),
        *((BOOK, "epub"), (NOTEBOOK, "notebook")),
    ],
)
async def test_each_is_read_by_its_media_type_and_without(content: bytes, form: str) -> None:
    media_type = next(name for name, of in MEDIA_TYPES.items() if of == form)
    assert (await extract(content, None)).media_type == media_type
    assert (await extract(content, media_type)).text == (await extract(content, None)).text


async def test_a_file_within_another_does_not_tell_what_it_is() -> None:
    """As the workbook behind a chart."""
    written = BytesIO(DOCUMENT)
    with ZipFile(written, "a", ZIP_STORED) as archive:
        archive.writestr("word/embeddings/prices.xlsx", PRICES)
    assert (await extract(written.getvalue(), None)).title == "Tea handbook"


@pytest.mark.parametrize(
    ("content", "media_type", "reason"),
    [
        (DOCUMENT[:-30], None, "not a zip file"),
        (DOCUMENT[:300], None, "a zip archive of something else, or a damaged one"),
        (zipped({"tea.txt": "tea"}), None, "a zip archive of something else"),
        (b"\xd0\xcf\x11\xe0", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "password"),
        (DOCUMENT, "application/epub+zip", "the content is a Word document"),
        (DOCUMENT, "text/plain", "the content is a Word document"),
        (b"tea", "application/epub+zip", "the content is not an EPUB"),
        (b"tea", "application/x-ipynb+json", "cannot be read"),
        (b'{"worksheets": [], "nbformat": 3}', None, "cells"),
        (zipped({"word/document.xml": "<tea"}), None, "cannot be read"),
        (zipped({"xl/workbook.xml": "<tea"}), None, "cannot be read"),
        (zipped({"ppt/presentation.xml": "<tea"}), None, "cannot be read"),
        (zipped({"META-INF/container.xml": "<tea/>"}), None, "cannot be read"),
        (odt("<tea"), None, "cannot be read"),
        (odt("<text:span>" * 2_000 + "</text:span>" * 2_000), None, "cannot be read: its parts are nested too deeply"),
        (b"{\\rtf1 Tea}", None, "an RTF file"),
        (epub("Tea", {"a.xhtml": b"\x91\xfe\x00\xd8locked"}), None, "locked"),
        (slides(shape("")), None, "no text"),
        (workbook(Empty=[]), None, "no text"),
    ],
)  # fmt: skip
async def test_what_cannot_be_read_is_refused(content: bytes, media_type: str | None, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        await extract(content, media_type)


async def test_what_a_file_names_outside_of_it_is_not_read() -> None:
    secret = '<!DOCTYPE tea [<!ENTITY secret SYSTEM "file:///etc/hostname">]>'
    deck = slides(shape("Tea &secret;"))
    with ZipFile(BytesIO(deck)) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    files["ppt/slides/slide1.xml"] = secret + files["ppt/slides/slide1.xml"]
    with pytest.raises(InvalidInput, match="undefined entity"):
        await extract(zipped(files), None)


def test_an_archive_that_unpacks_to_far_more_than_it_is_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipped_files, "MAX_UNPACKED_BYTES", 1_000)
    with pytest.raises(ValueError, match="unpacks to more than"):
        read_workbook(PRICES)
