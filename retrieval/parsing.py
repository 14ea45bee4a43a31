"""Memories from JSON, each checked by itself, so that a bad one rejects itself and not its batch."""

from __future__ import annotations

import math
import re
from datetime import MAXYEAR, MINYEAR, datetime
from typing import Any

import msgspec

from retrieval.errors import InvalidInput
from retrieval.types import MemoryInput

MAX_NESTING = 100
"""How deep lists and objects may stand in each other in free JSON; parsers of the way back stop at 1,000."""

_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1

_PATH = re.compile(r" - at `\$(?:\.(?P<path>[^`]*))?`$|- at `(?P<key>key in .*)`$")
_FIELD = re.compile(r"field `(.*)`", re.DOTALL)

_memory_decoder = msgspec.json.Decoder(MemoryInput)


def parse_memory(raw: bytes | msgspec.Raw, index: int) -> MemoryInput | InvalidInput:
    """A memory, or what is wrong with it; `index` is its place in the batch."""
    try:
        memory = _memory_decoder.decode(raw)
        check_storable(memory)
    except msgspec.ValidationError as exc:
        error = invalid_input(exc)
        return InvalidInput(str(error), loc=("memories", index, *error.loc))
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        return InvalidInput(f"not JSON: {exc}", loc=("memories", index))
    except RecursionError:
        return InvalidInput("is nested too deeply", loc=("memories", index))
    except InvalidInput as exc:
        return InvalidInput(str(exc), loc=("memories", index, *exc.loc))
    return memory


def invalid_input(exc: msgspec.ValidationError) -> InvalidInput:
    """Msgspec's complaint with the field it names as a path.

    >>> try:
    ...     _ = msgspec.json.decode(b'{"text": 1}', type=MemoryInput)
    ... except msgspec.ValidationError as exc:
    ...     invalid_input(exc).loc
    ('text',)
    """
    message = str(exc)
    loc: list[str | int] = []
    if at := _PATH.search(message):
        message = message[: at.start()].strip()
        for part in re.findall(r"\[(\d+|\.\.\.)\]|([^.\[\]]+)", at["path"] or ""):
            loc.append(int(part[0]) if part[0].isdigit() else part[0] or part[1])
    if (field := _FIELD.search(message)) and (not loc or loc[-1] != field[1]):
        loc.append(field[1])
    return InvalidInput(message, loc=tuple(loc))


def check_storable(value: Any, loc: tuple[str | int, ...] = ()) -> None:
    """Refuse what the types allow and the store cannot hold or give back.

    That is: a null byte or half a surrogate pair in any string, a time in the year 1 or 9999 (another zone's
    clock may leave the calendar there), a number that 64 bits do not hold, lists and objects nested deeper
    than `MAX_NESTING`.

    Raises:
        InvalidInput: with the path of the value, or of the outermost of too many nested ones.
    """
    _check(value, loc, 0)


def _check(value: Any, loc: tuple[str | int, ...], nesting: int) -> None:
    if value is None or value is True or value is False:  # most fields of a request are left at that
        return
    if isinstance(value, str):
        _check_string(value, loc)
    elif isinstance(value, datetime):
        if not MINYEAR < value.year < MAXYEAR:
            raise InvalidInput(f"must be in the years {MINYEAR + 1} to {MAXYEAR - 1}", loc=loc)
    elif isinstance(value, dict | list | tuple):
        if nesting == MAX_NESTING:
            raise InvalidInput(f"must not be nested deeper than {MAX_NESTING} levels", loc=loc[:-nesting])
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str):
                _check_string(key, (*loc, "key"))
            _check(item, (*loc, key), nesting + 1)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            item = getattr(value, name)
            if type(item) is str and item.isascii() and "\x00" not in item:  # as most fields are
                continue
            if item and item is not True:  # what is empty, zero or false can be stored
                _check(item, (*loc, name), 0)
    elif isinstance(value, int):
        if not _MIN_INTEGER <= value <= _MAX_INTEGER:
            raise InvalidInput("must be an integer of 64 bits", loc=loc)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput("must be a finite number", loc=loc)


def _check_string(value: str, loc: tuple[str | int, ...]) -> None:
    if "\x00" in value:
        raise InvalidInput("must not contain a null byte", loc=loc)
    if value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise InvalidInput("must not contain a lone surrogate", loc=loc) from exc
