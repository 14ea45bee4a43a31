"""Phrases that ask for a state are found wherever a plain expression of all of them finds one."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.stopwords import data_lines
from retrieval.text.time import states

PHRASES = {
    name: [phrase for line in data_lines(name) for phrase in states._spelled_out(line)]
    for name in ("asks_for_now", "asks_for_before")
}
FOUND_BY = {"asks_for_now": states._NOW, "asks_for_before": states._BEFORE}
ALL = sorted(set().union(*PHRASES.values()))
UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")

PIECES = (
    st.sampled_from(ALL)
    | st.sampled_from(ALL).flatmap(lambda phrase: st.sampled_from([phrase.upper(), phrase[:-1], phrase[1:]]))
    | st.sampled_from([" ", "", "_", "'", "-", "s", "now", "İ", "ı", "ſ", "\u212a", "\u0301", "ᲀ", "今", "の"])
    | st.text(max_size=4)
)


def plain(phrases: list[str]) -> re.Pattern[str]:
    """Each phrase with its own boundaries, one after the other."""
    return re.compile(
        "|".join(re.escape(each) if UNSPACED.match(each) else rf"\b{re.escape(each)}(?!-?\w)" for each in phrases),
        re.IGNORECASE,
    )


PLAIN = {name: plain(phrases) for name, phrases in PHRASES.items()}


@pytest.mark.parametrize("name", PHRASES)
@given(pieces=st.lists(PIECES, max_size=8))
def test_the_same_is_found_as_by_a_plain_expression(name: str, pieces: list[str]) -> None:
    for query in ("".join(pieces), " ".join(pieces)):
        assert bool(FOUND_BY[name].search(query)) == bool(PLAIN[name].search(query))


@pytest.mark.parametrize("name", PHRASES)
def test_every_spelling_of_a_first_letter_is_one(name: str) -> None:
    """Also with Unicode's unusual pairs of upper and lower case."""
    ends = {phrase[0]: phrase[1:] for phrase in PHRASES[name]}
    everything = "".join(map(chr, range(0x80, sys.maxunicode + 1)))
    for first, rest in ends.items():
        for letter in {first, *re.findall(re.escape(first), everything, re.IGNORECASE)}:
            assert FOUND_BY[name].search(letter + rest)
