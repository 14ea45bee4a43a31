"""Paths as sentences."""

from __future__ import annotations

import pytest

from graph.forward_chaining import StatedRelation
from graph.inference import JoinedEdge
from graph.paths import Link
from retrieval.legs.path_explanations import describe

IDS = {1: "m1", 2: "m2"}
NAMES = {10: "Ann", 20: "the choir", 30: "Oslo", 40: "Norway"}
ANN, CHOIR = 10, 20
STATED = JoinedEdge(30, 10, "lives_in", True, 1.0, (StatedRelation(10, "lives_in", 30, 7),), None)
BACKWARDS = JoinedEdge(30, 10, "home of", False, 1.0, (StatedRelation(30, "home of", 10, 7),), None)
INFERRED = JoinedEdge(
    40,
    10,
    "part_of",
    True,
    0.9,
    (StatedRelation(10, "part_of", 30, 7), StatedRelation(30, "part_of", 40, 8)),
    "transitive",
)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ([], "This memory is among the closest of the other legs."),
        ([Link(ANN)], "The query mentions Ann, and this memory mentions Ann."),
        (
            [Link(ANN), Link(CHOIR, 1, True)],
            "The query mentions Ann, m1 also mentions the choir, and this memory mentions the choir.",
        ),
        ([Link(CHOIR, 2)], "m2, close to the query, mentions the choir, and this memory mentions the choir."),
        (
            [Link(CHOIR, 2), Link(ANN, 1, True)],
            "m2, close to the query, mentions the choir, m1 also mentions Ann, and this memory mentions Ann.",
        ),
        (
            [Link(ANN), Link(30, joined_by=STATED)],
            "The query mentions Ann, Ann —lives in→ Oslo, and this memory mentions Oslo.",
        ),
        (
            [Link(ANN), Link(30, joined_by=BACKWARDS)],
            "The query mentions Ann, Oslo —home of→ Ann, and this memory mentions Oslo.",
        ),
        (
            [Link(ANN), Link(40, joined_by=INFERRED)],
            "The query mentions Ann, Ann —part of→ Norway, since Ann —part of→ Oslo and Oslo —part of→ Norway "
            "(transitive), and this memory mentions Norway.",
        ),
        ([Link(CHOIR, 99)], "A memory, close to the query, mentions the choir, and this memory mentions the choir."),
    ],
)
def test_a_path_is_a_sentence(path: list[Link], sentence: str) -> None:
    assert describe(path, IDS, NAMES) == sentence


def test_a_name_of_which_the_query_has_a_part_may_be_meant() -> None:
    assert describe([Link(ANN)], IDS, NAMES, {ANN}) == "The query may mention Ann, and this memory mentions Ann."


def test_names_and_ids_stay_as_they_are_written() -> None:
    """Whatever they contain, and wherever they are in the sentence."""
    assert describe([Link(50)], IDS, {50: "Smith , Sons"}) == (
        "The query mentions Smith , Sons, and this memory mentions Smith , Sons."
    )
    assert describe([Link(CHOIR, 1)], {1: "mail-7"}, NAMES).startswith("mail-7, close to the query,")
