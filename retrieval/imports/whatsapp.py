"""WhatsApp's chat export, of iOS and Android: lines with a local time; the order of day and month is inferred."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from retrieval.errors import InvalidInput
from retrieval.imports.files import ImportFile
from retrieval.imports.records import (
    ImportContext,
    Record,
    Records,
    RepeatableIds,
    SkippedRecord,
    Turns,
    content_id,
    refused,
    source_id,
)

FILES = ("_chat.txt", "WhatsApp*.txt", "*.txt")

_HEADER = re.compile(
    r"\[?(\d{1,4})[./-]\s?(\d{1,2})[./-]\s?(\d{1,4})\.?,?\s+(?:(öö|ös|上午|下午|午前|午後|오전|오후)\s?|\D{1,4}\s)?"
    r"(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?\s*([ap]\.?\s?m\.?)?(?:\]\s*|\s+[-–]\s+)(.*)",
    re.IGNORECASE | re.DOTALL,
)
"""The date's three numbers, half of the day, hour, minute, second, half of the day, and the rest of the line."""

_AFTERNOON = ("p", "ös", "下午", "午後", "오후")

_MARKS = dict.fromkeys(map(ord, "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"))
_SPACES = {ord(space): " " for space in "\u00a0\u2007\u2009\u202f"}
_NOTICE = re.compile(r"[^:]* (added|changed|created|joined|left|removed|turned o(n|ff)|deleted this group)\b")
_MEDIA = re.compile(r"<[^<>\n]{3,60}>|.*\((file attached|Datei angehängt|archivo adjunto|fichier joint)\)|null")
_DELETED = ("This message was deleted", "You deleted this message")
_EDITED = re.compile(r"(?<!\s)\s*\u200e?<This message was edited>\s*$")
_MAX_HEADER_CHARS = 300

UNDECIDED = "days and months cannot be told apart in this file: say --day-first or --month-first"

_Date = tuple[int, int, int]


@dataclass(kw_only=True)
class _ChatEntry:
    """A message or notice with its lines; `date` and `clock` as written."""

    line: int
    date: _Date
    clock: tuple[int, int, int]
    half: str
    lines: list[str]


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether one of the first lines begins like a message."""
    heads = (part.text(context).read(2_000) for part in source.parts(*FILES))
    return any(_header(line) for head in heads for line in head.splitlines()[:10])


def read(source: ImportFile, context: ImportContext) -> Records:
    """The messages; a day is a session. Raises InvalidInput if day and month cannot be told apart."""
    begun = (entry for entry in _entries(source, ImportContext()) if isinstance(entry, _ChatEntry))
    first = next(begun, None)
    if first is None:
        raise InvalidInput("the file has no line that begins as WhatsApp's messages do")
    chat = content_id("", first.date, first.clock, *first.lines)[1:9]
    dates = {first.date: None}
    with suppress(InvalidInput):  # a damaged zip, which the second reading reports
        for entry in begun:
            dates[entry.date] = None
    day_first = context.day_first if context.day_first is not None else is_day_first(list(dates))
    ids = RepeatableIds("whatsapp")
    turns = Turns("whatsapp")
    for item in _entries(source, context):
        if isinstance(item, SkippedRecord):
            yield item
            continue
        try:
            time = context.localized(_time(item, day_first))
        except ValueError:
            yield refused(f"line {item.line}", "its date or time does not exist")
            continue
        session = source_id("whatsapp", chat, f"{time:%Y-%m-%d}")
        yield _record(item, time, session, turns, ids)


def is_day_first(dates: Sequence[_Date]) -> bool:
    """Whether dates begin with the day, by numbers above 12, or else by the only order in which time never runs back.

    `dates` are the three numbers as written, in the file's order. Raises InvalidInput if neither decides.

    >>> is_day_first([(3, 4, 24), (13, 4, 24)]), is_day_first([(1, 31, 24)]), is_day_first([(9, 1, 24), (1, 2, 24)])
    (True, False, True)
    """
    if all(first > 31 or first == second for first, second, _ in dates):
        return False
    days, months = any(first > 12 for first, _, _ in dates), any(second > 12 for _, second, _ in dates)
    if days != months:
        return days
    backwards = [_runs_back((year, second, first) for first, second, year in dates)]
    backwards.append(_runs_back((year, first, second) for first, second, year in dates))
    if backwards[0] == backwards[1] or days:
        raise InvalidInput(UNDECIDED)
    return not backwards[0]


def _runs_back(days: Iterable[_Date]) -> bool:
    return any(after < before for before, after in pairwise(days))


def _time(entry: _ChatEntry, day_first: bool) -> datetime:
    first, second, third = entry.date
    if first > 31:
        year, month, day = first, second, third
    else:
        day, month, year = (first, second, third) if day_first else (second, first, third)
    hour, minute, second_ = entry.clock
    if entry.half:
        hour = hour % 12 + 12 * entry.half.startswith(_AFTERNOON)
    return datetime(year + 2000 * (year < 100), month, day, hour, minute, second_)


def _record(entry: _ChatEntry, time: datetime, session: str, turns: Turns, ids: RepeatableIds) -> Record:
    place = f"line {entry.line}"
    first, *others = entry.lines
    speaker, colon, said = first.partition(": ")
    if not colon and first.rstrip().endswith(":"):
        speaker, colon, said = first.rstrip()[:-1], ":", ""
    if not colon or _NOTICE.match(first):
        return SkippedRecord(place=place, reason="notice of the chat")
    if said.startswith("\u200e"):  # iOS marks its own notices like this
        return SkippedRecord(place=place, reason="medium without text, or notice")
    text = _EDITED.sub("", "\n".join([said, *others])).translate(_MARKS).strip()
    if not text or _MEDIA.fullmatch(text):
        return SkippedRecord(place=place, reason="medium without text")
    if text.rstrip(".") in _DELETED:
        return SkippedRecord(place=place, reason="deleted message")
    speaker = speaker.translate(_MARKS).translate(_SPACES).strip().removeprefix("~").strip()
    return turns.record(
        place,
        id=ids.next(time.replace(tzinfo=UTC).isoformat(), speaker, text),  # whatever the user's zone
        text=text,
        speaker=speaker,
        session_id=session,
        created_at=time,
    )


def _header(line: str, number: int = 0) -> _ChatEntry | None:
    """The entry that a line begins; None for a continuation line."""
    begin = line[:_MAX_HEADER_CHARS].translate(_SPACES)
    match = _HEADER.match(begin.lstrip("".join(map(chr, _MARKS)) + " "))
    if match is None:
        return None
    date = (int(match[1]), int(match[2]), int(match[3]))
    clock = (int(match[5]), int(match[6]), int(match[7] or 0))
    rest = match[9] + line[_MAX_HEADER_CHARS:]
    return _ChatEntry(line=number, date=date, clock=clock, half=(match[4] or match[8] or "").lower(), lines=[rest])


def _entries(source: ImportFile, context: ImportContext) -> Iterator[_ChatEntry | SkippedRecord]:
    """The messages and notices with all their lines, and the lines before the first one as skipped."""
    entry: _ChatEntry | None = None
    for number, raw in enumerate(source.part(*FILES).text(context), start=1):
        line = raw.rstrip("\r\n")
        if (begun := _header(line, number)) is not None:
            if entry is not None:
                yield entry
            entry = begun
        elif entry is not None:
            entry.lines.append(line)
        elif line.translate(_MARKS).strip():
            yield SkippedRecord(place=f"line {number}", reason="line before the first message")
    if entry is not None:
        yield entry
