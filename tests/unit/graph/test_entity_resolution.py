"""Which candidates a query can refer to, and other spellings of its names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graph.linking import possible_names
from graph.names import entity_id
from graph.resolution import EntityCandidate, Seed
from graph.resolution import resolve as resolve_named
from graph.spellings import Spellings, initials
from graph.stopwords import FORMAL_NAMES, GIVEN_NAMES, NICKNAMES, ORDINARY_NAMES


def spelled(query: str) -> Spellings:
    return possible_names(query)


def resolve(query: Spellings, found: list[EntityCandidate], *, mentions: int = 3) -> list[Seed]:
    """Each entity is mentioned by so many memories of a hundred."""
    return resolve_named(query, found, lambda entities: np.full(len(entities), mentions), 100)


def exact(key: str, *, is_name: bool = True, **changes: Any) -> EntityCandidate:
    row = EntityCandidate(entity_id(key), key, key.title(), is_name, "exact", [key], 0)
    return row._replace(**changes)


@pytest.mark.parametrize(
    ("query", "key", "means"),
    [
        ("J.K. Rowling?", "jk rowling", "spelling"),
        ("JK Rowling?", "j k rowling", "spelling"),
        ("Prof. Falk", "professor falk", "spelling"),
        ("Doctor Falk", "dr falk", "spelling"),
        ("St. Louis", "saint louis", "spelling"),
        ("Where is Liz?", "elizabeth", "nickname"),
        ("Where is Liz Falk?", "elizabeth falk", "nickname"),
        ("Where is Elizabeth?", "liz", "nickname"),
        ("The United Nations voted.", "un", "acronym"),
        ("It rained. " * 40 + "Where is Liz?", "elizabeth", "nickname"),
        ("Where is Liz? " + "It rained. " * 40, "elizabeth", "nickname"),
    ],
)
def test_a_name_may_be_written(query: str, key: str, means: str) -> None:
    assert spelled(query).variants[key].means == means


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("who pays the bill", "william"),
        ("Where is Liz Falk?", "elizabeth"),
        ("we will rob the bank", "robert"),
        ("Is it us or them?", "u s"),
    ],
)
def test_a_word_is_not_taken_for(query: str, key: str) -> None:
    assert key not in spelled(query).spans


def test_a_part_of_a_word_is_meant_only_if_it_is_a_name() -> None:
    query = spelled("李明住在哪里")
    assert [seed.key for seed in resolve(query, [exact("李明"), exact("住在", is_name=False)])] == ["李明"]


@pytest.mark.parametrize(
    ("query", "acronyms"),
    [
        ("What is the UN?", ["un"]),
        ("Who runs the E.U.?", ["eu"]),
        ("un bon vin", []),
        ("IT IS OK", []),
        ("WHERE IS ANNA", []),
        ("I said NO", []),
    ],
)
def test_acronyms_are_written_in_capitals(query: str, acronyms: list[str]) -> None:
    assert spelled(query).acronyms == acronyms


@pytest.mark.parametrize("query", ["What did Mel do?", "What did Maria do?", "What did Sam do?"])
def test_a_known_given_name_is_no_beginning_of_another(query: str) -> None:
    assert spelled(query).prefixes == []


def test_initials_with_and_without_small_words() -> None:
    assert initials("bank of america") == {"boa", "ba"}
    assert initials("united nations") == {"un"}


def test_a_nickname_needs_a_person_with_that_name() -> None:
    query = spelled("What did Mel do?")
    assert [seed.how for seed in resolve(query, [exact("melanie")])] == ["nickname"]
    assert resolve(query, [exact("melanie", is_name=False)]) == []
    assert resolve(query, [exact("melanie"), exact("melissa")]) == []
    assert resolve(query, [exact("melanie")], mentions=0) == []
    falk, lind = (exact(f"melanie {name}", how="rival", matched=["melanie"]) for name in ("falk", "lind"))
    assert [seed.key for seed in resolve(query, [falk])] == ["melanie falk"]
    assert resolve(query, [falk, lind]) == resolve(query, [falk._replace(is_name=False)]) == []
    assert resolve(query, [falk, exact("melissa", how="rival", matched=["melissa"])]) == []


def test_the_same_name_counts_more_than_its_nickname() -> None:
    seeds = resolve(spelled("What did Melanie do?"), [exact("mel"), exact("melanie")])
    assert [(seed.key, seed.how) for seed in seeds] == [("melanie", "exact"), ("mel", "nickname")]


def test_an_acronym_needs_capitals_in_the_store_too() -> None:
    query = spelled("The United Nations voted.")
    assert [seed.key for seed in resolve(query, [exact("un", name="UN")])] == ["un"]
    assert resolve(query, [exact("un", name="un")]) == []


def test_a_letter_before_a_name_keeps_it_a_likeness() -> None:
    row = exact("george washington", how="similar", matched=["washington"], bearers=1)
    (initial,) = resolve(spelled("G. Washington in Oslo"), [row])
    assert initial.how == "similar"
    both = resolve(spelled("G. Washington in Oslo"), [row, exact("oslo")])
    alone = resolve(spelled("Washington in Oslo"), [row, exact("oslo")])
    assert both[1].score < alone[1].score


def test_a_part_of_a_name_counts_from_half_of_it_without_titles_or_from_two_words() -> None:
    def found(key: str, *matched: str) -> list[str]:
        row = exact(key, how="similar", matched=[*matched], bearers=2)
        return [seed.key for seed in resolve(spelled("What did Anna and Falk say?"), [row])]

    assert found("dr anna bergman", "anna")
    assert not found("bea anna bergman", "anna")
    assert found("anna maria sofia carla falk", "anna", "falk")


def test_how_much_a_query_is_about_each_name() -> None:
    """Less about a name within one that was found, a beginning of a longer one, and a word that several names have."""
    both = exact("ana falk", how="alias", matched=["anna falk"])
    similar = [exact(key, how="similar", matched=["bea"], bearers=2) for key in ("bea bergman", "bea holm")]
    begun = exact("carola lind", how="prefix", matched=["caro"])
    seeds = resolve(
        spelled("Did Anna Falk and Bea meet Caro in Oslo?"),
        [exact("anna"), exact("anna falk"), both, exact("oslo"), *similar, begun],
    )
    scores = {seed.key: round(seed.score * 2**0.5, 3) for seed in seeds}
    assert scores == {"anna falk": 1.414, "ana falk": 1.344, "oslo": 1.0, "carola lind": 0.25, "bea bergman": 0.125,
                      "bea holm": 0.125, "anna": 0.1}  # fmt: skip


def test_a_query_starts_from_no_more_than_eight_entities() -> None:
    towns = ["bergen", "oslo", "rome", "porto", "lyon", "ghent", "graz", "turku", "malmo", "leeds"]
    assert len(resolve(spelled(" ".join(towns)), [exact(town) for town in towns])) == 8


def test_nicknames_are_consistent() -> None:
    for nickname, formals in FORMAL_NAMES.items():
        assert nickname == nickname.casefold()
        assert all(nickname in NICKNAMES[formal] for formal in formals)
    assert ORDINARY_NAMES <= GIVEN_NAMES
