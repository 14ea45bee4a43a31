"""Mailboxes in mbox format, and single mails: each mail's own text, without quotations, in threads."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesHeaderParser, BytesParser
from email.policy import Compat32
from email.utils import getaddresses, parsedate_to_datetime
from html.parser import HTMLParser

from retrieval.errors import InvalidInput
from retrieval.imports.files import ImportFile, decode_declared
from retrieval.imports.records import (
    ImportContext,
    Record,
    Records,
    SkippedRecord,
    content_id,
    memory_record,
    refused,
    source_id,
)

FILES = ("*.mbox", "mbox", "*.eml")

MAX_MAIL_BYTES = 64 * 1024**2
"""The rest of a longer mail, as a rule attachments, is not read."""

_MAX_LINE_BYTES, _MAX_FROM_BYTES = 1024 * 1024, 400
_MAX_HEAD_BYTES = 64 * 1024
"""Bytes in which a mail is recognised by its headers; those of delivery come first."""

_MAX_HEADER_CHARS = 20_000
"""The rest of a longer header is not read: its parameters take time quadratic in their number."""

_MAX_HTML_CHARS = 1_000_000
_FROM_LINE = re.compile(rb"From \S.*\d{2}:\d{2}.*\d{4}")
_HEADER = re.compile(rb"[\w-]+:")
_MESSAGE_ID = re.compile(r"<[^<>\s]+>")
_FORWARDED = re.compile(
    r"-{2,} ?((Original|Forwarded) Message|(Ursprüngliche|Weitergeleitete) Nachricht|Message d'origine) ?-{2,}"
    r"|_{20,}|(Begin forwarded message|Anfang der weitergeleiteten Nachricht):$",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"\n{3,}")


class _Policy(Compat32):
    """The usual reading of mails, of the beginning of each header."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_MAX_HEADER_CHARS]


_POLICY = _Policy()


@dataclass(frozen=True, kw_only=True, slots=True)
class _MailHead:
    """A mail's place in its thread, read from its headers."""

    id: str
    thread: str
    time: datetime | None


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether it begins with a line "From …" and a header, or with the headers of a mail."""
    for part in source.parts(*FILES):
        head = part.open().read(_MAX_HEAD_BYTES).lstrip()
        first, _, rest = head.partition(b"\n")
        headers = BytesHeaderParser(policy=_POLICY).parsebytes(head)
        return bool(_FROM_LINE.match(first) and _HEADER.match(rest)) or ("From" in headers and "Date" in headers)
    return False


def read(source: ImportFile, context: ImportContext) -> Records:
    """The mails; a thread is a session, ordered by date."""
    envelopes = _envelopes(source, context)
    positions = _positions(envelopes)
    for number, (envelope, (_, raw)) in enumerate(zip(envelopes, _mails(source), strict=True), start=1):
        yield _record(raw, envelope, positions[number - 1], f"mail {number}", context)


def _envelopes(source: ImportFile, context: ImportContext) -> list[_MailHead]:
    """The mails' envelopes, in the file's order; a mail that answers another is in its thread."""
    threads: dict[str, str] = {}
    envelopes = []
    parser = BytesHeaderParser(policy=_POLICY)
    with suppress(InvalidInput):  # a damaged zip, which the second reading reports
        for from_line, raw in _mails(source):
            head = re.split(rb"\r?\n\r?\n", raw, maxsplit=1)[0]
            headers = parser.parsebytes(head)
            own = _MESSAGE_ID.search(_header(headers, "Message-ID"))
            id_ = own[0] if own else content_id("", from_line, head)
            earlier = _MESSAGE_ID.findall(_header(headers, "References") + _header(headers, "In-Reply-To"))
            thread = threads.get(earlier[0], earlier[0]) if earlier else id_
            threads[id_] = thread
            envelopes.append(_MailHead(id=id_, thread=thread, time=_date(headers, from_line, context)))
    return envelopes


def _positions(envelopes: list[_MailHead]) -> list[int]:
    """Each mail's position in its thread, by date; mails without a date keep their place in the file."""
    threads: dict[str, list[int]] = defaultdict(list)
    for index, envelope in enumerate(envelopes):
        threads[envelope.thread].append(index)
    positions = [0] * len(envelopes)
    for members in threads.values():
        latest, times = datetime.min.replace(tzinfo=UTC), {}
        for index in members:
            times[index] = latest = envelopes[index].time or latest
        for position, index in enumerate(sorted(members, key=times.__getitem__)):
            positions[index] = position
    return positions


def _mails(source: ImportFile) -> Iterator[tuple[bytes, bytes]]:
    """The "From " lines and the mails that follow them, of all mailboxes; a single mail has no such line."""
    for part in source.parts(*FILES):
        from_line, lines, size, blank = b"", list[bytes](), 0, True
        if _HEADER.match(part.open().read(_MAX_FROM_BYTES)):
            yield b"", part.open().read(MAX_MAIL_BYTES)
            continue
        stream = part.open()
        while line := stream.readline(_MAX_LINE_BYTES):
            if blank and _FROM_LINE.match(line[:_MAX_FROM_BYTES]):
                if from_line:
                    yield from_line, b"".join(lines)
                from_line, lines, size = line, [], 0
            elif from_line and size < MAX_MAIL_BYTES:
                lines.append(line[1:] if line.startswith(b">From ") else line)
                size += len(line)
            blank = not line.strip()
        if from_line:
            yield from_line, b"".join(lines)


