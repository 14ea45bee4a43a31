"""From text to terms: words of every script, identifiers, stems, hashes, bags."""

import threading

import numpy as np
import pytest

from retrieval.errors import InvalidInput
from retrieval.text.analysis import LANGUAGES, MAX_COUNT, TermBag, analyze, bag, resolve_language, term_id


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("I went to THE group.", ["i", "went", "to", "the", "group"]),
        ("again and again", ["again", "and", "again"]),
        ("foo_bar", ["foobar", "foo", "bar"]),
        ("fooBar", ["foobar", "foo", "bar"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("PDFs iPhone", ["pdfs", "iphone", "phone"]),
        ("ABC-123", ["abc123", "abc", "123"]),
        ("abc123", ["abc123", "abc", "123"]),
        ("v1.2.3", ["v1.2.3", "v1", "2", "3"]),
        ("a@b.c", ["a@b.c", "a", "b.c", "b", "c"]),
        ("/src/foo_bar.py", ["src/foo_bar.py", "src", "foo_bar.py", "foobar", "foo", "bar", "py"]),
        (r"C:\dir\x", ["c", "dir\\x", "dir", "x"]),
        ("__init__ _ x_", ["init", "x"]),
        ("C++ C# F", ["c++", "c", "c#", "c", "f"]),
        ("2023-05-08 10:30", ["20230508", "2023", "05", "08", "10:30", "10", "30"]),
        ("1,000,000 a,b 1,5", ["1000000", "a", "b", "1,5", "1", "5"]),
        ("U.S.A. e.g. this", ["usa", "eg", "this"]),
        ("AT&T", ["at&t", "at", "t"]),
        ("Caroline's dogs' we're", ["caroline", "dogs", "we"]),
        ("don’t DON'T", ["don't", "don't"]),
        ("O'Brien l'amour", ["obrien", "brien", "amour"]),
        ("İstanbul'da Ayşe’ye", ["istanbulda", "istanbul", "ayseye", "ayse"]),
        ("l'e-mail dell'INV-20481", ["email", "e", "mail", "inv20481", "inv", "20481"]),
        ("INV-20481'in 1990’lar 5'11", ["inv20481", "inv", "20481", "1990", "511"]),
        ("d'Aix-en-Provence l'U.N.", ["aixenprovence", "aix", "en", "provence", "un"]),
        ("e-mail", ["email", "e", "mail"]),
        ("ends.Then", ["ends.then", "ends", "then"]),
        ("wait...what--ever", ["wait", "what", "ever"]),
        ("東京都", ["東京", "京都"]),
        ("茶", ["茶"]),
        ("お茶を飲む", ["お茶", "茶を", "を飲", "飲む"]),
        ("東京iPhone手機", ["東京", "iphone", "phone", "手機"]),
        ("안녕하세요 세계", ["안녕", "녕하", "하세", "세요", "세계"]),
        ("สวัสดี", ["สวั", "วัส", "สดี"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ｶﾞｷﾞ ガギ", ["ガギ", "ガギ"]),
        ("Ｆｕｌｌ ﬁre", ["full", "fire"]),
        ("café CAFÉ cafe\u0301 cafe", ["cafe"] * 4),
        ("Zürich Straße STRASSE", ["zurich", "strasse", "strasse"]),
        ("İstanbul ISPARTA ısparta", ["istanbul", "isparta", "isparta"]),
        ("Αθήνα ΑΘΗΝΑ σοφός", ["αθηνα", "αθηνα", "σοφοσ"]),
        ("ёлка йод", ["елка", "йод"]),
        ("שָׁלוֹם שלום", ["שלום", "שלום"]),
        ("٢٠٢٣ ۲۰۲۳", ["2023", "2023"]),
        ("می\u200cخواهم كتاب", ["میخواهم", "کتاب"]),
        ("м’ята", ["мята"]),
        ("co\u00adop 2019–2020", ["coop", "20192020", "2019", "2020"]),
    ],
)
def test_words_identifiers_and_every_script(text: str, terms: list[str]) -> None:
    assert analyze(text) == terms


@pytest.mark.parametrize("language", ["simple", "english"])
@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        (" \n\t", []),
        ("?!… —", []),
        ("\ud800\udfff", []),
        ("\x00\x07", []),
        ("a\x00b\ud800c", ["a", "b", "c"]),
        ("😀 👍🏽 ❤️", ["😀", "👍", "❤"]),
        ("tea 😀", ["tea"]),
    ],
)
def test_texts_with_few_words_or_none(text: str, terms: list[str], language: str) -> None:
    """In English `a` alone is a stop word; it stays where b and c would go without it."""
    expected = [term for term in terms if term != "a"] if language == "english" else terms
    assert analyze(text, language) == expected


def test_stems_and_stop_words() -> None:
    assert analyze("The dogs were running and the dog ran", "en") == ["dog", "run", "dog", "ran"]
    assert analyze("Die Häuser und das Haus", "german") == ["haus", "haus"]
    assert analyze("les chevaux et la cheval", "fr") == ["cheval", "cheval"]
    assert analyze("Собака и собаки", "ru") == ["собак", "собак"]


@pytest.mark.parametrize(
    ("words", "stem"),
    [("किताब किताबें किताबों", "किताब"), ("كتاب الكِتَابُ كتابًا", "کتاب")],
)
def test_words_with_vowel_signs_and_points_have_stems(words: str, stem: str) -> None:
    assert analyze(words, "auto") == [stem] * len(words.split())


