"""Scores per query, of one evaluation folder or of several together, and their means with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval.evaluation.folder import Query
from retrieval.evaluation.metrics import measures
from retrieval.evaluation.runner import JudgedAnswer
from retrieval.significance import Scores, bootstrap
from retrieval.types.evaluation import Estimate

OVERALL = "all"
MACRO = "macro over namespaces"
MACRO_SETS = "macro over sets"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreTable:
    """Every system's (queries, measures) scores on the same queries, from one or several sets."""

    sets: tuple[str, ...]
    queries: tuple[Query, ...]
    measures: tuple[str, ...]
    values: Mapping[str, Scores]

    def column(self, system: str, measure: str) -> Scores:
        """(queries, 1) scores of a system in one measure."""
        at = self.measures.index(measure)
        return self.values[system][:, at : at + 1]


def score(answers: Sequence[JudgedAnswer], top_k: int) -> Scores:
    """(answers, measures) scores, columns in the order of `measures(top_k)`."""
    chosen = measures(top_k)
    return np.array(
        [
            [measure([id_ for id_, _ in answer.ranking], answer.query.grades) for measure in chosen.values()]
            for answer in answers
        ],
        dtype=np.float64,
    ).reshape(len(answers), len(chosen))


def score_table(dataset: str, answers: Mapping[str, Sequence[JudgedAnswer]], top_k: int) -> ScoreTable:
    """The scores of the systems on one set; all have answered its queries in the same order."""
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A system's means over one group of queries: `all`, a mean over namespaces or sets, or a query type."""

    group: str
    system: str
    queries: int
    measures: Mapping[str, Estimate]


def type_group(query: Query) -> str:
    """The group of the query's type, renamed if another kind of group has that name."""
    return f"{query.type} (type)" if query.type in (OVERALL, MACRO, MACRO_SETS) else query.type


def set_cells(table: ScoreTable, *, seed: int) -> list[Cell]:
    """Figures of one set: overall, macro over namespaces if there are several, per type."""
    groups: dict[str, list[int]] = {}
    for row, query in enumerate(table.queries):
        groups.setdefault(type_group(query), []).append(row)
    everything = range(len(table.queries))
    namespaces = [query.namespace for query in table.queries]
    found = _group(table, OVERALL, everything, table.sets, seed)
    if len(set(namespaces)) > 1:
        found += _group(table, MACRO, everything, namespaces, seed)
    for type_, rows in groups.items():
        found += _group(table, type_, rows, [type_] * len(rows), seed)
    return found


def macro_cells(table: ScoreTable, *, seed: int) -> list[Cell]:
    """Figures of several sets: the unweighted mean of each set's mean over its queries."""
    return _group(table, MACRO_SETS, range(len(table.queries)), table.sets, seed)


def _group(table: ScoreTable, group: str, rows: Sequence[int], strata: Sequence[str], seed: int) -> list[Cell]:
    """A cell per system. They share their resamples, so that intervals are comparable."""
    width = len(table.measures)
    intervals = bootstrap(np.hstack([values[rows] for values in table.values.values()]), strata, seed=seed)
    return [
        Cell(
            group=group,
            system=system,
            queries=len(rows),
            measures=dict(zip(table.measures, intervals[at * width : (at + 1) * width], strict=True)),
        )
        for at, system in enumerate(table.values)
    ]
