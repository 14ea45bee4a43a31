"""Extracts the text of a document that a caller sends: by media type or, without one, by content."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from typing import Literal

import msgspec

from retrieval.documents import readers
from retrieval.documents.readers import MAX_CPU_S
from retrieval.documents.reading import Reading, check_length
from retrieval.documents.splitting import Structure, title_in
from retrieval.errors import InvalidInput
from retrieval.imports.files import FilePart, decode_declared

Form = Literal[
    "text", "markdown", "code", "table", "html", "notebook", "pdf", "word", "workbook", "slides", "odt", "ods", "odp",
    "epub"
]  # fmt: skip

_CODE = ("javascript", "json", "sql", "toml", "typescript", "x-httpd-php", "x-sh", "xml", "yaml")

MEDIA_TYPES: Mapping[str, Form] = {
    "text/plain": "text",
    "text/x-rst": "text",
    "text/csv": "table",
    "text/tab-separated-values": "table",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/x-ipynb+json": "notebook",
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "word",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "workbook",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "slides",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.presentation": "odp",
    "application/epub+zip": "epub",
    **{f"application/{name}": "code" for name in _CODE},
}
"""Supported media types, the usual name of a form first; any other `text/...` is source code."""

_USUAL: Mapping[Form, str] = {MEDIA_TYPES[name]: name for name in reversed([*MEDIA_TYPES])}

_READ = "text, Markdown, HTML, PDF, .docx, .xlsx, .pptx, .odt, .ods, .odp, EPUB, Jupyter notebooks and source code"

_NAMES: Mapping[Form, str] = {
    "pdf": "a PDF",
    "word": "a Word document",
    "workbook": "an Excel workbook",
    "slides": "a PowerPoint presentation",
    "odt": "an OpenDocument text",
    "ods": "an OpenDocument spreadsheet",
    "odp": "an OpenDocument presentation",
    "epub": "an EPUB",
}
"""Forms that are not text."""

_PARTS: Mapping[bytes, Form] = {
    b"word/": "word",
    b"xl/": "workbook",
    b"ppt/": "slides",
    b"META-INF/container.xml": "epub",
}
_PART = re.compile(rb"PK\x01\x02.{42}(" + b"|".join(map(re.escape, _PARTS)) + b")", re.DOTALL)
"""Tells the form of a zip archive by its list of files, which is at its end, after those of nested archives."""

_OPEN_DOCUMENT = re.compile(
    rb"PK\x03\x04.{26}mimetype(application/vnd\.oasis\.opendocument\.(?:text|spreadsheet|presentation))", re.DOTALL
)
"""The first file of an OpenDocument file, uncompressed."""

_NOTEBOOK = re.compile(rb'\s*\{.*"nbformat"\s*:', re.DOTALL)

_ENCODINGS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_DECLARED = re.compile(
    r"""(?:<\?xml[^>]*?\sencoding|charset)\s*=\s*["']?(?!utf-?16|utf-?32)([\w.:-]+)""", re.IGNORECASE
)
"""The encoding declared in HTML and XML; a declaration of UTF-16 that is readable as ASCII is wrong."""

_HTML = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_MARKDOWN = re.compile(
    r"^(?:#{1,6} \S|```|[ \t]*[-*] \[[^\]\n]+\]\([^)\n]+\)|\|.+\|[ \t]*\r?\n\|[-:| ]+\|)", re.MULTILINE
)
_SEPARATOR = re.compile(r"\Asep=.\n")
"""The line that tells Excel the separator of a table, above the names of the columns."""

_BINARY: Mapping[bytes, str] = {
    b"PK\x03\x04": "a zip archive of something else, or a damaged one",
    b"\xd0\xcf\x11\xe0": "an Office file of before 2007 or with a password",
    b"{\\rtf": "an RTF file",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"\x1f\x8b": "a gzip archive",
}
_SNIFFED_BYTES = 1_024
_AT_ONCE = nullcontext()


@dataclass(frozen=True, kw_only=True, slots=True)
class Extract:
    """The text of a document and how it shows its structure.

    Attributes:
        title: the document's own, if it has one.
        warning: what had to be assumed.
    """

    text: str
    structure: Structure
    media_type: str
    title: str | None = None
    warning: str | None = None


