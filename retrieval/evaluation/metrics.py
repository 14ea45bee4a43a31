"""Measures of one ranking against the relevant ids of its query, all in [0, 1]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log2

Grades = Mapping[str, int]
"""The grades of the ids relevant to one query, above 0. An absent id has grade 0."""

Measure = Callable[[Sequence[str], Grades], float]


def dcg(gains: Sequence[float]) -> float:
    """Discounted sum of the gains at ranks 1, 2, ..."""
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def ndcg(ranking: Sequence[str], grades: Grades, *, cutoff: int) -> float:
    """Discounted cumulative gain over that of the best possible ranking.

    DCG = sum over ranks r <= cutoff of grade / log2(r + 1), gains linear as in trec_eval.
    Jarvelin and Kekalainen, TOIS 20(4) 2002, doi:10.1145/582415.582418.

    Args:
        ranking: best-first ids, no repeats.
        grades: grades above 0; at least one, else the result is 0.
        cutoff: ranks that count, > 0.

    >>> round(ndcg(["x", "a"], {"a": 1}, cutoff=10), 4)
    0.6309
    """
    best = dcg(sorted(grades.values(), reverse=True)[:cutoff])
    return dcg([grades.get(id_, 0) for id_ in ranking[:cutoff]]) / best if best else 0.0


def recall(ranking: Sequence[str], grades: Grades, *, cutoff: int) -> float:
    """The share of the relevant ids that are among the first `cutoff`.

    >>> recall(["a", "x", "b"], {"a": 1, "b": 1}, cutoff=2)
    0.5
    """
    relevant = {id_ for id_, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranking[:cutoff])) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranking: Sequence[str], grades: Grades, *, cutoff: int) -> float:
    """1 / rank of the first relevant id, 0 if none is among the first `cutoff`. Its mean is the MRR.

    >>> reciprocal_rank(["x", "a"], {"a": 1}, cutoff=10)
    0.5
    """
    for rank, id_ in enumerate(ranking[:cutoff], start=1):
        if grades.get(id_, 0) > 0:
            return 1.0 / rank
    return 0.0


def measures(top_k: int) -> dict[str, Measure]:
    """The measures that apply to rankings of `top_k` entries, by name, in report order."""
    chosen: dict[str, Measure] = {
        "ndcg@10": lambda ranking, grades: ndcg(ranking, grades, cutoff=10),
        "recall@5": lambda ranking, grades: recall(ranking, grades, cutoff=5),
        "recall@10": lambda ranking, grades: recall(ranking, grades, cutoff=10),
        "mrr@10": lambda ranking, grades: reciprocal_rank(ranking, grades, cutoff=10),
    }
    if top_k >= 100:
        chosen["recall@100"] = lambda ranking, grades: recall(ranking, grades, cutoff=100)
    return chosen
