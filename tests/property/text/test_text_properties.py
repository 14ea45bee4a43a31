"""Invariants of analysis, for any text."""

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from retrieval.answer.snippet import MAX_CHARS, snippet
from retrieval.answer.token_counter import count_tokens
from retrieval.installation import models_dir
from retrieval.text.analysis import LANGUAGES, analyze, bag, term_id
from retrieval.text.characters import han_characters, prepare
from retrieval.text.languages import term_of
from retrieval.text.normalized_text import contradicts, wording
from retrieval.text.word_pieces import TOKENIZER_FILE

TEXTS = (
    st.text(st.characters(), max_size=300)
    | st.text("aB1_-.@/'’ 東カ한\u0301é😀", max_size=60)
    | st.text("_'-.+#,@/鉛カa1", max_size=8)
)
NAMES = st.sampled_from(sorted(LANGUAGES))
TOKENIZER = Tokenizer.from_file(str(models_dir() / TOKENIZER_FILE))


@given(TEXTS, NAMES)
@example("_", "auto")
@example("a __ b _'_", "auto")
@example("鉛# 鉛. 鉛++", "auto")
def test_terms_are_words_without_case_or_spaces(text: str, language: str) -> None:
    for term in analyze(text, language):
        assert term
        assert not any(character.isspace() for character in term)
        assert any(unicodedata.category(character)[0] in "LNSM" for character in term)
        assert -(2**63) <= term_id(term) < 2**63


@given(TEXTS, TEXTS, NAMES)
def test_analysis_of_lines_is_the_analysis_of_each(one: str, other: str, language: str) -> None:
    """If both have words that are not stop words: a line does not affect the next one."""
    first, second = analyze(f"zebra {one}", language), analyze(f"zebra {other}", language)
    assert analyze(f"zebra {one}\nzebra {other}", language) == first + second


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=70), NAMES)
@example("the", "english")
def test_a_plain_word_has_one_term(word: str, language: str) -> None:
    assert analyze(word, language) == [term_of(word, language)]


@given(st.text("abcdefghij ,.!?\n", max_size=80), NAMES)
def test_upper_case_changes_nothing(text: str, language: str) -> None:
    assert analyze(text.upper(), language) == analyze(text, language)


@given(TEXTS, TEXTS, NAMES, st.integers(0, 10))
def test_a_bag_holds_what_analysis_finds(text: str, title: str, language: str, title_weight: int) -> None:
    memory = bag(text, title, language, title_weight=title_weight)
    expected = len(analyze(text, language)) + title_weight * len(analyze(title, language))
    said = [text, title] if title_weight else [text]
    singles = han_characters(prepare(" ".join(said))).difference(*(analyze(each, language) for each in said))
    assert memory.length == int(memory.tfs.sum()) - len(singles) == expected
    assert len(set(memory.terms.tolist())) == len(memory.terms) == len(memory.tfs)


@given(TEXTS, TEXTS)
def test_token_counts_are_at_least_one_per_word(one: str, other: str) -> None:
    assert count_tokens(one) >= len(one.split())
    assert count_tokens(f"{one}\n{other}") == count_tokens(one) + count_tokens(other)


@given(st.text("aB1_-.@/'’é鉛 \t\r\n\u00a0\u2028\u3000[UNK]", max_size=60))
@example("[UNK] [ UNK ]\xa0[MASK]")
def test_words_have_together_the_tokens_of_the_text(text: str) -> None:
    """The names of special tokens are words like any other."""
    whole = TOKENIZER.encode(text.replace("[UNK]", "[unk]").replace("[MASK]", "[mask]"), add_special_tokens=False)
    unknown = [end - start for piece, (start, end) in zip(whole.tokens, whole.offsets, strict=True) if piece == "[UNK]"]
    assert count_tokens(text) == len(whole.tokens) + sum(unknown) - len(unknown)


@given(TEXTS, TEXTS, NAMES, st.integers(8, 80))
def test_a_snippet_is_a_piece_of_the_text_within_bounds(text: str, query: str, language: str, bound: int) -> None:
    squeezed = " ".join(text.split())
    shown = snippet(text, query, language, max_chars=bound)
    assert len(shown) <= bound <= MAX_CHARS
    if shown != squeezed:
        assert shown.removeprefix("…").removesuffix("…") in squeezed
        assert shown.startswith("…") or shown.endswith("…")


@given(TEXTS)
def test_a_wording_never_contradicts_itself(text: str) -> None:
    own = wording(text)
    assert wording(f"  {text}\n") == own
    assert not contradicts(own, own)
