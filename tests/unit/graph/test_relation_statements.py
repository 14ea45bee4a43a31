"""What a text states, and what it does not."""

from __future__ import annotations

import unicodedata

import pytest

from graph.statements import find_relations
from tests.hanging import bounded

STATED = [
    # Marriage.
    ("I'm married to Bruno.", "Ida married_to Bruno"),
    ("I am happily married to Bruno Falk.", "Ida married_to Bruno Falk"),
    ("Clara is married to Henrik.", "Clara married_to Henrik"),
    ("Clara Voss married Henrik Lund in 1994.", "Clara Voss married_to Henrik Lund"),
    ("My husband Bruno cooked for everyone.", "Ida married_to Bruno"),
    ("We met Clara's wife Johanna at the lake.", "Clara married_to Johanna"),
    ("Bruno is my husband.", "Ida married_to Bruno"),
    # Family.
    ("My sister Anna called again.", "Ida sibling_of Anna"),
    ("I'll visit my little brother Tom on Sunday.", "Ida sibling_of Tom"),
    ("My brother's name is Tom.", "Ida sibling_of Tom"),
    ("Tom is Anna's brother.", "Anna sibling_of Tom"),
    ("Anna is the sister of Tom.", "Tom sibling_of Anna"),
    ("My mother Greta paints.", "Ida child_of Greta"),
    ("Yesterday Anna's father Karl came by.", "Anna child_of Karl"),
    ("My daughter Mia started school.", "Ida parent_of Mia"),
    ("I have a son named Emil.", "Ida parent_of Emil"),
    ("Somebody can't touch a prawn, my brother Mateo says.", "Ida sibling_of Mateo"),
    # Friends and work.
    ("My best friend Paula sings.", "Ida friend_of Paula"),
    ("Paula is a good friend of Tom.", "Tom friend_of Paula"),
    ("Paula and I are friends.", "Ida friend_of Paula"),
    ("My boss Renate is on leave.", "Ida colleague_of Renate"),
    ("I had lunch with my colleague Jens Holm.", "Ida colleague_of Jens Holm"),
    ("I work at Brightwater Clinic.", "Ida works_at Brightwater Clinic"),
    ("I now work as a nurse at St. Mary Hospital.", "Ida works_at St. Mary Hospital"),
    ("I've been working for Nordlys since March.", "Ida works_at Nordlys"),
    ("Tom works for the University of Leeds.", "Tom works_at University of Leeds"),
    ("I got a new job at Kestrel Labs!", "Ida works_at Kestrel Labs"),
    ("Tom works at Levi's now.", "Tom works_at Levi"),
    # Places.
    ("I live in Porto.", "Ida lives_in Porto"),
    ("I called my sister\nAnna lives in Ghent.", "Anna lives_in Ghent"),
    ("yeah i live in Porto lol", "Ida lives_in Porto"),
    ("We just moved to New Zealand.", "Ida lives_in New Zealand"),
    ("Paula still lives in Ghent.", "Paula lives_in Ghent"),
    ("I moved from Oslo to Bergen last year.", "Ida lives_in Bergen"),
    ("I was born in Malta.", "Ida born_in Malta"),
    ("Tom was born and raised in Cork.", "Tom born_in Cork"),
    ("I'm originally from Wales.", "Ida from Wales"),
    ("Haruka comes from Sendai.", "Haruka from Sendai"),
    # Pets.
    ("My dog Rex ate the cake.", "Ida has_pet Rex"),
    ("I adopted a tiny kitten called Plum.", "Ida has_pet Plum"),
    ("Tom's cat Biscuit is asleep.", "Tom has_pet Biscuit"),
    # Works and organisations.
    ("Lena Falk founded Nordlys in 2009.", "Lena Falk founded Nordlys"),
    ("Nordlys was founded by Lena Falk.", "Lena Falk founded Nordlys"),
    ("Tom owns the Blue Lantern.", "Tom owns Blue Lantern"),
    ('Ada Brandt directed the film "Salt Road".', "Ada Brandt directed Salt Road"),
    ("Ada Brandt wrote Salt Road in a year.", "Ada Brandt wrote Salt Road"),
    ('"Salt Road" was written by Ada Brandt.', "Ada Brandt wrote Salt Road"),
    ("Jens Holm created Puzzle Barn.", "Jens Holm created Puzzle Barn"),
    # The world.
    ("Ljubljana is the capital of Slovenia.", "Ljubljana capital_of Slovenia"),
    ("Ljubljana is the capital and largest city of Slovenia.", "Ljubljana capital_of Slovenia"),
    ("Kinsale is located in southern Ireland.", "Kinsale located_in Ireland"),
    ("Kinsale is a small town in Ireland.", "Kinsale located_in Ireland"),
    ("Zealand is part of Denmark.", "Zealand part_of Denmark"),
    ("I'm a member of the Harbour Choir.", "Ida member_of Harbour Choir"),
    ("Jens is a founding member of Slow Ferry.", "Jens member_of Slow Ferry"),
]

