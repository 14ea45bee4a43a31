"""Extracting a file's text; unreadable files are refused with the reason."""

from __future__ import annotations

import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from retrieval.documents import extraction, readers, reading
from retrieval.documents.extraction import extract
from retrieval.documents.html import read_html
from retrieval.documents.reading import Reading
from retrieval.documents.splitting import headings
from retrieval.errors import InvalidInput
from retrieval.types.document import MAX_DOCUMENT_CHARS
from tests.exports import zipped
from tests.office import epub

PAGE = b"""<!doctype html><html><head><title> Tea &amp;
 time </title><style>p { color: red }</style></head><body><nav><a href="/">Home</a></nav>
<h1>Green <em>tea</em></h1><p>Steep at <b>70</b> degrees,<br>not   more.</p>
<ul><li>Sencha<li>Matcha</ul><table><tr><th>Leaf<th>Minutes</tr><tr><td>Sencha</td><td>2</td></tr></table>
<pre>a  = 1
  b</pre><script>alert("no")</script><div><div>Deep</div></div></body></html>"""


def pdf(*pages: str, password: str | None = None, title: str | None = None) -> bytes:
    """A PDF with a line of text on each page; an empty one has a page without text."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(width=600, height=800)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode() if text else b"")
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        page[NameObject("/Contents")] = writer._add_object(stream)
    if title:
        writer.add_metadata({"/Title": title})
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    written = BytesIO()
    writer.write(written)
    return written.getvalue()


def test_a_page_becomes_markdown() -> None:
    reading = read_html(PAGE)
    assert reading.title == "Tea & time"
    assert reading.text == (
        "# Green tea\n\nSteep at 70 degrees,\nnot more.\n\n- Sencha\n- Matcha\n\n| Leaf | Minutes\n|---|---|\n"
        "| Sencha | 2\n\n```\na  = 1\n  b\n```\n\nDeep"
    )


@pytest.mark.parametrize("main", ["<main>{}</main><p>Next</p>", '<div role="main">{}</div><div>Next</div>', "<main>{}"])
def test_what_lies_around_the_main_content_is_not_read(main: str) -> None:
    """Menus are often lists in a plain `div`."""
    content = main.format("<div><h1>Tea</h1></div><div>Steep it.</div><pre>a</pre>")
    page = f"<title>Tea - Shop</title><div><pre>b</pre><ul><li>Home<li>Cups</ul></div>{content}"
    assert read_html(page.encode()) == Reading(text="# Tea\n\nSteep it.\n\n```\na\n```", title="Tea - Shop")


def test_a_page_with_an_empty_main_content_is_read_whole() -> None:
    assert read_html(b"<p>Tea</p><main> </main><p>Cups</p>").text == "Tea\n\nCups"
    assert read_html(b"<main>Tea</main><p>Cups</p><main>Milk</main>").text == "Tea\n\nCups\n\nMilk"


def test_a_hidden_main_content_is_not_the_main_content() -> None:
    """A page may have several, of which one is shown."""
    assert read_html(b"<main hidden>Wait</main><p>Cups</p><main>Tea</main>").text == "Tea"
    assert read_html(b"<main hidden>Wait</main><p>Tea</p>").text == "Wait\n\nTea"


@pytest.mark.parametrize(
    "page", [b"", b"<", b"<p", b"</p></p>", b"<p>" * 50_000, b"<nav>x", b"<!--", b"<pre>x", b"<svg><title>x</title>"]
)
def test_broken_pages_are_read_as_far_as_they_go(page: bytes) -> None:
    assert read_html(page + b" ").error is None


async def test_each_kind_is_told_by_its_content() -> None:
    plain = await extract(b"Just tea.\r\nAnd water.", None)
    assert (plain.text, plain.structure, plain.media_type) == ("Just tea.\nAnd water.", "text", "text/plain")
    assert (await extract(b"# Tea\n\nGreen.", None)).media_type == "text/markdown"
    assert (await extract(PAGE, None)).structure == "markdown"
    found = await extract(pdf("Green tea", "Black tea", title="Tea"), None)
    assert (found.text, found.title, found.media_type) == ("Green tea\n\nBlack tea", "Tea", "application/pdf")


@pytest.mark.parametrize(
    "text", ["<!---->" * 140 + "x", "\n" * 90_000 + "x", "- [" + "](" * 40_000, "- [" * 30_000, "|" * 90_000]
)
async def test_telling_the_kind_ends_soon(text: str) -> None:
    """Expressions that try every way to divide these would take hours."""
    assert (await extract(text.encode(), None)).media_type == "text/plain"


async def test_a_page_may_begin_with_comments() -> None:
    assert (await extract(b"<!-- a -->\n<!-- b > -- c -->" + PAGE, None)).media_type == "text/html"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
async def test_the_kind_is_told_behind_a_byte_order_mark(encoding: str) -> None:
    page = '<?xml version="1.0"?>\n<!DOCTYPE html><html><body><p>café</p></body></html>'
    found = await extract(page.encode(encoding), None)
    assert (found.text, found.media_type) == ("café", "text/html")
    assert (await extract("# Café\n".encode(encoding), None)).media_type == "text/markdown"


async def test_each_kind_is_read_as_its_media_type_says() -> None:
    assert (await extract(b"# a comment\n", "text/x-python")).structure == "code"
    assert (await extract(b"<p>tea", "text/plain")).text == "<p>tea"
    assert (await extract("café".encode("latin-1"), "text/plain; charset=latin-1")).text == "café"
    assert (await extract("\ufeffcafé".encode("utf-16-le"), None)).text == "café"
    page = '<html><meta charset="windows-1252"><p>café'.encode("cp1252")
    assert (await extract(page, "text/html")).text == "café"


@pytest.mark.parametrize(
    ("content", "text", "told"),
    [
        ("Größe;Preis\nKüche;3 €\n".encode("cp1252"), "Größe;Preis\nKüche;3 €\n", "read as cp1252"),
        ("café ".encode() * 9 + b"caf\xe9", "café " * 9 + "caf\ufffd", "not UTF-8 throughout and was read as utf-8"),
        ("café".encode("utf-16-be"), "café", "read as utf-16-be"),
    ],
)
async def test_another_encoding_that_is_not_declared_is_assumed_as_in_imports(
    content: bytes, text: str, told: str
) -> None:
    found = await extract(content, "text/csv")
    assert found.text == text
    assert told in (found.warning or "")
    assert (await extract(text.encode(), "text/csv")).warning is None


@pytest.mark.parametrize(
    ("page", "encoding"),
    [
        ('<?xml version="1.0" encoding="ISO-8859-1"?><note size="2">café</note>', "latin-1"),
        ('<?xml version="1.0"?><note encoding="base64">café</note>', "utf-8"),
        ('<?xml version="1.0" encoding="utf-16"?><note>café</note>', "utf-8"),
    ],
)
async def test_xml_is_read_in_the_encoding_that_it_declares(page: str, encoding: str) -> None:
    """Unless that is impossible, as the declaration can be read without it."""
    assert (await extract(page.encode(encoding), "application/xml")).text == page
    html = page.replace("note", "html")
    assert (await extract(html.encode(encoding), "application/xhtml+xml")).text == "café"


@pytest.mark.parametrize(
    ("content", "media_type", "reason"),
    [
        (b"PK\x03\x04 word/document.xml", None, "zip archive of something else"),
        (b"\x89PNG\r\n", None, "a picture"),
        (b"PK\x03\x04", "text/plain", "zip archive"),
        (b"tea", "image/png", "cannot be read; supported are"),
        (b"tea", "tea", "cannot be read; supported are"),
        (b"tea", "application/pdf", "the content is not a PDF"),
        (pdf("tea"), "text/plain", "the content is a PDF"),
        (b"\xff\xfe\xff", None, "encoding"),
        (b"caf\xe9", None, "utf-8"),
        (b"tea", "text/plain; charset=klingon", "klingon"),
        (b"te\x00a", None, "binary"),
        (b"+2AA- tea", "text/plain; charset=utf-7", "utf-7"),
        (b"<html><meta charset=punycode>" + b"a-" + b"ba" * 9, "text/html", "punycode"),
        (b"<html><meta charset=idna>tea", "text/html", "idna"),
        (b"<html>\\ud800 tea", "text/html; charset=unicode_escape", "unicode_escape"),
        (b" \n ", None, "no text"),
        (b"<html><script>x</script></html>", None, "no text"),
        (pdf("", ""), None, "2 pages are pictures"),
        (pdf("secret", password="tea"), None, "encrypted"),
        (b"%PDF-1.7\n%%EOF", None, "cannot be read"),
        (pdf("tea")[:300], None, "cannot be read"),
    ],
)  # fmt: skip
async def test_what_cannot_be_read_is_refused(content: bytes, media_type: str | None, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        await extract(content, media_type)


async def test_a_longer_text_than_the_limit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="5,000,001 characters"):
        await extract(b"a" * (MAX_DOCUMENT_CHARS + 1), "text/plain")


def test_a_reader_does_not_hand_on_a_text_that_is_too_long(monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> None:
    """A small file may unpack to one that fills the server's memory."""
    monkeypatch.setattr(reading, "MAX_DOCUMENT_CHARS", 1_000)
    monkeypatch.setattr(sys, "argv", ["readers", "html"])
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"<p>" + b"tea " * 300)))
    readers.main()
    written = capfdbinary.readouterr().out
    assert b"has a text of 1,200 characters, more than 1,000" in written
    assert b"tea tea" not in written


