"""Queries with known rankings and relevance, and the quality of every mixture of the legs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from classifier.leg_weights import LEGS
from classifier.query_performance import FEATURES
from classifier.training.examples import Example
from classifier.training.metrics import CUTOFF, ndcg

RRF_K = 5
"""The constant of examples, as in all recipes of the shipped profiles."""

_STEPS = 10

GRID: NDArray[np.float64] = (
    np.array([(v, b, _STEPS - v - b) for v in range(_STEPS + 1) for b in range(_STEPS + 1 - v)], np.float64) / _STEPS
)
"""Mixtures of the legs in steps of 0.1, shape (66, 3), columns in the order of `LEGS`."""


LegName = Literal["vector", "bm25", "graph"]


class LabelledRankings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rankings of a query of an evaluation set with relevance labels.

    Attributes:
        evidence: the features, in the order of `FEATURES`.
        rankings: ids by leg, best first, as they enter the fusion.
        relevant: ids of the relevant memories.
        rrf_k: the fusion's constant.
    """

    set: str
    namespace: str
    evidence: tuple[float, ...]
    rankings: dict[LegName, tuple[str, ...]]
    relevant: Annotated[frozenset[str], msgspec.Meta(min_length=1)]
    rrf_k: Annotated[int, msgspec.Meta(ge=1)]


def read_rows(path: Path) -> list[LabelledRankings]:
    """Read rows from a file of JSON lines with the fields of `LabelledRankings`.

    Raises ValueError for a malformed line, or the features of another version.
    """
    decoder = msgspec.json.Decoder(LabelledRankings)
    rows = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = decoder.decode(line)
            except msgspec.DecodeError as exc:
                raise ValueError(f"{path}:{number}: {exc}") from exc
            if len(row.evidence) != len(FEATURES) or not np.isfinite(row.evidence).all():
                raise ValueError(f"{path}:{number}: evidence must be {len(FEATURES)} finite numbers")
            rows.append(row)
    return rows


def qualities(rows: Sequence[LabelledRankings]) -> NDArray[np.float64]:
    """nDCG@10 of every query with every mixture of `GRID`, shape (rows, 66)."""
    return np.stack([_ndcg(row, GRID) for row in rows])


def quality_of(row: LabelledRankings, weights: NDArray[np.float64]) -> float:
    """nDCG@10 of a query with some weights, shape (3,)."""
    return float(_ndcg(row, weights[np.newaxis, :])[0])


def labelled_rankings(example: Example) -> LabelledRankings:
    """The legs' rankings of an example, with its labels."""
    evidence = example.evidence
    return LabelledRankings(
        set=example.set,
        namespace=example.namespace,
        evidence=tuple(evidence.row.tolist()),
        rankings={
            "vector": tuple(evidence.vector.ids),
            "bm25": tuple(evidence.bm25.ids),
            "graph": tuple(evidence.graph.ids),
        },
        relevant=example.relevant,
        rrf_k=RRF_K,
    )


def fused_ids(row: LabelledRankings, weights: NDArray[np.float64]) -> list[str]:
    """All ids of the rankings in the order of their fusion; ties by id, as in serving."""
    ids, [scores] = _fused(row, weights[np.newaxis, :])
    return [ids[at] for at in np.argsort(-scores, kind="stable").tolist() if scores[at] > 0]


def _ndcg(row: LabelledRankings, mixtures: NDArray[np.float64]) -> NDArray[np.float64]:
    """nDCG@10 of weighted reciprocal rank fusion; ties are broken by id, as in serving."""
    ids, fused = _fused(row, mixtures)
    best = np.argsort(-fused, axis=1, kind="stable")[:, :CUTOFF]
    hits = np.array([each in row.relevant for each in ids])[best] & (np.take_along_axis(fused, best, axis=1) > 0)
    return ndcg(hits, len(row.relevant))


def _fused(row: LabelledRankings, mixtures: NDArray[np.float64]) -> tuple[list[str], NDArray[np.float64]]:
    """All ids of the rankings, ascending, and their scores by each mixture, shape (mixtures, ids)."""
    ids = sorted({each for ranking in row.rankings.values() for each in ranking})
    column = {each: number for number, each in enumerate(ids)}
    shares = np.zeros((len(LEGS), len(ids)))
    for leg, ranking in row.rankings.items():
        places = [column[each] for each in ranking]
        shares[LEGS.index(leg), places] = 1 / (row.rrf_k + 1 + np.arange(len(places)))
    return ids, np.round(mixtures @ shares, 12)  # so that ties do not depend on the order of summation