NOT_STATED = [
    # Of somebody or something else.
    "iRobot is based in Bedford.",
    "I am based in Bedford.",
    # Denied.
    "I don't work at Kestrel Labs.",
    "I never lived in Porto and I never moved to Porto.",
    "Tom is not married to Anna.",
    "Paula isn't my sister.",
    "Nobody here works for Nordlys.",
    "I no longer work at Kestrel Labs.",
    "Tom doesn't live in Cork, and he is not from Cork.",
    "I work at Kestrel Labs no longer.",
    "Anna never married Tom.",
    "Ghent is not the capital of Belgium.",
    # Supposed, wished, planned.
    "If I lived in Porto I would swim daily.",
    "If I live in Porto next year, come and see me.",
    "I wish I was born in Malta.",
    "I might have moved to Ghent.",
    "I want to work at Nordlys.",
    "I hope Tom moved to Cork.",
    "Imagine I work at Nordlys.",
    "I thought Paula was from Ghent.",
    "I used to work at Nordlys.",
    "Maybe Paula is from Ghent.",
    "I almost married Jens.",
    "Tom could be married to Anna.",
    "We are planning to be living in Porto.",
    "I would be working at Nordlys by now.",
    # Asked.
    "Do you live in Porto?",
    "Does Tom work at Nordlys?",
    "Is Anna married to Tom?",
    "Is Paula your sister?",
    "Who founded Nordlys?",
    "Was Salt Road written by Ada Brandt?",
    "Is Ghent the capital of Belgium?",
    "And you are from Wales?",
    "Is your dog Rex?",
    # Said of others, of nobody, or of things.
    "You work at Nordlys.",
    "She is married to Tom.",
    "He moved to Cork.",
    "Your sister Anna called.",
    "His wife Johanna sings.",
    "They live in Porto.",
    "The letter is from Tom to Anna.",
    "We are open from Monday to Friday.",
    "I was born in May.",
    "I was born in 1990.",
    "I taught my mom English.",
    "My sister Friday night was a mess.",
    "My brother-in-law Jens came.",
    "My ex-wife Clara called.",
    "The friend of Anna works at Nordlys.",
    "Friends of Anna moved to Cork.",
    "This is part of The Plan, and part of life.",
    "I wrote Anna a letter.",
    "Lena Falk wrote the story featuring Clara Voss.",
    'Lena Falk wrote lines about being "lost and found".',
    "The soup was created by accident.",
    "Wine is an integral part of French culture.",
    "I work at night.",
    "I live in hope.",
    "The picture was taken in Ghent.",
    "Thanks to my friend, we are here.",
    "Anna is my sister's teacher.",
    "My sister and Anna went out.",
    "Tom works at Anna's bakery.",
    "Tom is married to Anna\u2019s cousin.",
    "Tom owns the Falks' old boat.",
    "Tom is the brother of Anna's wife.",
    "Nordlys is owned by Anna's heirs.",
    "Lena Falk wrote Anna's speech.",
]


def told(text: str, **given: str) -> list[str]:
    return [f"{s.source} {s.type} {s.target}" for s in find_relations(text, **given)]