def test_accents_do_not_matter_after_stemming() -> None:
    assert analyze("naïve résumé", "english") == analyze("naive resume", "english")
    assert analyze("habitación", "spanish") == analyze("habitacion", "spanish")


@pytest.mark.parametrize("language", ["auto", "english"])
def test_an_acronym_in_capitals_is_no_stop_word(language: str) -> None:
    assert analyze("Who works in IT at the WHO?", language) == ["work", "it", "who"]
    assert analyze("It is she who works", language) == ["work"]


def test_a_text_of_stop_words_keeps_them() -> None:
    assert analyze("to be or not to be", "english") == ["to", "be", "or", "not", "to", "be"]


def test_plural_and_possessive_of_an_identifier_meet_in_english() -> None:
    assert analyze("FooBars", "english")[0] == analyze("foobar's", "english")[0] == "foobar"


@pytest.mark.parametrize(
    "text", ["a" * 60_000, "aB1" * 20_000, "a-" * 30_000, "a.b/" * 15_000, "a'" * 30_000, "東" * 60_000]
)
def test_blobs_give_terms_in_bounded_number(text: str) -> None:
    terms = analyze(text, "english")
    assert 0 < len(terms) <= 60_000
    assert sum(map(len, terms)) <= 4 * len(text)


@pytest.mark.parametrize(
    ("name", "canonical"),
    [("en", "english"), ("English", "english"), ("pt-BR", "portuguese"), ("zh_TW", "simple"), ("", None), ("xx", None),
     ("none", "simple"), ("nb", "norwegian"), ("porter", None)],
)  # fmt: skip
def test_languages_by_name_and_code(name: str, canonical: str | None) -> None:
    if canonical:
        assert resolve_language(name) == canonical
    else:
        with pytest.raises(InvalidInput) as refused:
            resolve_language(name)
        assert refused.value.loc == ("language",)
        with pytest.raises(InvalidInput):
            analyze("x", name)


def test_every_language_analyses_every_script() -> None:
    text = "Running dogs, laufende Hunde, собаки, σκύλοι, كلاب, 小狗, कुत्ते"
    for name in LANGUAGES:
        terms = analyze(text, name)
        assert len(terms) >= 8, name
        assert all(terms), name


def test_threads_do_not_disturb_each_others_stemmers() -> None:
    words = [f"running{i}walks dogs{'s' * (i % 3)} generalization{'ly' * (i % 5)}s" for i in range(300)]
    expected = [analyze(f"{word} z", "english") for word in words]
    seen: list[list[list[str]]] = []

    def work() -> None:
        seen.append([analyze(f"{word} z", "english") for word in words])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [expected] * 8


def test_term_ids_are_fixed_for_good() -> None:
    """They are in the database: a change of these numbers needs every namespace rebuilt."""
    for term, b2sum in (("support", "7e038954d18639c4"), ("東京", "ee1155cad1682bf0")):
        assert term_id(term) == int.from_bytes(bytes.fromhex(b2sum), "little", signed=True)
    assert len({term_id(f"term{i}") for i in range(10_000)}) == 10_000


def test_a_bag_counts_title_terms_by_their_weight() -> None:
    memory = bag("group support group", "Support Choir", "simple", title_weight=3)
    counts = dict(zip(memory.terms.tolist(), memory.tfs.tolist(), strict=True))
    assert counts == {term_id("group"): 2, term_id("support"): 4, term_id("choir"): 3}
    assert memory.length == 9
    assert memory.terms.dtype == np.int64
    assert memory.tfs.dtype == np.uint16
    assert memory.terms.tolist() == sorted(memory.terms.tolist())


def test_a_han_character_finds_a_text_that_has_it_within_a_run() -> None:
    """It adds no length; kana and hangul are no words by themselves."""
    found = bag("うちの猫は茶。", "猫", "simple", title_weight=3)
    alone = analyze("猫", "simple") + analyze("茶", "simple")
    counts = dict(zip(found.terms.tolist(), found.tfs.tolist(), strict=True))
    assert [counts[term_id(term)] for term in alone] == [3, 1]
    assert term_id("う") not in counts
    assert found.length == len(analyze("うちの猫は茶。", "simple")) + 3


def test_a_title_of_weight_zero_and_none_are_the_same() -> None:
    for one, other in zip(as_lists(bag("a b", "c", "simple", title_weight=0)),
                          as_lists(bag("a b", None, "simple", title_weight=5)), strict=True):  # fmt: skip
        assert one == other


def as_lists(memory: TermBag) -> tuple[list[int], list[int], int]:
    return memory.terms.tolist(), memory.tfs.tolist(), memory.length


def test_frequencies_are_clipped_to_16_bits() -> None:
    """Not so the length, which would make a long text look short."""
    memory = bag("a " * 30_000, "a " * 500, "simple", title_weight=100)
    assert memory.tfs.tolist() == [MAX_COUNT]
    assert memory.length == 80_000


def test_an_empty_bag() -> None:
    assert as_lists(bag("?", None, "english", title_weight=2)) == ([], [], 0)


def test_a_negative_title_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="title_weight"):
        bag("a", "b", "simple", title_weight=-1)
