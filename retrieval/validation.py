"""Validation of input, memory by memory, so that a bad one is rejected without its batch; size limits.

A decoder call holds the GIL, and so blocks all other clients of the server, until it returns. So large documents are
rejected before decoding, and batches are decoded memory by memory.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from contextlib import suppress
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from functools import reduce
from typing import Annotated, Any, Final, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from graph.names import MARKS
from retrieval.error_messages import invalid_input
from retrieval.errors import InvalidInput, InvalidMemory
from retrieval.types.memory import MAX_BATCH, MemoryId, MemoryInput
from retrieval.types.search import Filters

T = TypeVar("T")
Parsed = MemoryInput | InvalidInput

LETTER = rf"(?:\w|(?![\u0300-\u036f\u3099\u309a\ufe00-\ufe0f])[{MARKS}])"
"""A letter, digit or vowel sign of a name; no mark of a decomposed letter, as "ü" and "u\u0308" look the same."""

MAX_NESTING = 100
"""Deepest nesting of lists and objects in free JSON; parsers of responses stop at 1,000."""

MAX_METADATA_BYTES = 64 * 1024
"""Limit on metadata as compact JSON in UTF-8."""

MAX_FILTER_BYTES = 256 * 1024
"""Limit on all filters of one request, measured the same way."""

MAX_FILTER_VALUES = 1_000
"""Most values in one filter."""

MAX_MEMORY_BYTES: Final = 8 * 1024 * 1024
"""Longest memory as JSON; the longest text takes less in any script."""

SMALL_BYTES: Final = 64 * 1024
"""JSON up to this size is decoded without checking its structure."""

MAX_STRUCTURE_BYTES: Final = 128 * 1024
"""Most bytes outside strings per decoder call; decoding time depends on the values there."""

MAX_BATCH_STRUCTURE_BYTES: Final = 4 * 1024 * 1024

_LONGEST_ESCAPE = 6
"""Most bytes that one byte of compact JSON may take as sent, without whitespace."""

_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1

_CHUNK_BYTES = 64 * 1024
_DEPTHS = np.zeros(256, np.int32)
_DEPTHS[list(b"[{")], _DEPTHS[list(b"]}")] = 1, -1

_UNSTORABLE = "must not contain a null byte or half a surrogate pair"
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""A surrogate pair, a lone surrogate (the group), or any other escape."""


class _Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    memories: Annotated[list[msgspec.Raw], Meta(min_length=1, max_length=MAX_BATCH, extra={"items": MemoryInput})]


class _Named(msgspec.Struct):
    """A memory of which only the id is read."""

    id: MemoryId | None = None


class _Undecoded(msgspec.Struct):
    """Undecoded fields of a memory or a request that hold free JSON."""

    metadata: msgspec.Raw = msgspec.Raw(b"")
    filters: msgspec.Raw = msgspec.Raw(b"")


_envelope_decoder = msgspec.json.Decoder(_Envelope)
_memory_decoder = msgspec.json.Decoder(MemoryInput)
_named_decoder = msgspec.json.Decoder(_Named)
_undecoded_decoder = msgspec.json.Decoder(_Undecoded)


def parse_batch(raw: bytes) -> list[Parsed]:
    """Parse the memories of `{"memories": [...]}`, each independently of errors in the others.

    Raises InvalidInput if the batch as a whole is wrong: not JSON, an unknown field, no or too many memories.
    """
    if check_structure(raw, MAX_BATCH_STRUCTURE_BYTES) > MAX_BATCH:
        raise InvalidInput(f"must be a list of 1 to {MAX_BATCH:,}", loc=("memories",))
    envelope = _decoded(raw, _envelope_decoder)
    return [parse_memory(bytes(memory), index) for index, memory in enumerate(envelope.memories)]


def parse_memory(raw: bytes, index: int) -> Parsed:
    """Parse a memory; returns its error if it is invalid. `index` is its position in the batch."""
    try:
        if len(raw) > MAX_MEMORY_BYTES:
            raise InvalidInput(f"is longer than {MAX_MEMORY_BYTES:,} bytes")
        memory = decode(raw, _memory_decoder)
        check_storable(memory)
    except InvalidInput as exc:
        return InvalidMemory(str(exc), loc=("memories", index, *exc.loc), id=_id_in(raw))
    return memory


def _id_in(raw: bytes) -> str | None:
    """The id of a memory that may otherwise be invalid."""
    try:
        found = _decoded(raw, _named_decoder).id
        check_storable(found)
    except InvalidInput:
        return None
    return found