@pytest.mark.parametrize(("text", "statement"), STATED)
def test_it_is_stated(text: str, statement: str) -> None:
    assert told(text, speaker="Ida") == [statement]


@pytest.mark.parametrize("text", NOT_STATED)
def test_it_is_not_stated(text: str) -> None:
    assert told(text, speaker="Ida") == []


@pytest.mark.parametrize("text", [text for text, statement in STATED if statement.startswith("Ida ")])
def test_without_a_speaker_the_first_person_states_nothing(text: str) -> None:
    assert told(text) == []


@pytest.mark.parametrize(
    ("text", "title", "statements"),
    [
        (
            "Salt Road is a 1994 drama film directed by Ada Brandt and written by Jens Holm and Lena Falk.",
            "Salt Road (1994 film)",
            ["Ada Brandt directed Salt Road", "Jens Holm wrote Salt Road", "Lena Falk wrote Salt Road"],
        ),
        ("Salt Road is a film directed by Ada Brandt, based on a novel written by Jens Holm.", "Salt Road", 1),
        ("Kinsale, a small port, is a town in Ireland.", "Kinsale", ["Kinsale located_in Ireland"]),
        ("The port, small as it was, is a town in Ireland.", "Kinsale", []),
        ("Nordlys was founded in 2009 by Lena Falk.", "Nordlys", ["Lena Falk founded Nordlys"]),
        ("Kinsale is a historic port town in Ireland.", "Kinsale", ["Kinsale located_in Ireland"]),
        ("A remake of Salt Road was directed by Jens Holm.", "Salt Road", []),
        ("It was directed by Jens Holm.", "Salt Road", []),
        ("Salt Road is a series of pieces written by Blue Lantern guitarist Jens Holm.", "Salt Road", []),
        ("The Northern Region is a region in the Danish province of Jutland.", "The Northern Region", []),
        ("Kinsale is a town in the U.S. It is old.", "Kinsale", ["Kinsale located_in U.S."]),
        ("Lena Falk was one of the first to work for the Nordlys Railroad.", "Lena Falk", []),
        ("Soon the club moved to Bergen. Nordlys moved to Oslo.", "Nordlys", []),
        ("Salt Road is a film directed by M. Brandt.", "Salt Road", ["M. Brandt directed Salt Road"]),
    ],
)
def test_the_first_sentence_is_about_the_title(text: str, title: str, statements: list[str] | int) -> None:
    found = told(text, title=title)
    assert (len(found) if isinstance(statements, int) else found) == statements


def test_the_speakers_prefix_is_no_part_of_the_sentence() -> None:
    assert told("Ida: My dog Rex barks.", speaker="Ida") == ["Ida has_pet Rex"]


def test_decomposed_letters_are_the_same() -> None:
    text = "Zoë: My sister José lives in Göteborg."
    assert told(unicodedata.normalize("NFD", text), speaker=unicodedata.normalize("NFD", "Zoë")) == [
        "Zoe\u0308 sibling_of José",
        "José lives_in Göteborg",
    ]


def test_a_text_states_more_than_one_thing_each_once() -> None:
    text = "My sister Anna works at Nordlys. Do you work there? I live in Porto. Yes, I live in Porto."
    assert told(text, speaker="Ida") == [
        "Ida sibling_of Anna",
        "Anna works_at Nordlys",
        "Ida lives_in Porto",
    ]


@pytest.mark.parametrize(
    "piece",
    [
        *("My sister ", "I live in ", "A", "A. ", "Ann ", "Ann and ", "directed by Ann ", "\u00c5'", "is the son of "),
        "A. " * 36 + "x works at Acme. ",
    ],
)
def test_hostile_text_does_not_take_for_ever(piece: str) -> None:
    text = (piece * 60_000)[:60_000]
    with bounded():
        find_relations(text, speaker="Ida", title="Ann")


def test_nothing_is_lost_between_the_parts_of_a_long_text() -> None:
    names = [f"Ann{number}" for number in range(6_000)]
    text = " ".join(f"My sister {name} called." for name in names)
    assert [found.target for found in find_relations(text, speaker="Bo")] == names
