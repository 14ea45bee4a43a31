"""Excerpts of long texts: whole sentences around the best match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answer.excerpt import excerpt
from retrieval.answer.token_counter import count_tokens

FILLER = "The weather was dull that week. We stayed at home and read. "


def words(text: str) -> int:
    return len(text.split())


def of(text: str, query: str, max_tokens: int, speaker: str | None = None) -> str | None:
    return excerpt(text, query, "en", max_tokens=max_tokens, count=words, speaker=speaker)


def test_a_text_that_fits_is_whole() -> None:
    assert of("One. Two.", "two", 2) == "One. Two."


def test_the_answer_in_the_middle_is_shown() -> None:
    text = FILLER * 100 + "Ines told me that she sold her blue boat. " + FILLER * 100
    shown = of(text, "What did Ines sell? A boat?", 30)
    assert shown is not None
    assert "she sold her blue boat." in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert 20 <= words(shown) <= 30


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("apples", "Apples. Bread. …"),
        ("eggs", "… Dates. Eggs."),
        ("cake", "… Cake. Dates. …"),
        ("nothing", "Apples. Bread. …"),
    ],
)
def test_an_ellipsis_stands_where_it_is_cut(query: str, shown: str) -> None:
    assert of("Apples. Bread. Cake. Dates. Eggs.", query, 4) == shown


@pytest.mark.parametrize(
    ("before", "best", "after"),
    [
        ("कल बारिश हुई। ", "बहन ने नीली नाव बेची।", " हम घर पर रहे।"),
        ("أين ذهبت أمس؟ ", "باعت أختي القارب الأزرق.", " بقينا في البيت."),
        ("昨日は雨でした。", "妹は「青い船を売った。」", "私たちは家にいました。"),
    ],
)
def test_sentences_end_with_the_stops_of_their_script(before: str, best: str, after: str) -> None:
    shown = excerpt(before + best + after, best, "auto", max_tokens=len(best) + 4, count=len)
    assert shown == f"… {best} …"


@pytest.mark.parametrize(
    ("query", "shown"),
    [("onions", "… 2. Fry the onions slowly. …"), ("soup", "This is the soup of my aunt. …")],
)
def test_the_number_of_a_lists_entry_stays_with_it(query: str, shown: str) -> None:
    text = "This is the soup of my aunt. 1. Soak the beans. 2. Fry the onions slowly. **b.** Add salt to taste."
    assert of(text, query, 10) == shown


def test_a_row_of_dots_after_a_number_is_no_label() -> None:
    """Each dot was tried with all before it: a text of 60,000 characters took seconds."""
    shown = of("1." + " ." * 30_000 + " The soup is hot.", "soup", 10)
    assert shown is not None
    assert shown.endswith(". The soup is hot.")


def test_rare_words_count_more_than_common_ones() -> None:
    text = "The boat left. The boat came. The boat sank. The boat of Ines left today. " + FILLER * 3
    assert of(text, "the boat of Ines", 8) == "… The boat of Ines left today. …"


def test_the_name_of_the_speaker_matches_no_sentence() -> None:
    """It precedes the first one, often a greeting, which would be the best match of every question that names it."""
    text = "Jonas: Good morning! " + FILLER * 3 + "I had the grinder repaired. " + FILLER * 3
    assert of(text, "When did Jonas repair it?", 7, "Jonas") == "… I had the grinder repaired. …"


@pytest.mark.parametrize("before", ["", "It rained. "])
def test_a_long_sentence_fills_the_room_that_a_short_one_leaves(before: str) -> None:
    shown = of(f"{before}Good boat! I sold it to {'a very ' * 30}good friend.", "boat", 20)
    assert shown is not None
    assert shown.startswith(f"{'… ' if before else ''}Good boat! I sold it to a very")
    assert shown.endswith("…")
    assert 10 <= words(shown) <= 20


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    shown = of("word " * 300 + "needle " + "word " * 300, "needle", 20)
    assert shown is not None
    assert "needle" in shown
    assert words(shown) <= 20
    assert of("x" * 500 + " y" * 20, "z", 1) is None or words(of("x" * 500 + " y" * 20, "z", 1) or "") <= 1


def test_quotation_marks_stay_with_their_sentence() -> None:
    assert of('She said "no." He left. They ate a lot of bread.', "no", 5) == 'She said "no." …'


SENTENCES = st.lists(st.text("ab 東京.。!?\n\"'", min_size=1, max_size=30), min_size=1, max_size=12).map(" ".join)


@given(st.one_of(SENTENCES, st.text(max_size=300)), st.text(min_size=1, max_size=20), st.integers(1, 40))
def test_an_excerpt_never_has_more_tokens_than_allowed(text: str, query: str, max_tokens: int) -> None:
    shown = excerpt(text, query, "auto", max_tokens=max_tokens, count=count_tokens)
    if count_tokens(text) <= max_tokens and len(text.split()) <= max_tokens:
        assert shown == text
    elif shown is not None:
        assert count_tokens(shown) <= max_tokens


@pytest.mark.parametrize("text", ["\N{CJK UNIFIED IDEOGRAPH-6C34}" * 300_000, "QWxhZGRpbjpvcGVu" * 20_000])
def test_a_long_text_without_spaces_is_not_counted_whole(text: str) -> None:
    counted = []

    def count(part: str) -> int:
        counted.append(len(part))
        return count_tokens(part)

    assert excerpt(text, "boat", "en", max_tokens=64, count=count)
    assert max(counted) < 1_000
