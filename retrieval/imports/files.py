"""The bytes of an export: a file or the members of a zip, which is never unpacked to disk, in whatever encoding."""

from __future__ import annotations

import codecs
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from typing import IO, Any

import msgspec

from retrieval.errors import InvalidInput
from retrieval.imports.records import ImportContext, Records, SkippedRecord

HEAD_BYTES = 256 * 1024
"""Size of the beginning of a file by which its format is recognised."""

_OF_PAGES = frozenset({"count", "total", "limit", "offset", "page", "page_size", "has_more", "next", "previous"})
"""Fields in which servers describe an answer, beside its list."""

MAX_RATIO = 250
"""Most bytes of a zip's member per compressed byte; text takes 3 to 30."""

MAX_UNPACKED_BYTES = 32 * 1024**3
"""Most bytes read from one zip."""

_FREE_BYTES = 8 * 1024**2
"""Members up to this size may have any ratio."""

_CHUNK_BYTES = 1024 * 1024
_BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError)
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class ImportFile:
    """A file to import, seekable; `name` is without its folder, None for standard input."""

    def __init__(self, file: IO[bytes], name: str | None = None) -> None:
        self.name = name
        self._file = file
        self._parts: dict[str, FilePart] = {}

    @cached_property
    def head(self) -> bytes:
        """The first bytes of the file."""
        self._file.seek(0)
        return self._file.read(HEAD_BYTES)

    @property
    def is_empty(self) -> bool:
        """Whether it contains only whitespace and a byte order mark."""
        return not self.head.removeprefix(codecs.BOM_UTF8).strip()

    @property
    def is_hollow(self) -> bool:
        """Whether it is a server's empty answer: `[]`, or an object of empty lists and counts."""
        try:
            value = msgspec.json.decode(self.head.removeprefix(codecs.BOM_UTF8))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        lists = [each for name, each in value.items() if name not in _OF_PAGES] if isinstance(value, dict) else [value]
        return bool(lists) and all(each == [] for each in lists)

    @property
    def is_zip(self) -> bool:
        """Whether it begins as a zip does."""
        return self.head.startswith((b"PK\x03\x04", b"PK\x05\x06"))

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        try:
            archive = zipfile.ZipFile(self._file)
        except _BROKEN_ZIP as exc:
            raise InvalidInput(f"the zip cannot be opened: {exc}") from exc
        if sum(member.file_size for member in archive.infolist()) > MAX_UNPACKED_BYTES:
            raise InvalidInput(f"the zip unpacks to more than {MAX_UNPACKED_BYTES // 1024**3} GiB")
        return archive

    @cached_property
    def members(self) -> list[str]:
        """The names in the zip, sorted, numbers by value, without what macOS's Finder adds; empty for a file.

        Raises InvalidInput if the zip is damaged, or unpacks to too many bytes.
        """
        names = self._archive.namelist() if self.is_zip else []
        return sorted((name for name in names if not name.startswith("__MACOSX/")), key=_by_number)

    def parts(self, *patterns: str) -> Iterator[FilePart]:
        """The zip's members that match one of the patterns, in order of their names, or the file itself.

        A pattern without a slash matches the last part of a name. Case is ignored: Windows has `MAIL.EML`.
        Raises InvalidInput if the zip is damaged.
        """
        if not self.is_zip:
            yield self._part("")
            return
        folded = [pattern.lower() for pattern in patterns]
        for name in self.members:
            whole, last = name.lower(), name.lower().rpartition("/")[2]
            if any(fnmatch(whole if "/" in pattern else last, pattern) for pattern in folded):
                yield self._part(name, self._archive)

    def _part(self, name: str, archive: zipfile.ZipFile | None = None) -> FilePart:
        """The cached object of a part, which keeps what was detected about it."""
        return self._parts.setdefault(name, FilePart(name=name, file=self._file, archive=archive))

    def part(self, *patterns: str) -> FilePart:
        """The one part of the first pattern that any part has; raises InvalidInput if there are none or several."""
        for pattern in patterns:
            parts = list(self.parts(pattern))
            if len(parts) > 1:
                raise InvalidInput(f"the zip has {len(parts)} files {pattern}; import them one by one")
            if parts:
                return parts[0]
        raise InvalidInput(f"the zip has no file {' or '.join(patterns)}")

    def climbing(self) -> Records:
        """Members whose path leaves the zip. They are only reported, as nothing is written under a member's name."""
        for name in self.members:
            if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name) or name[1:2] == ":":
                yield SkippedRecord(place=name, reason="path that leaves the zip")


