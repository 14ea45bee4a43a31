"""Evidence in context packs, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval.errors import InvalidInput
from retrieval.evaluation.folder import Query
from retrieval.evaluation.packs import budget_cells, evidence_recall, pack_measures, parse_budgets
from retrieval.evaluation.scores import ScoreTable, stacked
from retrieval.types.search import DroppedItem, PackItem

BUDGETS = (512, 1024)


def items(*ids: str) -> list[PackItem]:
    """Memories in a pack."""
    return [PackItem(id=id_, tokens=10, citation="[1]") for id_ in ids]


def drop(id_: str, reason: str) -> DroppedItem:
    """A memory that is not."""
    return DroppedItem(id=id_, reason=reason)


def test_evidence_recall_by_hand() -> None:
    """Of four, one is in the pack and one is a duplicate of an entry: half."""
    dropped = [
        drop("twin", "duplicate_of:x"),
        drop("late", "over_budget"),
        drop("lost", "duplicate_of:late"),  # the memory kept in its place did not fit either
    ]
    assert evidence_recall(items("x", "gold"), dropped, ["gold", "twin", "late", "lost"]) == 0.5


def test_evidence_counts_once() -> None:
    """A memory that is named twice as relevant is one."""
    assert evidence_recall(items("a"), [], ["a", "a", "b"]) == 0.5
    assert evidence_recall([], [], ["a"]) == 0.0


def table(name: str, recall: list[list[float]], tokens: list[list[float]]) -> ScoreTable:
    """Packs of one system under two budgets."""
    queries = tuple(Query(f"q{number}", "n", "?", "fact", ["a"]) for number in range(len(recall)))
    return ScoreTable(
        sets=(name,) * len(recall),
        queries=queries,
        measures=pack_measures(BUDGETS),
        values={"adaptive": np.hstack([recall, tokens])},
    )


def test_means_by_budget_of_one_set() -> None:
    """Over its queries."""
    found = budget_cells(table("s", [[0.0, 1.0], [0.5, 1.0]], [[500, 900], [400, 1000]]), BUDGETS, seed=0)
    assert [(cell.budget, cell.queries, cell.recall.mean, cell.tokens) for cell in found] == [
        (512, 2, 0.25, 450.0),
        (1024, 2, 1.0, 950.0),
    ]


def test_sets_count_alike_in_the_macro_mean() -> None:
    """A set of three queries at 0 and one of one at 1: a half, and the tokens likewise."""
    zero = table("s", [[0.0, 0.0]] * 3, [[100, 100]] * 3)
    one = table("t", [[1.0, 1.0]], [[500, 900]])
    low, high = budget_cells(stacked([zero, one]), BUDGETS, seed=0)
    assert (low.recall.mean, low.tokens, low.queries) == (0.5, 300.0, 4)
    assert (high.recall.mean, high.tokens) == (0.5, 500.0)


@pytest.mark.parametrize(
    ("text", "message"), [("512,many", "whole numbers"), ("", "whole numbers"), ("32", "64 to 200,000"), ("-1", "-1")]
)
def test_bad_budgets_are_named(text: str, message: str) -> None:
    """What a budget may be."""
    with pytest.raises(InvalidInput, match=message):
        parse_budgets(text)