def decode(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode one JSON document or line; lone surrogates become null bytes.

    Raises InvalidInput, which names the field, if it is not JSON, not of the decoder's type, or far too large.
    """
    check_sizes(raw)
    check_structure(raw, MAX_STRUCTURE_BYTES)
    return _decoded(raw, decoder)


def converted(value: Any, kind: type[T]) -> T:
    """Convert a value to a type; raises InvalidInput, which names the field, if it does not fit."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as exc:
        raise invalid_input(exc, kind) from exc


def _decoded(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Like `decode`, without checking the size.

    The decoder rejects a document with a lone surrogate anywhere, without naming the place. Null bytes are rejected
    later, with their place.
    """
    try:
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            mended = bytearray(raw)
            for escape in _ESCAPE.finditer(raw):
                if escape[1]:
                    mended[escape.start() : escape.end()] = rb"\u0000"
            return decoder.decode(mended)
    except msgspec.ValidationError as exc:
        fault = invalid_input(exc, decoder.type)
        if "*" in fault.loc:  # a key that the decoder does not tell
            with suppress(ValueError, RecursionError):  # it may be no JSON after that
                document = json.loads(raw)
                check_storable(document)
                fault = _with_keys(fault, document, decoder.type)
        raise fault from exc
    except msgspec.DecodeError as exc:
        raise InvalidInput(f"not JSON: {str(exc).removeprefix('JSON is malformed: ')}") from exc
    except UnicodeDecodeError as exc:
        raise InvalidInput("not UTF-8") from exc
    except RecursionError as exc:
        raise InvalidInput("is nested too deeply") from exc


def _with_keys(fault: InvalidInput, document: Any, kind: Any) -> InvalidInput:
    """The fault of a document with its keys instead of `*`; unchanged if a key that is given twice hides it."""
    if not _has(fault, document, kind):
        return fault
    loc: list[str | int] = []
    for step in fault.loc:
        loc.append(step if step != "*" else _key_at_fault(fault, document, kind, reduce(_item, loc, document)))
    return InvalidInput(str(fault), loc=tuple(loc))


def _key_at_fault(fault: InvalidInput, document: Any, kind: Any, holder: dict[str, Any]) -> str:
    """The first key of an object that brings a fault to its document; leaves only this key in the object."""
    items = [*holder.items()]

    def has_fault(last: int) -> bool:
        holder.clear()
        holder.update(items[: last + 1])
        return _has(fault, document, kind)

    key, value = items[bisect_left(range(len(items)), True, key=has_fault)]
    holder.clear()
    holder[key] = value
    return key


def _item(holder: Any, step: str | int) -> Any:
    return holder[step]


def _has(fault: InvalidInput, document: Any, kind: Any) -> bool:
    try:
        msgspec.convert(document, kind)
    except msgspec.ValidationError as exc:
        return invalid_input(exc, kind).loc == fault.loc
    return False


def check_structure(raw: bytes, max_bytes: int) -> int:
    """Count the items of the lists in a JSON object, an upper bound; 0 for small documents, which are not checked.

    Reads in chunks, so that other threads can take the GIL in between. Raises InvalidInput if more than `max_bytes` are
    outside strings.
    """
    if len(raw) <= SMALL_BYTES:
        return 0
    outside = items = depth = start = 0
    in_string = False
    while start < len(raw):
        piece = raw[start : start + _CHUNK_BYTES]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # the chunk ends within an escape
            piece = raw[start : start + _CHUNK_BYTES + 1]
        start += len(piece)
        parts = piece.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        structure = b"".join(parts[in_string::2])
        in_string ^= len(parts) % 2 == 0
        outside += len(structure)
        if outside > max_bytes:
            raise InvalidInput(f"More than {max_bytes:,} bytes of numbers, brackets and spaces outside strings")
        codes = np.frombuffer(structure, np.uint8)
        depths = depth + np.cumsum(_DEPTHS[codes])
        items += int(np.count_nonzero((codes == ord(",")) & (depths == 2)))
        depth = int(depths[-1]) if len(depths) else depth
    return items + 1


def check_sizes(raw: bytes | msgspec.Raw) -> None:
    """Raise InvalidInput for a memory or a request with far too much metadata or filters, before decoding it.

    Borderline sizes are left to `check_storable`, malformed JSON to the decoder.
    """
    if len(raw) <= MAX_METADATA_BYTES:
        return
    try:
        sent = _undecoded_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return
    for name, most in (("metadata", MAX_METADATA_BYTES), ("filters", MAX_FILTER_BYTES)):
        if len(getattr(sent, name)) > _LONGEST_ESCAPE * most:
            raise _too_large(most, (name,))


def _too_large(most: int, loc: tuple[str | int, ...]) -> InvalidInput:
    return InvalidInput(f"must take at most {most // 1024} KB as JSON", loc=loc)


def check_query(query: str, field: str = "query") -> None:
    """Raise InvalidInput for a blank query."""
    if not query.strip():
        raise InvalidInput("must not be blank", loc=(field,))


def cursor_position(cursor: str | None, *, first: int, last: int) -> int:
    """The position after which the next page starts: `first` without a cursor, at most `last`.

    Raises InvalidInput for a cursor that no earlier page gave.
    """
    if cursor is None:
        return first
    if not re.fullmatch(rf"[0-9]{{1,{len(str(last))}}}", cursor):
        raise InvalidInput("is not a cursor that an earlier page gave", loc=("cursor",))
    return min(int(cursor), last)


def check_names(**names: str | None) -> None:
    """Raise InvalidInput, with the field, for `.` and `..`, which clients and proxies drop from the end of a path."""
    for field, name in names.items():
        if name in (".", ".."):
            raise InvalidInput("must not be `.` or `..`: a URL with it would be that of something else", loc=(field,))


def check_storable(value: Any, loc: tuple[str | int, ...] = (), nesting: int = 0) -> None:
    """Raise InvalidInput, with the path, for a value that the types allow but the store cannot hold or return.

    These are null bytes and lone surrogates in strings, times in the year 1 or 9999 (which may leave the calendar in
    another time zone), integers beyond 64 bits, nesting deeper than `MAX_NESTING`, and metadata and filters beyond
    their limits. `nesting` counts the lists and objects around the value; if it is nested too deeply, the path is
    that of the outermost one.
    """
    if value is None or value is True or value is False:  # most fields of a request
        return
    if isinstance(value, str):
        _check_string(value, loc)
    elif isinstance(value, datetime):
        # A time is returned in UTC and may be sent back.
        if not (MINYEAR < value.year < MAXYEAR and MINYEAR < value.astimezone(UTC).year < MAXYEAR):
            raise InvalidInput(f"must be in the years {MINYEAR + 1} to {MAXYEAR - 1}", loc=loc)
    elif isinstance(value, dict | list | tuple):
        if nesting == MAX_NESTING:
            raise InvalidInput(f"must not be nested deeper than {MAX_NESTING} levels", loc=loc[:-nesting])
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str):
                _check_string(key, (*loc, "key"))
            check_storable(item, (*loc, key), nesting + 1)
    elif isinstance(value, msgspec.Struct):
        if isinstance(value, Filters):
            _check_size(value, MAX_FILTER_BYTES, loc)
        for name in value.__struct_fields__:
            item = getattr(value, name)
            if type(item) is str and item.isascii() and "\x00" not in item:  # most fields
                continue
            if item and item is not True:  # empty values, zero and False can always be stored
                if name == "metadata":
                    _check_size(item, MAX_METADATA_BYTES, (*loc, name))
                check_storable(item, (*loc, name))
                if isinstance(value, Filters) and _count_values(item) > MAX_FILTER_VALUES:
                    raise InvalidInput(f"must name at most {MAX_FILTER_VALUES:,} values", loc=(*loc, name))
    elif isinstance(value, int):
        if not _MIN_INTEGER <= value <= _MAX_INTEGER:
            raise InvalidInput("must be an integer of 64 bits", loc=loc)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput("must be a finite number", loc=loc)


def _check_size(value: Any, most: int, loc: tuple[str | int, ...]) -> None:
    """Reject a value that is too large as JSON, or is not JSON; other encoding errors have their own checks."""
    try:
        if len(msgspec.json.encode(value)) > most:
            raise _too_large(most, loc)
    except TypeError as exc:
        raise InvalidInput("must be JSON: text, numbers, true, false, null, lists and objects", loc=loc) from exc
    except (OverflowError, RecursionError, UnicodeEncodeError):
        return


def _count_values(value: Any) -> int:
    """Number of values in nested lists and objects, not counting the containers."""
    if isinstance(value, dict):
        return sum(map(_count_values, value.values()))
    return sum(map(_count_values, value)) if isinstance(value, list) else 1


def _check_string(value: str, loc: tuple[str | int, ...]) -> None:
    if "\x00" in value:
        raise InvalidInput(_UNSTORABLE, loc=loc)
    if value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise InvalidInput(_UNSTORABLE, loc=loc) from exc