@pytest.mark.parametrize(
    "content",
    [
        epub("tea" * 300_000, {"a.xhtml": "tea"}),
        zipped({"META-INF/container.xml": f"<a><rootfile full-path='{'tea' * 300_000}'/></a>"}),
    ],
    ids=["title", "failure"],
)
def test_nor_a_title_or_a_failure(monkeypatch: pytest.MonkeyPatch, capfdbinary: Any, content: bytes) -> None:
    monkeypatch.setattr(sys, "argv", ["readers", "epub"])
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(content)))
    readers.main()
    assert len(capfdbinary.readouterr().out) < 1_000


async def test_a_pdf_that_unpacks_to_far_more_than_it_is_harms_nobody() -> None:
    """A page of a gigabyte of spaces."""
    writer = PdfWriter()
    page = writer.add_blank_page(width=600, height=800)
    stream = DecodedStreamObject()
    stream.set_data(b" " * 300_000_000)
    page[NameObject("/Contents")] = writer._add_object(stream.flate_encode())
    written = BytesIO()
    writer.write(written)
    assert len(written.getvalue()) < 1_000_000
    with pytest.raises(InvalidInput, match=r"cannot be read|takes|pictures"):
        await extract(written.getvalue(), None)


async def test_a_reader_takes_nothing_from_the_folder_in_which_one_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "logging.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert (await extract(PAGE, None)).text


