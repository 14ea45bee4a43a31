"""Entities that the rules find in a text."""

from __future__ import annotations

import unicodedata

import pytest

from graph.extraction import MAX_MENTIONS, extract
from tests.hanging import bounded


def found(text: str, type_: str, **given: str) -> set[str]:
    return {m.name for m in extract(text, **given) if m.type == type_}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Yesterday I met Caroline and Melanie.", {"Caroline", "Melanie"}),
        ("Thanks, Nate! Hey Joanna, how are you?", {"Nate", "Joanna"}),
        ("the Duke of Buckingham and Vincent van Gogh", {"Duke of Buckingham", "Vincent van Gogh"}),
        ("books by J. R. R. Tolkien, mostly", {"J. R. R. Tolkien"}),
        ("they saw Dr. Strange in St. Louis", {"Dr. Strange", "St. Louis"}),
        ("an Austro-Hungarian prince", {"Austro-Hungarian"}),
        ("we went to Maria's house in O\u2019Brien", {"Maria", "O\u2019Brien"}),
        ("the flight of Apollo 11 to space", {"Apollo 11"}),
        ("at the 2017 Brit Awards", {"Brit Awards", "2017 Brit Awards"}),
        ('the album "Katy Lied" was', {"Katy Lied"}),
        ("Kickboxing is fun. It is great.", set()),
        ("I know Jean. Jean sings.", {"Jean"}),
        ("On Monday I will. On Friday too.", set()),
        ("THIS IS ALL VERY LOUD TEXT", set()),
        ("Мы живём в Москве", {"Москве"}),
        ("У Анны был Пётр. В Казани", {"Анны", "Пётр", "Казани"}),
        ("le frère d'Hélène et la carte dell’Italia", {"Hélène", "Italia"}),
        ("geçen yıl Ayşe'nin yolu İzmir’den Ankara'ya", {"Ayşe", "İzmir", "Ankara"}),
        ("Η Ελένη είναι εδώ. Της Ελένης", {"Ελένη", "Ελένης"}),
        ("The New York Times wrote about Las Vegas.", {"New York Times", "Las Vegas"}),
        ("the First World War and the Fantastic Four", {"First World War", "Fantastic Four"}),
        ("sold to 20th Century Fox", {"20th Century Fox"}),
        ("on the 16th Maria came", {"Maria"}),
        ("a Los Angeles-based band", {"Los Angeles"}),
        ("the Museum of Science and Industry, Ann and Bob", {"Museum of Science and Industry", "Ann", "Bob"}),
        ("i saw maria and mark my words", {"maria"}),
        ("i saw mary with mar\u00eda at tom's", {"mary", "mar\u00eda", "tom"}),
        ("Sarah is here. Mary is not.", {"Sarah", "Mary"}),
        ("Maria, you did it! Mark my words.", {"Maria"}),
        ("Tomaso says hello. Bread rises.", {"Tomaso"}),
        ("Two MONTHS, really, and the UN said no", {"UN"}),
        ("# Consistent Endpoint Design\nIt is good.", set()),
        ('She said "Yes, I think it is" and left', set()),
        ("it has 175 W, which is grade A. I met J.K. there", {"J.K."}),
        ("the WEEKS at NASA", {"NASA"}),
        ("at the \u02bbIolani Palace, which is Army land", {"\u02bbIolani Palace", "Army"}),
        ("by bike, Kickboxing \U0001f3bb Bread rises", {"Kickboxing"}),
        ("Wearing the Nike Dunk, I read Wearing the Crown.", {"Nike Dunk", "Wearing the Crown"}),
    ],
)
def test_names(text: str, names: set[str]) -> None:
    assert found(text, "name") == names


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("on 3 May 2023", {"2023-05-03", "2023-05", "2023"}),
        ("on May 3rd, 2023", {"2023-05-03", "2023-05", "2023"}),
        ("on 2023-05-03", {"2023-05-03", "2023-05", "2023"}),
        ("in May 2023", {"2023-05", "2023"}),
        ("last September", {"September"}),
        ("in May", {"May"}),
        ("it may rain, we march on", set()),
        ("July 4", {"July 4"}),
        ("the 1970s and 1984", {"1970s", "1984"}),
        ("3000 people, 12 of them", set()),
    ],
)
def test_dates_have_one_form(text: str, dates: set[str]) -> None:
    assert found(text, "date") == dates


