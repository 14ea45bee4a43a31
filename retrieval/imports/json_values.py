"""Values at given places of JSON of any size, read as a stream, and the keys at its beginning."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import IO, Any, TypeAlias, TypeVar

import ijson
from ijson.common import ObjectBuilder

from retrieval.errors import InvalidInput
from retrieval.imports.files import HEAD_BYTES, FilePart, ImportFile
from retrieval.imports.records import ImportContext, Record, Records, mapping_of, refused

T = TypeVar("T")

JsonPlace: TypeAlias = str
"""Keys joined by dots; `item` is any item of a list, "" the outermost value."""

Keys: TypeAlias = Mapping[JsonPlace, set[str]]
"""The keys of objects, by the objects' place; none for a place without objects."""

_BROKEN_JSON = (ijson.JSONError, ValueError, ArithmeticError)

MAX_JSON_DEPTH = 200
"""Deepest nesting that is read; exports have some 15 levels."""

_FIRST_PARTS = 4
"""Members of a zip by which its format is recognised."""

_CLOSING = ("end_map", "end_array")


def values_at(part: FilePart, places: Collection[JsonPlace], context: ImportContext) -> Iterator[tuple[JsonPlace, Any]]:
    """The values at the places, in the order of the file; there may be several outermost values (JSON lines).

    Only one value is in memory at a time. A yielded value is not searched for further places. Raises InvalidInput if
    the file cannot be read, or its JSON ends early or is broken; all complete values before that have been yielded.
    """
    builder: Any = None
    place, inner = "", 0
    for prefix, event, value in _events(part.decoded(context)):
        if builder is None:
            if event in ("map_key", *_CLOSING) or prefix not in places:
                continue
            builder, place = ObjectBuilder(), prefix
        builder.event(event, value)
        inner += (event in ("start_map", "start_array")) - (event in _CLOSING)
        if not inner:
            yield place, builder.value
            builder = None


def objects_at(part: FilePart, places: Collection[JsonPlace], context: ImportContext) -> Iterator[Mapping[str, Any]]:
    """The values of `values_at` as objects; an empty object in place of any other value."""
    return (mapping_of(value) for _, value in values_at(part, places, context))


def keys_of(head: bytes) -> Keys:
    """The keys in the first bytes of a JSON file, which may end anywhere.

    >>> dict(keys_of(b'[{"a": {"b": 1}}, {"c'))
    {'item': {'a'}, 'item.a': {'b'}}
    """
    keys: defaultdict[JsonPlace, set[str]] = defaultdict(set)
    with suppress(InvalidInput):  # the end is cut off
        for prefix, event, value in _events(io.BytesIO(head)):
            if event == "map_key":
                keys[prefix].add(value)
    return keys


def _events(stream: IO[bytes]) -> Iterator[tuple[JsonPlace, str, Any]]:
    """The parser's events with places, nested at most `MAX_JSON_DEPTH` deep; its own places have no limit."""
    within: list[JsonPlace] = []  # for each open container, the place of its next value
    try:
        for event, value in ijson.basic_parse(stream, multiple_values=True, use_float=True):
            if event in _CLOSING:
                within.pop()
            place = within[-1] if within else ""
            if event == "map_key":
                outer = within[-2] if len(within) > 1 else ""
                within[-1] = f"{outer}.{value}" if outer else value
                place = outer
            yield place, event, value
            if event in ("start_map", "start_array"):
                if len(within) == MAX_JSON_DEPTH:
                    raise InvalidInput(f"broken JSON: it is nested deeper than {MAX_JSON_DEPTH} levels")
                item = f"{place}.item" if place else "item"
                within.append(item if event == "start_array" else place)
    except _BROKEN_JSON as exc:
        raise InvalidInput(f"broken JSON: {_reason(exc)}") from exc


def _reason(exc: Exception) -> str:
    """The parser's message without its drawing of the place."""
    reason = exc.args[0] if exc.args else ""
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(exc)
    return text.strip().partition("\n")[0][:200]


def keys_of_parts(source: ImportFile, patterns: Sequence[str]) -> list[Keys]:
    """The keys at the beginning of each of the first parts."""
    return [keys_in(part) for part in islice(source.parts(*patterns), _FIRST_PARTS)]


@lru_cache(maxsize=_FIRST_PARTS)  # nine formats read them to recognise a file
def keys_in(part: FilePart) -> Keys:
    """The keys at the beginning of a part; none if it cannot be read.

    Assumptions about its encoding are noted when the part is read.
    """
    try:
        return keys_of(part.decoded(ImportContext()).read(HEAD_BYTES))
    except InvalidInput:
        return keys_of(b"")


def records_of(part: FilePart, noun: str, values: Iterable[T], read: Callable[[T, str], Iterable[Record]]) -> Records:
    """The records of each value of a part; `read` gets the value and its place, such as "memory 3".

    InvalidInput refuses only its value; damage of the file ends the part.
    """
    number = 0
    try:
        for number, value in enumerate(values, start=1):
            place = part.place(f"{noun} {number}")
            try:
                yield from read(value, place)
            except InvalidInput as exc:
                yield refused(place, exc)
    except InvalidInput as exc:
        yield refused(part.place(f"after {noun} {number}"), exc)


def conversations(
    source: ImportFile,
    files: Sequence[str],
    context: ImportContext,
    read: Callable[[Mapping[str, Any], str, ImportContext], Records],
) -> Records:
    """The records of each conversation in the lists of some files."""
    for part in source.parts(*files):
        values = objects_at(part, {"item"}, context)
        yield from records_of(part, "conversation", values, lambda value, place: read(value, place, context))
