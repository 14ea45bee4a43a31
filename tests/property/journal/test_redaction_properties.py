"""The result of redaction, for any text around an address."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.provisional import urls

from retrieval.journal.query_log import redact
from retrieval.types.namespace import QueryLogSettings, Redaction

DEFAULT = QueryLogSettings().redact
EACH: list[Redaction] = ["email", "phone", "number", "url"]
AROUND = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["Who wrote to ", " on 2024-05-01?", "(", "),", "tel:", "mailto:", "<", ">", '"', "写信给", " or 12:30 ", "1", "+"]
)

AREA_AND_LINE = st.tuples(st.from_regex(r"[0-9]{2,4}", fullmatch=True), st.from_regex(r"[0-9]{5,8}", fullmatch=True))
PHONES = st.builds(
    lambda prefix, parts, between: prefix + between.join(parts),
    st.sampled_from(["", "+", "+49", "+1 ", "00 44 ", "(0)"]),
    AREA_AND_LINE,
    st.sampled_from(["", " ", "-", "/", ".", ") ", " - ", "\u2011", "\u00a0"]),
)


@given(AROUND, st.emails(), AROUND)
def test_no_email_survives(before: str, email: str, after: str) -> None:
    left = redact(before + email + after, DEFAULT)
    assert email not in left
    assert email.rpartition("@")[2] not in left.split()


@given(AROUND, urls(), AROUND)
def test_no_url_survives(before: str, url: str, after: str) -> None:
    left = redact(before + url + after, DEFAULT)
    assert url not in left
    assert "://" not in left


@given(
    st.sampled_from(["", "call ", "tel:", "(", "写信给", "x"]),
    PHONES,
    st.sampled_from(["", "?", " now", ")", "x", "号"]),
)
def test_no_phone_number_survives(before: str, phone: str, after: str) -> None:
    """Not even its line's number."""
    assert redact(before + phone + after, DEFAULT) == before.removesuffix("(" if phone[0].isdigit() else "") + (
        "[phone]" + after
    )


@given(AROUND, AROUND)
def test_no_digit_survives_where_numbers_go(before: str, after: str) -> None:
    assert not any(character.isdecimal() for character in redact(f"{before}7{after}", ["number"]))


@given(st.lists(AROUND | st.emails() | urls() | PHONES, max_size=4), st.lists(st.sampled_from(EACH), max_size=4))
def test_what_is_redacted_stays_as_it_is(pieces: list[str], redactions: list[Redaction]) -> None:
    once = redact(" ".join(pieces), redactions)
    assert redact(once, redactions) == once


@given(st.text(st.characters(categories=["L", "Zs"]), max_size=100), st.lists(st.sampled_from(EACH), max_size=4))
def test_words_stay(text: str, redactions: list[Redaction]) -> None:
    assert redact(text, redactions) == text
