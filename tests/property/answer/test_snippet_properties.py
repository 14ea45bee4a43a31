"""A snippet shows the first match that a plain search, word by word, finds."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from graph.names import RUN
from graph.stopwords import words
from retrieval.answer.snippet import _first_match, query_terms, terms_within
from retrieval.text.analysis import analyze
from retrieval.text.characters import bigrams, prepare

PIECES = (
    st.sampled_from(words("choir choirs Choir-boy the café don’t x.y@z 1,000 東京タワー 茶 choir茶 한국 a"))
    | st.sampled_from([" ", ", ", "((", "? ", '"', "“", "”", "«", "é", "\x7f", "\u0301", "-", "."])
    | st.text(max_size=3)
)
TEXTS = st.lists(PIECES, max_size=12).map(lambda pieces: " ".join("".join(pieces).split()))
ASCII = st.sampled_from(words("choir boys Choir-boy x.y@z 1,000")) | st.text(
    st.characters(max_codepoint=127), max_size=3
)
ASCII_TEXTS = st.lists(ASCII, max_size=12).map("".join)
QUERIES = st.lists(st.sampled_from(words("choir café 東京 茶 한국 boy the zebra 1000")), max_size=3).map(" ".join)
WORD = re.compile(r"[^\s,;!?()\[\]{}<>\"“”«»]+")
LANGUAGES = st.sampled_from(["auto", "simple", "english", "german"])


def first_match(text: str, terms: frozenset[str], language: str) -> tuple[int, int]:
    """Each word is split at the scripts without spaces, whose characters and pairs are compared one by one."""
    for word in WORD.finditer(text):
        offset = word.start()
        for piece in RUN.split(word[0]):
            if RUN.match(piece):
                for position, pair in enumerate(bigrams(prepare(piece)), offset):
                    if pair in terms or not terms.isdisjoint(pair):
                        return position, position + len(pair)
            elif not terms.isdisjoint(analyze(piece, language)):
                return offset, offset + len(piece)
            offset += len(piece)
    return 0, 0


@given(TEXTS, QUERIES, LANGUAGES)
@example('a,,b "choir"', "choir", "simple")
@example("", "choir", "simple")
@example("a b", "", "simple")
def test_the_first_match_is_that_of_a_plain_search(text: str, query: str, language: str) -> None:
    terms = query_terms(query, language)
    assert _first_match(text, terms, language) == first_match(text, terms, language)


@given(ASCII_TEXTS, QUERIES, LANGUAGES)
def test_a_text_has_the_terms_of_its_words(text: str, query: str, language: str) -> None:
    terms = query_terms(query, language)
    found = {term for word in WORD.findall(text) for term in analyze(word, language)}
    assert terms_within(text, terms, language) == terms & found