async def extract(
    content: bytes, media_type: str | None, turn: AbstractAsyncContextManager[object] = _AT_ONCE
) -> Extract:
    """The text of a file; a process reads it within `turn`, unless it is plain text.

    Raises InvalidInput for an unsupported media type, or a file that is of another type, damaged or encrypted, or that
    has no text or too much of it.
    """
    form = _form(content, media_type)
    warning = None
    if form in _NAMES:
        async with turn:
            reading = await _read_apart(form, content)
    else:
        decoded, warning = await asyncio.to_thread(_decoded, content, media_type, form)
        reading = Reading(text=decoded)
        if form in ("html", "notebook"):
            async with turn:
                reading = await _read_apart(form, decoded.encode())
    text = reading.text.replace("\r\n", "\n").replace("\r", "\n")
    if form == "table":
        text = _SEPARATOR.sub("", text)
    if not text.strip():
        raise InvalidInput("has no text")
    check_length(text)
    structure: Structure = form if form in ("text", "code", "table") else "text" if form == "pdf" else "markdown"
    return Extract(
        text=text,
        structure=structure,
        media_type=_without_parameters(media_type) if media_type else _USUAL[form],
        title=reading.title or await asyncio.to_thread(title_in, text, structure),
        warning=warning,
    )


def _form(content: bytes, media_type: str | None) -> Form:
    """How to read a file: as its media type says, if its content fits."""
    found = _packed_form(content)
    if media_type is None:
        if found:
            return found
        _refuse_binary(content)
        head = content[:100_000].decode(_marked_encoding(content) or "utf-8", "ignore")
        if _HTML.match(head[:_SNIFFED_BYTES]):
            return "html"
        if _NOTEBOOK.match(content.removeprefix(codecs.BOM_UTF8)):
            return "notebook"
        return "markdown" if _MARKDOWN.search(head) else "text"
    name = _without_parameters(media_type)
    form = MEDIA_TYPES.get(name) or ("code" if name.startswith("text/") else None)
    if form is None:
        raise InvalidInput(f"cannot be read; supported are text/* and {', '.join(MEDIA_TYPES)}", loc=("media_type",))
    if found is None:
        _refuse_binary(content)
    if found != form and (found or form in _NAMES):
        raise InvalidInput(f"the content is {_NAMES[found] if found else f'not {_NAMES[form]}'}", loc=("media_type",))
    return form


def _without_parameters(media_type: str) -> str:
    """The name of a media type, without parameters such as its encoding."""
    return media_type.partition(";")[0].strip().lower()


def _packed_form(content: bytes) -> Form | None:
    """The form of a file that is not text; None for text."""
    if b"%PDF-" in content[:_SNIFFED_BYTES] and _marked_encoding(content) is None:
        return "pdf"
    if first := _OPEN_DOCUMENT.match(content):
        return MEDIA_TYPES[first[1].decode()]
    parts = _PART.findall(content) if content.startswith(b"PK\x03\x04") else []
    return _PARTS[parts[-1]] if parts else None


def _refuse_binary(content: bytes) -> None:
    for mark, what in _BINARY.items():
        if content.startswith(mark):
            raise InvalidInput(f"cannot be read: it is {what}; supported are {_READ}")


def _decoded(content: bytes, media_type: str | None, form: Form) -> tuple[str, str | None]:
    """The text of a file by its byte order mark or declared encoding, or else by guessing, with a warning.

    Without a media type, text is UTF-8.
    """
    declared = _CHARSET.search(media_type or "")
    if declared is None and (form == "html" or content.startswith(b"<?xml")):
        declared = _DECLARED.search(content[:_SNIFFED_BYTES].decode("latin-1"))
    encoding = _marked_encoding(content) or (declared[1] if declared else None if media_type else "utf-8")
    encoding, errors = (encoding, "strict") if encoding else FilePart(name="", file=BytesIO(content)).encoding
    told = "convert it to UTF-8, or name its encoding in the media type, as in `text/plain; charset=iso-8859-2`"
    try:
        text = decode_declared(content, encoding, errors)
        text.encode()  # some encodings can express half a surrogate pair
    except (LookupError, UnicodeError) as exc:
        raise InvalidInput(f"cannot be read in the encoding {encoding}: {exc}; {told}") from exc
    if "\x00" in text:
        raise InvalidInput("cannot be read: it is binary")
    return text, None if errors == "strict" else f"it is not UTF-8 throughout and was read as {encoding}; {told}"


def _marked_encoding(content: bytes) -> str | None:
    return next((name for mark, name in _ENCODINGS if content.startswith(mark)), None)


async def _read_apart(reader: str, content: bytes) -> Reading:
    """Run a reader in a process of its own, so that a hostile file harms nothing; InvalidInput if it cannot be read."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIVET_")}  # no keys
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", readers.__name__, reader,  # the current folder may have a logging.py
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={**environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    try:
        async with asyncio.timeout(2 * MAX_CPU_S):
            output, _ = await child.communicate(content)
    except TimeoutError:
        output = b""
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise InvalidInput(f"takes too long or too much memory to read, more than {MAX_CPU_S} s")
    reading = msgspec.json.decode(output, type=Reading)
    if reading.error is not None:
        raise InvalidInput(reading.error)
    return reading
