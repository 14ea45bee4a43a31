"""Scores per query, of one evaluation folder or of several together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval.evaluation.answers import Answer
from retrieval.evaluation.folder import Query
from retrieval.evaluation.intervals import Matrix
from retrieval.evaluation.metrics import measures


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreTable:
    """Every system's scores on the same queries.

    Attributes:
        sets: the evaluation set of each query.
        queries: what was asked.
        measures: names of the columns.
        values: (queries, measures) scores by system.
    """

    sets: tuple[str, ...]
    queries: tuple[Query, ...]
    measures: tuple[str, ...]
    values: Mapping[str, Matrix]

    def column(self, system: str, measure: str) -> Matrix:
        """(queries, 1) scores of a system in one measure."""
        at = self.measures.index(measure)
        return self.values[system][:, at : at + 1]


def score(answers: Sequence[Answer], top_k: int) -> Matrix:
    """(answers, measures) scores, columns in the order of `measures(top_k)`."""
    chosen = measures(top_k)
    return np.array(
        [
            [measure([id_ for id_, _ in answer.ranking], answer.query.grades) for measure in chosen.values()]
            for answer in answers
        ],
        dtype=np.float64,
    ).reshape(len(answers), len(chosen))


def score_table(dataset: str, answers: Mapping[str, Sequence[Answer]], top_k: int) -> ScoreTable:
    """The scores of the systems on one set, which they all answered in the same order."""
    queries = tuple(answer.query for answer in next(iter(answers.values())))
    return ScoreTable(
        sets=(dataset,) * len(queries),
        queries=queries,
        measures=tuple(measures(top_k)),
        values={system: score(given, top_k) for system, given in answers.items()},
    )


def stacked(tables: Sequence[ScoreTable]) -> ScoreTable:
    """Several sets as one table; all have the same systems and measures."""
    return ScoreTable(
        sets=tuple(name for table in tables for name in table.sets),
        queries=tuple(query for table in tables for query in table.queries),
        measures=tables[0].measures,
        values={system: np.vstack([table.values[system] for table in tables]) for system in tables[0].values},
    )