def _record(raw: bytes, envelope: _MailHead, position: int, place: str, context: ImportContext) -> Record:
    try:
        mail = BytesParser(policy=_POLICY).parsebytes(raw)
        text = said(_body(mail))
        sender = _raw_header(mail, "From")
        name, address = next(iter(getaddresses([sender])), ("", ""))  # before decoding: a name may have a comma
    except RecursionError:
        return refused(place, "its parts are nested too deeply")
    subject = re.sub(r"\s+", " ", _header(mail, "Subject")).strip()
    if re.search(r"\b(Spam|Trash)\b", _header(mail, "X-Gmail-Labels")):
        return SkippedRecord(place=f"{place} ({subject})", reason="mail in spam or trash")
    if not text:
        return SkippedRecord(place=f"{place} ({subject})", reason="mail without text")
    if envelope.time is None:
        context.notes["mails without a date, taken as of now"] += 1
    return memory_record(
        f"{place} ({subject})",
        id=source_id("mbox", envelope.id),
        text=text,
        kind="message",
        title=subject,
        speaker=_decoded(name or address or sender),
        session_id=source_id("mbox", envelope.thread),
        position=position,
        created_at=envelope.time,
        tags=["mail"],
        metadata={key: value for key, value in (("from", address), ("to", _header(mail, "To"))) if value},
    )


def _header(mail: Message, name: str) -> str:
    """A header's text, decoded if possible."""
    return _decoded(_raw_header(mail, name))


def _raw_header(mail: Message, name: str) -> str:
    """A header as written; bytes beyond ASCII are UTF-8."""
    raw = next((str(value) for key, value in mail.raw_items() if key.lower() == name.lower()), "")
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _decoded(header: str) -> str:
    try:
        return str(make_header(decode_header(header)))
    except (MessageError, LookupError, ValueError, TypeError):
        return header


def _date(headers: Message, from_line: bytes, context: ImportContext) -> datetime | None:
    """The date that the mail states, or the one of its "From " line."""
    for value in (_header(headers, "Date"), " ".join(from_line.decode("latin-1").split()[2:])):
        try:
            return context.localized(parsedate_to_datetime(value)).astimezone(UTC)
        except (ValueError, IndexError, TypeError, OverflowError, InvalidInput):
            continue  # the next one may be valid
    return None


def _body(mail: Message) -> str:
    """The plain text, or else the text of the HTML; attachments are left out."""
    parts = list(_own_parts(mail))
    for kind, readable in (("text/plain", str), ("text/html", html_text)):
        texts = [readable(_text(part)) for part in parts if part.get_content_type() == kind]
        if text := "\n".join(texts).strip():
            return text
    return ""


def _own_parts(mail: Message) -> Iterator[Message]:
    """The parts of a mail without attachments and without mails in it, which others may have written."""
    if mail.get_content_maintype() == "message" or "attachment" in str(mail.get("Content-Disposition", "")).lower():
        return
    if not mail.is_multipart():
        yield mail
        return
    for part in mail.get_payload():
        if isinstance(part, Message):
            yield from _own_parts(part)


def _text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    try:
        return decode_declared(data, str(part.get_content_charset() or "utf-8"))
    except (LookupError, ValueError):
        return data.decode("cp1252", "trivet.latin1")


def said(text: str) -> str:
    r"""A mail's own text: without quoted lines, forwarded or answered mails below, and the signature.

    >>> said("Yes, at nine.\n\nOn Mon, 3 May 2021, Ana wrote:\n> Shall we meet?\n-- \nBen")
    'Yes, at nine.'
    """
    lines: list[str] = []
    for raw in text.splitlines():
        line = raw.rstrip()
        if raw == "-- " or line == "--" or _FORWARDED.match(line):
            break
        if not line.lstrip().startswith(">"):
            lines.append(line)
        elif "".join(lines[-3:]).rstrip().endswith(":"):
            _drop_attribution(lines)
    return _BLANKS.sub("\n\n", "\n".join(lines)).strip()


def _drop_attribution(lines: list[str]) -> None:
    """Remove the line at the end that announces a quotation, with its date, in one or two pieces."""
    end = next(index for index in reversed(range(len(lines))) if lines[index])
    for start in (end, end - 1):
        if start >= 0 and lines[start] and any(char.isdigit() for char in lines[start]):
            del lines[start:]
            return


_UNCLOSED = re.compile(r"<(?![^<>]{0,5000}>)")


class _HtmlText(HTMLParser):
    """Collects what a browser would show."""

    _HIDDEN = frozenset({"script", "style", "head", "blockquote", "title"})
    _BREAKS = frozenset({"p", "br", "div", "tr", "li", "h1", "h2", "h3", "h4", "table", "ul", "ol"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._HIDDEN:
            self._hidden.append(tag)
        elif tag in self._BREAKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        elif tag in self._BREAKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(re.sub(r"\s+", " ", data))


def html_text(source: str) -> str:
    """The text of HTML, with line breaks where blocks end; quotations (blockquote) are left out."""
    first, *others = source[:_MAX_HTML_CHARS].split("<!--")
    shown = first + "".join(other.partition("-->")[2] for other in others)
    parser = _HtmlText()
    try:
        parser.feed(_UNCLOSED.sub("&lt;", shown))  # the parser would read to the end for each of them
        parser.close()
    except (AssertionError, ValueError):  # the parser's own, on broken declarations
        return re.sub(r"<[^<>]*>", " ", source)
    return "\n".join(line.strip() for line in "".join(parser.pieces).split("\n"))
