"""Shortcuts in reading a text only skip parts that would give nothing."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from classifier.traits import MEMORY_TRAITS, pack_traits
from graph import tokenizer

WORDS = re.findall(
    r"\S+",
    "I I'm my My me we our Ann Rome Acme you your Your married to works working work as a teacher at for got have had"
    " landed started new job live lives living resides in moved back over from born and raised on May 3 am is was 's 'm"
    " come comes hails originally founded Co-founded cofounded 1999 by owned directed written own owns wrote co-wrote"
    " authored created invented the capital city of located situated based headquartered town part proud member sister"
    " brother wife friend dog cat named called adopted has are were siblings 've friends like LIKES love fan not can't"
    " cannot stand interested last week Friday 12:30 v1.2 U.S.A 2023-05-08 don't C++ C# \u017ftand li\u212ae \u0130"
    " \u0131 caf\u00e9 e\u0301 \u65e5\u672c . , ? ! ; - _ @ann #rome www. http:// a.friend@acme.org",
)
TEXTS = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(["", " ", " ", "  ", "\n"])), max_size=25).map(
    lambda parts: "".join(word + blank for word, blank in parts)
)


@given(TEXTS | st.text(max_size=40))
def test_a_word_that_is_told_at_once_is_the_same_token_either_way(text: str) -> None:
    """Also beside addresses."""
    at_once, pattern = r"[a-z]+(?=[\s,;!?])", tokenizer._TOKEN.pattern
    assert pattern.count(at_once) == 1
    plain = re.compile(pattern.replace(at_once, "(?!)"), re.VERBOSE)
    slowly = [(m.lastgroup, m.group(), m.start(), m.end()) for m in plain.finditer(text)]
    assert tokenizer.tokenize(text) == slowly


_COUNTED = {
    "first_person": (3, r"\b(?:i|i'm|i've|i'd|i'll|my|me|mine|we|our)\b"),
    "liking": (
        3,
        r"\b(?:prefer|preferably|like|liked|likes|love|loves|loved|enjoy|enjoys|hate|hates|dislike|avoid|favorite"
        r"|favourite|fan of|can't stand|cannot stand|not a fan|allergic|rather|interested in|passion|passionate|always"
        r"|never|strongly)\b",
    ),
    "you": (1, r"\byou(?:r)?\b"),
    "date": (1, r"\b(?:may|friday|last|next|week|month|today)\b"),
    "year": (1, r"\b(?:1[5-9]\d\d|20[0-4]\d)\b"),
}
_PLACES = {"year": (3, 1), "date": (4, 1), "first_person": (5, 3), "liking": (7, 3), "you": (12, 1)}


@given(TEXTS)
def test_traits_count_what_their_expressions_find(text: str) -> None:
    packed = pack_traits(text)
    assert _PLACES.keys() <= {*MEMORY_TRAITS}
    for name, (most, expression) in _COUNTED.items():
        shift, mask = _PLACES[name]
        assert packed >> shift & mask == min(most, len(re.findall(expression, text, re.IGNORECASE)))