def _by_number(name: str) -> list[str | int]:
    """The sort key of a name: "chat.json" comes before "chat [part 2].json" and "chat [part 10].json"."""
    parts = re.split("([0-9]{1,4000})", name.rpartition(".")[0] or name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


@dataclass(frozen=True, kw_only=True)
class FilePart:
    """A file, or a member of a zip; each `open` begins at its start."""

    name: str
    file: IO[bytes]
    archive: zipfile.ZipFile | None = None

    def place(self, within: str = "") -> str:
        """The place of something in this part, for people."""
        return ", ".join(filter(None, (self.name, within))) or "the file"

    def open(self) -> IO[bytes]:
        """Its bytes. Reading raises InvalidInput if the zip is damaged.

        Raises InvalidInput if the member is encrypted, of an unusual method, or would unpack to too many bytes.
        """
        if self.archive is None:
            self.file.seek(0)
            return self.file
        info = self.archive.getinfo(self.name)
        if info.flag_bits & 1:
            raise InvalidInput("is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InvalidInput("is compressed in an unusual way")
        if info.file_size > max(_FREE_BYTES, MAX_RATIO * info.compress_size):
            raise InvalidInput(f"unpacks to more than {MAX_RATIO} times its size")
        try:
            return io.BufferedReader(_Member(self.archive.open(info)))
        except _BROKEN_ZIP as exc:
            raise InvalidInput(f"is damaged: {exc}") from exc

    def decoded(self, context: ImportContext) -> IO[bytes]:
        """Its text as UTF-8; a note records any other encoding. Raises InvalidInput as `open`, and while reading."""
        encoding, errors = self.encoding
        stream = self.open()
        if encoding == "utf-8" and errors == "strict":
            return stream
        if encoding != "utf-8-sig":
            context.notes["files with broken UTF-8" if encoding == "utf-8" else f"files read as {encoding}"] += 1
        return io.BufferedReader(_Transcoded(stream, encoding, errors))

    def text(self, context: ImportContext) -> io.TextIOWrapper:
        """Its text, with the file's line ends."""
        unclosed = io.BufferedReader(_Borrowed(self.decoded(context)))
        return io.TextIOWrapper(unclosed, encoding="utf-8", errors="replace", newline="")

    @cached_property
    def encoding(self) -> tuple[str, str]:
        """Its encoding, by byte order mark, null bytes or trial, and the handler of invalid bytes.

        Broken UTF-8 is read as Windows-1252 if more of its non-ASCII characters are invalid than valid.
        """
        head = self.open().read(4)
        for bom, encoding in _BOMS.items():
            if head.startswith(bom):
                return encoding, "strict" if encoding == "utf-8-sig" and self._is_utf8() else "replace"
        if len(head) == 4 and head.count(0) == 2 and ((not head[0] and not head[2]) or (not head[1] and not head[3])):
            return ("utf-16-be" if not head[0] else "utf-16-le"), "replace"
        if self._is_utf8():
            return "utf-8", "strict"
        broken = sound = 0
        for text in self._decoded_chunks("replace"):
            broken += text.count("\ufffd")
            sound += len(text) - len(text.encode("ascii", "ignore"))
        return ("cp1252", "trivet.latin1") if broken * 2 > sound else ("utf-8", "replace")

    def _is_utf8(self) -> bool:
        try:
            for _ in self._decoded_chunks("strict"):
                pass
        except UnicodeDecodeError:
            return False
        return True

    def _decoded_chunks(self, errors: str) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")(errors)
        stream = self.open()
        with suppress(InvalidInput):  # damage further on, which reading reports
            while chunk := stream.read(_CHUNK_BYTES):
                yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)


def decode_declared(content: bytes, encoding: str, errors: str = "strict") -> str:
    """The text of bytes in the encoding that their file declares.

    Raises:
        LookupError: there is no such encoding, or it is one of host names, which reads longer texts in quadratic time.
        UnicodeError: the bytes are not of it.
    """
    if codecs.lookup(encoding).name in ("idna", "punycode"):
        raise LookupError(f"encoding of host names: {encoding}")
    return content.decode(encoding, errors)


def _latin1(error: UnicodeError) -> tuple[str, int]:
    """The five bytes that Windows-1252 does not define, as ISO 8859-1 has them."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("trivet.latin1", _latin1)


class _Borrowed(io.RawIOBase):
    """A stream that stays open when its reader is closed."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Member(_Borrowed):
    """A zip's member whose damage is InvalidInput."""

    def readinto(self, buffer: Any) -> int:
        try:
            return super().readinto(buffer)
        except _BROKEN_ZIP as exc:
            raise InvalidInput(f"is damaged: {exc}") from exc


class _Transcoded(_Borrowed):
    """Another encoding's bytes as UTF-8."""

    def __init__(self, stream: IO[bytes], encoding: str, errors: str) -> None:
        super().__init__(stream)
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._left = b""

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            chunk = self._stream.read(_CHUNK_BYTES)
            self._left = self._decoder.decode(chunk, not chunk).encode("utf-8", "replace")
            if not chunk:
                break
        data, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)
