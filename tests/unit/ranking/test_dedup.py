"""Which memories are duplicates, and which only look like it."""

import random

import pytest

from retrieval.ranking.dedup import MAX_WORDS, deduplicate
from retrieval.text.normalized_text import MAX_SQUEEZED
from tests.said import Said

LONG = (
    "We drove up the coast on the weekend with both kids and the dog, stayed in a small cabin by the lake, "
    "and cooked dinner over the fire every night while the rain kept falling on the roof above us"
)

CHINESE = (
    "下周三下午带女儿去市儿童医院看牙,记得提前预约,带上医保卡和上次的病历,停车位很紧张,"
    "最好坐地铁到人民广场站下车再走过去,很快就能到门诊大楼的挂号处"
)
ARABIC = (
    "عنده موعد مع طبيب الأسنان في المستشفى المركزي صباح الثلاثاء ويجب أن يأخذ معه بطاقة التأمين والصور القديمة وأن يصل "
    "قبل الموعد بنصف ساعة لأن الموقف مزدحم دائما في الصباح ومن الأفضل أن يأتي بالحافلة التي تقف أمام الباب الرئيسي"
)


def groups(*texts: str | tuple[str, str]) -> list[tuple[str, ...]]:
    """The groups of texts, or (speaker, text), named by their place."""
    candidates = [
        Said(id=str(place), text=text) if isinstance(text, str) else Said(id=str(place), speaker=text[0], text=text[1])
        for place, text in enumerate(texts)
    ]
    return [*map(tuple, deduplicate(candidates))]


def test_case_space_punctuation_and_width_do_not_tell_texts_apart() -> None:
    assert groups("I like tea.", "i LIKE   tea", "Ｉ like — tea!") == [("0", "1", "2")]


def test_the_best_ranked_survives_and_the_order_stays() -> None:
    assert groups("one thing", "another", "One thing!", "a third", "another") == [("0", "2"), ("1", "4"), ("3",)]


def test_near_duplicates_of_long_texts_are_found() -> None:
    assert groups(LONG, LONG + " today's", f"so {LONG}") == [("0", "1", "2")]


def test_short_texts_are_duplicates_only_when_the_same() -> None:
    assert groups("tea is so good", "tea is so so good") == [("0",), ("1",)]
    assert groups("ha ha ha", "ha ha ha ha", "Ha ha ha", "Ha ha ha ha") == [("0", "2"), ("1", "3")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{LONG} for 3 days", f"{LONG} for 4 days"),
        (f"{LONG} at -5 degrees", f"{LONG} at 5 degrees"),
        (f"{LONG} for two days", f"{LONG} for three days"),
        (f"{LONG} since Monday", f"{LONG} since Tuesday"),
        (f"{LONG} and I like it", f"{LONG} and I don't like it"),
        (f"{LONG} and I like it", f"{LONG} and I never like it"),
        (f"{LONG} near Oslo", f"{LONG} near Bergen"),
        (LONG, f"{LONG} Oslo"),
        (f"{LONG} Oslo", LONG),
        (LONG, f"{LONG}?"),
        ("أنت تحب الشاي", "أنت تحب الشاي؟"),
        ("I paid 3.5", "I paid 35"),
        ("You like tea.", "You like tea?"),
        ("Σου αρέσει το τσάι.", "Σου αρέσει το τσάι;"),
        ("I like C++", "I like C#"),
        ("So 😀", "So 😢"),
        ("costs $5", "costs €5"),
        ("王芳" + CHINESE, "李娜" + CHINESE),
        ("محمد " + ARABIC, "يوسف " + ARABIC),
        (f"{CHINESE}我想去", f"{CHINESE}我不想去"),
        ("我喜欢在北京的公园里散步和朋友们一起聊天" * 2, "我不喜欢在北京的公园里散步和朋友们一起聊天" * 2),
    ],
)
def test_what_differs_in_meaning_is_kept(one: str, other: str) -> None:
    assert groups(one, other) == [("0",), ("1",)]


def test_texts_without_spaces_are_compared_too() -> None:
    text = "今日は友達と一緒に新しい美術館へ行ってとても楽しい時間を過ごしました"
    assert groups(text, text + "よ") == [("0", "1")]
    assert groups(CHINESE, CHINESE.replace("很快就", "很快")) == [("0", "1")]
    assert groups(ARABIC, f"اليوم {ARABIC}") == [("0", "1")]


def test_two_speakers_never_say_the_same() -> None:
    assert groups(("Ann", "I like tea."), ("Bob", "I like tea."), ("Ann", "i like tea")) == [("0", "2"), ("1",)]


def test_a_memory_without_speaker_joins_one_speaker_only() -> None:
    assert groups("I like tea.", ("Ann", "I like tea."), ("Bob", "I like tea.")) == [("0", "1"), ("2",)]
    assert groups(("Ann", "I like tea."), "I like tea.", ("Bob", "I like tea.")) == [("0", "1"), ("2",)]


