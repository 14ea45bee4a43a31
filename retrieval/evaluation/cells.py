"""Means with confidence intervals, per system and group of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval.evaluation.intervals import Interval, bootstrap
from retrieval.evaluation.scores import ScoreTable

OVERALL = "all"
MACRO = "macro over namespaces"
MACRO_SETS = "macro over sets"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A system's figures over one group of queries.

    Attributes:
        group: `all`, `macro over namespaces`, `macro over sets`, or a query type.
        system: its name.
        queries: how many were scored.
        measures: each measure's mean and interval.
    """

    group: str
    system: str
    queries: int
    measures: Mapping[str, Interval]


def set_cells(table: ScoreTable, *, seed: int) -> list[Cell]:
    """Figures of one set: overall, macro over namespaces where there are several, per type."""
    groups: dict[str, list[int]] = {}
    for row, query in enumerate(table.queries):
        groups.setdefault(query.type, []).append(row)
    everything = range(len(table.queries))
    namespaces = [query.namespace for query in table.queries]
    found = _group(table, OVERALL, everything, table.sets, seed)
    if len(set(namespaces)) > 1:
        found += _group(table, MACRO, everything, namespaces, seed)
    for type_, rows in groups.items():
        found += _group(table, type_, rows, [type_] * len(rows), seed)
    return found


def macro_cells(table: ScoreTable, *, seed: int) -> list[Cell]:
    """Figures of several sets: the mean of each set's mean over its queries, every set alike."""
    return _group(table, MACRO_SETS, range(len(table.queries)), table.sets, seed)


def _group(table: ScoreTable, group: str, rows: Sequence[int], strata: Sequence[str], seed: int) -> list[Cell]:
    """A cell per system. They share their resamples, so that intervals can be set side by side."""
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
