"""Deduplication against comparing every text with every survivor."""

from __future__ import annotations

import ctypes

from hypothesis import given
from hypothesis import strategies as st

import native
from retrieval.ranking.dedup import MAX_WORDS, MIN_WORDS, THRESHOLD, deduplicate
from retrieval.text.normalized_text import MAX_SQUEEZED, comparable, contradicts, wording
from retrieval.types.memory import Kind
from tests.said import Said

WORDS = (
    "I like the dog tea don't don’t — , ! ? 3 -5 Paris été ÉTÉ ﬁn fin Ｉ ß ss 東京都 東 C++ _x_ A.B 😀 % İ a b c d e f"
)
PIECES = st.sampled_from([*WORDS.split(), "\x00", "\x1c", "\ud800", "\xa0"])
SENTENCES = st.lists(PIECES, max_size=40)
GAPS = st.sampled_from([" ", "  ", ", ", "\n"])
SPEAKERS = st.sampled_from([None, None, "Ann", "Bob"])
TITLES = st.sampled_from([None, None, "One", "Other"])
KINDS: st.SearchStrategy[Kind] = st.sampled_from(("memory", "message"))


@st.composite
def candidates(draw: st.DrawFn) -> list[Said]:
    """Many of them variations of one text."""
    base = draw(SENTENCES)
    found = []
    for number in range(draw(st.integers(0, 8))):
        words = list(base) if draw(st.booleans()) else draw(SENTENCES)
        for _ in range(draw(st.integers(0, 2)) if words else 0):
            words[draw(st.integers(0, len(words) - 1))] = draw(PIECES)
        speaker = draw(SPEAKERS)
        prefix = f"{speaker}: " if speaker and draw(st.booleans()) else ""
        text = prefix + draw(GAPS).join(words)
        found.append(Said(id=str(number), text=text, speaker=speaker, title=draw(TITLES), kind=draw(KINDS)))
    return found


def jaccard(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    if not all(MIN_WORDS <= len(words) <= MAX_WORDS for words in (one, other)):
        return 0.0
    left, right = ({words[at : at + 3] for at in range(len(words) - 2)} for words in (one, other))
    return len(left & right) / len(left | right)


def grouped(given_: list[Said], threshold: float) -> list[tuple[str, ...]]:
    """The best ranked first that says the same, or else nearly the same."""
    groups: list[list[Said]] = []

    def title(one: Said) -> str | None:
        return None if one.kind == "message" else one.title

    def may_join(group: list[Said], one: Said) -> bool:
        speakers, titles = {each.speaker for each in group} - {None}, {title(each) for each in group} - {None}
        return (not one.speaker or speakers <= {one.speaker}) and (not title(one) or titles <= {title(one)})

    for one in given_:
        own = wording(one.text, one.speaker)
        said = [(group, wording(group[0].text, group[0].speaker)) for group in groups if may_join(group, one)]
        same = [group for group, words in said if words == own]
        near = [
            group
            for group, words in said
            if jaccard(own.words, words.words) >= threshold and not contradicts(own, words)
        ]
        if same or near:
            (same or near)[0].append(one)
        else:
            groups.append([one])
    return [tuple(each.id for each in group) for group in groups]


@given(candidates(), st.sampled_from([THRESHOLD, 0.3, 0.6, 1.0]))
def test_it_is_what_comparing_every_pair_gives(given_: list[Said], threshold: float) -> None:
    found = [*map(tuple, deduplicate(given_, threshold=threshold))]
    assert found == grouped(given_, threshold)


TEXTS = st.lists(st.binary(max_size=60).map(lambda text: text.replace(b"\xff", b"")), min_size=1, max_size=6)


@given(TEXTS, st.floats(0.01, 1))
def test_the_kernel_stays_within_bounds(texts: list[bytes], threshold: float) -> None:
    """For any bytes; a wrong number of texts is refused, and memory behind the marks is left alone."""
    mark = native.function("trivet_alike", "PqqqqdP", "q")
    joined = b"\xff".join(texts)
    for count in (len(texts) - 1, len(texts), len(texts) + 1):
        marks = ctypes.create_string_buffer(b"\x07" * (count + 4), count + 4)
        found = mark(joined, len(joined), count, 3, 10, threshold, marks)
        assert marks.raw[count:] == b"\x07" * 4
        if count == len(texts):
            assert found == sum(marks.raw[:count])
            assert all(marks.raw[at] == 1 for at, text in enumerate(texts) if texts.count(text) > 1)
        else:
            assert found == -2


def test_long_texts_are_told_apart_by_what_is_written() -> None:
    long = "été " * MAX_SQUEEZED
    assert comparable(long) == comparable(f" {long}") != comparable(long.upper())
    assert len(comparable(long)) < 30