def test_the_speakers_prefix_does_not_tell_texts_apart() -> None:
    assert groups(("Ann", "Ann: I like tea."), ("Ann", "I like tea.")) == [("0", "1")]
    assert groups(("Ann", "Bob: I like tea."), ("Ann", "I like tea.")) == [("0",), ("1",)]


@pytest.mark.parametrize("other", [LONG, f"so {LONG}"], ids=["same", "near"])
def test_texts_under_two_titles_never_say_the_same(other: str) -> None:
    """Articles that begin with the same words."""
    candidates = [
        Said(id="0", text=LONG, title="Managers"),
        Said(id="1", text=other, title="Seasons"),
        Said(id="2", text=other, title="Managers"),
    ]
    assert [*map(tuple, deduplicate(candidates))] == [("0", "2"), ("1",)]


@pytest.mark.parametrize("other", [LONG, f"so {LONG}"], ids=["same", "near"])
def test_the_title_of_a_chat_does_not_tell_its_messages_apart(other: str) -> None:
    """The same message in two chats; a message's title does not apply to a text merged with it."""
    candidates = [
        Said(id="0", text=LONG, title="Holidays", kind="message"),
        Said(id="1", text=other, title="Cabins", kind="message"),
        Said(id="2", text=other, title="Managers"),
    ]
    assert [*map(tuple, deduplicate(candidates))] == [("0", "1", "2")]


def test_a_group_takes_the_first_title_that_comes() -> None:
    candidates = [
        Said(id="0", text=LONG),
        Said(id="1", text=LONG, title="Managers"),
        Said(id="2", text=LONG),
        Said(id="3", text=LONG, title="Seasons"),
    ]
    assert [*map(tuple, deduplicate(candidates))] == [("0", "1", "2"), ("3",)]


@pytest.mark.parametrize(("length", "folded"), [(60, True), (30, False)])
def test_one_other_word_makes_a_near_duplicate_of_a_long_text_only(length: int, folded: bool) -> None:
    """It costs three shingles on either side: 55 / 61 = .90 of 60 words, 25 / 31 = .81 of 30."""
    words = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(length)]
    edited = [*words[: length // 2], "another", *words[length // 2 + 1 :]]
    assert (len(groups(" ".join(words), " ".join(edited))) == 1) is folded


def test_near_duplicates_are_measured_from_the_survivor_not_chained() -> None:
    """Each text is near the one before it, the last is far from the first."""
    words = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(60)]
    chain = [" ".join(words[start : start + 50]) for start in (0, 3, 6)]
    assert groups(*chain) == [("0", "1"), ("2",)]


def test_prefix_filtering_misses_no_pair() -> None:
    """Against comparing every pair, on random edits of one text."""
    chance = random.Random(7)
    base = LONG.replace(",", "").casefold().split()
    base = [word for word in base if word != "both"]
    texts = []
    for _ in range(40):
        words = list(base)
        for _ in range(chance.randrange(3)):
            words[chance.randrange(len(words))] = chance.choice("xyz") * 4
        texts.append(" ".join(words))

    def jaccard(one: str, other: str) -> float:
        sets = [set(zip(t.split(), t.split()[1:], t.split()[2:], strict=False)) for t in (one, other)]
        return len(sets[0] & sets[1]) / len(sets[0] | sets[1])

    survivors: list[int] = []
    for place, text in enumerate(texts):
        if not any(jaccard(text, texts[survivor]) >= 0.85 for survivor in survivors):
            survivors.append(place)
    assert 1 < len(survivors) <= 32
    assert [int(group[0]) for group in groups(*texts)] == survivors


def test_very_long_texts_are_duplicates_only_when_the_same() -> None:
    text = "word " * MAX_WORDS
    assert groups(text + "end", text + "ends", text.upper() + "END") == [("0", "2"), ("1",)]
    text = " ".join(f"{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(MAX_WORDS))
    assert groups(f"{text} end", f"{text} ends", f"{text} END", f"{text} ENDS") == [("0", "2"), ("1", "3")]


@pytest.mark.parametrize("length", [MAX_SQUEEZED - 1, MAX_SQUEEZED, MAX_SQUEEZED + 1, 60_000])
def test_exact_duplicates_of_any_length_are_found(length: int) -> None:
    text = ("Ab, " * length)[:length]
    assert groups(text, text + "x", f"  {text}\n", "x" + text[1:]) == [("0", "2"), ("1",), ("3",)]


def test_case_tells_texts_apart_only_where_they_are_very_long() -> None:
    text = "Ab " * (MAX_SQUEEZED // 3)
    assert groups(text, text.upper()) == [("0", "1")]
    assert groups(text * 2, text.upper() * 2) == [("0",), ("1",)]


@pytest.mark.parametrize("text", ["", "   ", "!!!", "\x00", "\ud800", "😀"])
def test_texts_without_words_do_no_harm(text: str) -> None:
    assert groups(text, text, "I like tea") == [("0", "1"), ("2",)]


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.1])
def test_a_threshold_outside_its_range_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        deduplicate([], threshold=threshold)