async def test_a_reader_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs instead of it sleeps for ever."""
    monkeypatch.setattr(extraction, "MAX_CPU_S", 0.1)
    monkeypatch.setattr(readers, "__name__", "tests.sleeping")
    with pytest.raises(InvalidInput, match="takes too long"):
        await extract(PAGE, None)


@pytest.mark.parametrize(
    ("reader", "library"), [("pdf", "pypdf"), ("word", "mammoth"), ("workbook", "python_calamine")]
)
def test_a_file_says_what_to_install_for_it(
    reader: str, library: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    """A server without the extra `documents`."""
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(sys, "argv", ["readers", reader])
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(pdf("tea"))))
    readers.main()
    found = capfdbinary.readouterr().out
    assert f"without {library}: pip install 'trivet[documents]'".encode() in found


async def test_paragraphs_in_cells_and_items_begin_no_line() -> None:
    rows = ("36", "Owen", ""), ("37", "", "Hana")
    cells = "".join(f"<tr>{''.join(f'<td><p>{cell}</p></td>' for cell in row)}</tr>" for row in rows)
    page = f"<html><body><ul><li><p>Tea</p></li></ul><table>{cells}</table><p>After.</p></body></html>"
    assert (await extract(page.encode(), None)).text == "- Tea\n\n| 36 | Owen\n| 37 |  | Hana\n\nAfter."
    plain = "<html><body><table><tr><td>a</td><td>b</td></tr><tr><td></td><td>c</td></tr></table></body></html>"
    assert (await extract(plain.encode(), None)).text == "| a | b\n| | c"
    unclosed = "<html><body><table><tr><td>a<td></table><p>After.</p></body></html>"
    assert (await extract(unclosed.encode(), None)).text == "| a\n\nAfter."


@pytest.mark.parametrize("row", ["<tr>{}</tr>", "<tr>{}"])
def test_a_table_with_a_head_has_a_line_for_each_row(row: str) -> None:
    cells = "<th>Leaf<th><p>Time</p><p>in minutes</p>", "<td>Sencha<td>2<br/>or 3", "<th>Matcha<td><ul><li>1</ul>"
    head, *body = (row.format(each) for each in cells)
    page = f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table><div>a</div><div>b</div>"
    assert read_html(page.encode()).text == (
        "| Leaf | Time in minutes\n|---|---|\n| Sencha | 2 or 3\n| Matcha | 1\n\na\n\nb"
    )
    layout = b"<table><tr><th>Tea<td><p>Green</p><p>Black</p></tr><tr><th>Milk<td>No</table>"
    assert read_html(layout).text == "| Tea | Green\n\nBlack\n\n| Milk | No"
    assert read_html(b"<nav><table><tr><th>Home<tr><td>Tea</table></nav>Cups").text == "Cups"


async def test_a_heading_that_unfolds_its_section_is_read() -> None:
    page = b"<html><body><h2><button>May I smoke?</button></h2><p>No.</p><button>Send</button></body></html>"
    assert (await extract(page, None)).text == "## May I smoke?\n\nNo."
    assert read_html(b"<h1>Struct <b>Kettle</b><button>Copy path</button></h1><p>Boils.").text == (
        "# Struct Kettle\n\nBoils."
    )
    assert read_html(b"<nav><h2><button>Menu</button></h2>Home</nav><p>Tea").text == "Tea"


async def test_a_link_of_a_heading_to_itself_is_no_part_of_it() -> None:
    page = "<html><h2><a>§</a>Tea</h2><p>§ 2</p><h2>Milk <a>¶</a></h2><h2>Rum<a>\u200b</a></h2></html>"
    found = await extract(page.encode(), "text/html")
    assert [each.title for each in headings(found.text, "markdown")] == ["Tea", "Milk", "Rum"]
    assert "§ 2" in found.text


@pytest.mark.parametrize("end", ["</pre><h2>Milk</h2>", ""])
async def test_preformatted_text_may_show_markdown(end: str) -> None:
    """Fences and headings in it do not belong to the page, even if it is not closed."""
    page = f"<html><h1>Tea</h1><pre>```sh\n# steep\n```\n# pour\n{end}</html>"
    found = await extract(page.encode(), "text/html")
    assert [each.title for each in headings(found.text, "markdown")] == ["Tea", *(["Milk"] if end else [])]
    assert "\n```sh\n# steep\n```\n# pour\n" in found.text


async def test_the_dots_of_a_table_of_contents_are_few() -> None:
    found = await extract(
        pdf("1 Green tea . . . . . . . . 3", "2 Black tea..........5", "Wait... What? A. B. C."), None
    )
    assert found.text == "1 Green tea … 3\n\n2 Black tea… 5\n\nWait... What? A. B. C."


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ('---\ntitle: "Deploy guide"\nsidebar: x\n---\n\n# Deploying\n', "Deploy guide"),
        ("[![badge](https://example.org/b.svg)](https://example.org)\n\n# Deploying\n\n## Before\n", "Deploying"),
        ("An introduction.\n\n# Before\n\n# After\n", None),
    ],
)
async def test_markdown_has_its_own_title(page: str, title: str | None) -> None:
    assert (await extract(page.encode(), "text/markdown")).title == title


@pytest.mark.parametrize(
    "title",
    [
        "(anonymous)",
        "untitled",
        "Untitled-2",
        "Microsoft Word - report 3.doc",
        "PowerPoint Presentation",
        "Final report.docx",
        "Slide 1",
        " ",
    ],
)
async def test_what_a_program_writes_instead_of_a_title_is_none(title: str) -> None:
    assert (await extract(pdf("Green tea", title=title), None)).title is None


@pytest.mark.parametrize(
    "title", ["Microsoft Word", "An untitled play", "What is robots.txt", "Document 9 of the court"]
)
async def test_a_title_that_only_looks_like_that_is_kept(title: str) -> None:
    assert (await extract(pdf("Green tea", title=title), None)).title == title