def test_identifiers() -> None:
    text = "ABC-123 broke v1.2.3 of snake_case in fooBar, mail me@x.org or https://x.org/a?b=1, #tag @bob at 10am"
    expected = {"ABC-123", "v1.2.3", "snake_case", "fooBar", "me@x.org", "https://x.org/a?b=1", "tag", "bob"}
    assert found(text, "identifier") == expected


def test_amounts_are_no_identifiers() -> None:
    text = "16GB and 90min of 60fps, 300ms, 20px, 70kg, 5ish, 2nd, 80s music on a 5G phone, ticket E404"
    assert found(text, "identifier") == {"5G", "E404"}


def test_phrases_of_lower_case_text_meet_in_the_singular() -> None:
    one = {m.key for m in extract("i joined the local support groups") if m.type == "phrase"}
    two = {m.key for m in extract("she runs a support group") if m.type == "phrase"}
    assert "support group" in one & two


def test_a_word_of_the_title_opens_a_sentence_as_a_name() -> None:
    assert found("Richie has written columns.", "name", title="Ross Richie") == {"Richie"}
    assert found("Church services are held. The church is old.", "name", title="Liberty Baptist Church") == set()


@pytest.mark.parametrize(
    "text", ["we had a lot of fun", "it was a good time last week", "people sitting, what a great idea"]
)
def test_small_talk_makes_no_phrase(text: str) -> None:
    assert found(text, "phrase") == set()


def test_movies_and_a_movie_meet() -> None:
    assert "horror movie" in found("horror movies", "phrase") & found("a horror movie", "phrase")


def test_title_and_speaker_count_and_the_speakers_prefix_does_not() -> None:
    mentions = {m.name: m for m in extract("Ann Lee: I sing.", title="Mercury (planet)", speaker="Ann Lee")}
    assert mentions["Mercury"].type == mentions["Mercury (planet)"].type == "title"
    assert mentions["Ann Lee"].type == "speaker"


@pytest.mark.parametrize(
    "text",
    ["健太はナッツアレルギーです。", "민수의 형은 갔다", "Ayşe’nin kardeşi", "Hương bị dị ứng", "Η Ελένη είναι εδώ"],
)
def test_decomposed_letters_are_the_same(text: str) -> None:
    assert extract(unicodedata.normalize("NFD", text)) == extract(text)


def test_east_asian_text() -> None:
    assert found("山田太郎は東京タワーに行きました。", "phrase") == {"山田太郎", "東京", "タワー"}
    assert "北京大学图书馆" in found("我昨天在北京大学图书馆看书", "phrase")


@pytest.mark.parametrize(
    "text", ["", " ", "\U0001f389\U0001f389 !!!", "the of and it", "\x00\x01", "\ud800", "...", "1 2 3"]
)
def test_nothing_in_nothing(text: str) -> None:
    assert extract(text) == []


def test_the_weightiest_stay() -> None:
    text = " ".join(f"Alpha{i:03} met bravo{i:03}." for i in range(300))
    mentions = extract(text, title="Gamma")
    assert len(mentions) == MAX_MENTIONS
    assert mentions[0].name == "Gamma"
    assert [m.weight for m in mentions] == sorted((m.weight for m in mentions), reverse=True) or mentions[
        0
    ].weight == 1.0


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "A.",
        "a-",
        "Ab of ",
        "a.b@",
        "A ",
        "1,",
        "([",
        '"',
        "A1-",
        "_",
        "aB",
        "東",
        "w.w",
        "Ab12",
        "May 1 ",
        "\u0301",
        "Dr. ",
    ],
)
def test_hostile_text_does_not_take_for_ever(piece: str) -> None:
    text = (piece * 60_000)[:60_000]
    with bounded():
        extract(text, title=text[:1_000], speaker=text[:200])
