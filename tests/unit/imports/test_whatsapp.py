"""WhatsApp's lines in the shapes of systems and languages, and which number of a date is the day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.errors import InvalidInput
from retrieval.imports.whatsapp import is_day_first
from tests.importing import Imported


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("[30/01/24, 21:50:07] Nora: Hi", "2024-01-30T21:50:07"),
        ("[1/30/24, 9:50:07\u202fPM] Nora: Hi", "2024-01-30T21:50:07"),
        ("\u200e[30.01.24, 21:50:07] Nora: Hi", "2024-01-30T21:50:07"),
        ("30/01/2024, 21:50 - Nora: Hi", "2024-01-30T21:50:00"),
        ("30/01/2024, 9:50 p.m. - Nora: Hi", "2024-01-30T21:50:00"),
        ("30/01/2024, 12:05 a.\u00a0m. - Nora: Hi", "2024-01-30T00:05:00"),
        ("1/30/24, 12:05 PM - Nora: Hi", "2024-01-30T12:05:00"),
        ("30.01.24, 21:50 – Nora: Hi", "2024-01-30T21:50:00"),
        ("30.01.2024 ÖS 9:50 - Nora: Hi", "2024-01-30T21:50:00"),
        ("30.01.2024 öö 12:05 - Nora: Hi", "2024-01-30T00:05:00"),
        ("2024/1/30 下午9:50 - Nora: Hi", "2024-01-30T21:50:00"),
        ("2024/1/30, 午前 0:05 - Nora: Hi", "2024-01-30T00:05:00"),
        ("2024. 1. 30. 오후 9:50 - Nora: Hi", "2024-01-30T21:50:00"),
        ("30.1.2024 klo 21.50 - Nora: Hi", "2024-01-30T21:50:00"),
        ("2024-01-30, 21:50 - Nora: Hi", "2024-01-30T21:50:00"),
        ("30/01/24 21:50 - \u202aNora\u202c: Hi", "2024-01-30T21:50:00"),
    ],
)
def test_lines_of_many_phones(line: str, time: str) -> None:
    (memory,) = Imported(line).memories
    assert (memory.speaker, memory.text) == ("Nora", "Hi")
    assert memory.created_at == datetime.fromisoformat(time).replace(tzinfo=UTC)


def test_messages_of_several_lines_and_with_colons_stay_whole() -> None:
    read = Imported(
        "30/01/2024, 21:50 - Nora: Shopping list: first\nbread\n\n12: eggs\n30/01/2024, 21:51 - Ivo & co: Fine\n"
    )
    assert read.texts == ["Shopping list: first\nbread\n\n12: eggs", "Fine"]
    assert read.memories[1].speaker == "Ivo & co"


def test_what_nobody_said_is_skipped_by_reason() -> None:
    read = Imported(
        "A line that was cut off\n"
        "30/01/2024, 21:49 - Messages and calls are end-to-end encrypted.\n"
        '30/01/2024, 21:50 - Nora changed the group name from "a: b" to "c: d"\n'
        "30/01/2024, 21:51 - Nora: <Media omitted>\n"
        "30/01/2024, 21:52 - Nora: This message was deleted\n"
        "[30/01/2024, 21:53:00] Nora: \u200eaudio omitted\n"
        "[30/01/2024, 21:54:00] Nora: Yes \u200e<This message was edited>\n",
        "whatsapp",
    )
    assert read.texts == ["Yes"]
    assert read.skips == {
        "line 1": "line before the first message",
        "line 2": "notice of the chat",
        "line 3": "notice of the chat",
        "line 4": "medium without text",
        "line 5": "deleted message",
        "line 6": "medium without text, or notice",
    }


def test_the_same_words_in_the_same_minute_are_two_messages() -> None:
    read = Imported("30/01/2024, 21:50 - Nora: Ha\n30/01/2024, 21:50 - Nora: Ha\n")
    assert len({memory.id for memory in read.memories}) == 2


def test_a_day_that_does_not_exist_is_named() -> None:
    read = Imported("30/01/2024, 21:50 - Nora: One\n31/02/2024, 21:50 - Nora: Two\n")
    assert read.texts == ["One"]
    assert read.errors == {"line 2": "its date or time does not exist"}


_days = st.dates(date(2010, 1, 1), date(2039, 12, 31))


@given(st.lists(_days, min_size=1, max_size=30), st.booleans())
def test_the_order_that_is_inferred_is_the_one_that_was_written(days: list[date], day_first: bool) -> None:
    """In any chat, as its days never run back: it is inferred, or the user must say it."""
    written = [
        (day.day, day.month, day.year % 100) if day_first else (day.month, day.day, day.year % 100)
        for day in sorted(days)
    ]
    if all(first == second for first, second, _ in written):
        return
    try:
        assert is_day_first(written) == day_first
    except InvalidInput:
        assert all(first <= 12 and second <= 12 for first, second, _ in written)


@given(_days, st.integers(32, 300), st.booleans())
def test_a_month_of_daily_messages_always_tells(start: date, count: int, day_first: bool) -> None:
    days = [start + timedelta(days=number) for number in range(count)]
    written = [(day.day, day.month, day.year) if day_first else (day.month, day.day, day.year) for day in days]
    assert is_day_first(written) == day_first


def test_one_chat_in_both_orders_is_asked_for() -> None:
    with pytest.raises(InvalidInput, match="--day-first"):
        is_day_first([(13, 1, 24), (1, 13, 24)])
