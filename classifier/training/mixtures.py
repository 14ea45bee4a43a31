"""Queries whose rankings and gold are known, and what every mixture of the legs would have been worth."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from classifier.evidence import FEATURES
from classifier.trust import LEGS

_STEPS = 10
_CUTOFF = 10

GRID: NDArray[np.float64] = (
    np.array([(v, b, _STEPS - v - b) for v in range(_STEPS + 1) for b in range(_STEPS + 1 - v)], np.float64) / _STEPS
)
"""Mixtures of the legs in steps of a tenth, shape (66, 3), columns in the order of `LEGS`."""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One query.

    Attributes:
        set: the evaluation set.
        namespace: within it.
        evidence: its features, in the order of `FEATURES`.
        rankings: ids by leg, best first, as they enter the fusion.
        relevant: the gold.
        rrf_k: the fusion's constant.
    """

    set: str
    namespace: str
    evidence: tuple[float, ...]
    rankings: dict[Literal["vector", "bm25", "graph"], tuple[str, ...]]
    relevant: Annotated[frozenset[str], msgspec.Meta(min_length=1)]
    rrf_k: Annotated[int, msgspec.Meta(ge=1)]


def read_rows(path: Path) -> list[Row]:
    """Rows of a file of JSON lines with the fields of `Row`.

    Raises:
        ValueError: a line that is none, or has other features than this version's.
    """
    decoder = msgspec.json.Decoder(Row)
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


def qualities(rows: Sequence[Row]) -> NDArray[np.float64]:
    """nDCG@10 of every query under every mixture of `GRID`, shape (rows, 66)."""
    return np.stack([_ndcg(row, GRID) for row in rows])


def quality_of(row: Row, weights: NDArray[np.float64]) -> float:
    """nDCG@10 of a query under some weights, shape (3,)."""
    return float(_ndcg(row, weights[np.newaxis, :])[0])


def _ndcg(row: Row, mixtures: NDArray[np.float64]) -> NDArray[np.float64]:
    """By weighted reciprocal rank fusion; ties by id, as the server breaks them."""
    ids = sorted({each for ranking in row.rankings.values() for each in ranking})
    column = {each: at for at, each in enumerate(ids)}
    shares = np.zeros((len(LEGS), len(ids)))
    for leg, ranking in row.rankings.items():
        places = [column[each] for each in ranking]
        shares[LEGS.index(leg), places] = 1 / (row.rrf_k + 1 + np.arange(len(places)))
    fused = np.round(mixtures @ shares, 12)  # ties are ties, however they were added up
    best = np.argsort(-fused, axis=1, kind="stable")[:, :_CUTOFF]
    hit = np.array([each in row.relevant for each in ids])[best] & (np.take_along_axis(fused, best, axis=1) > 0)
    discount = 1 / np.log2(np.arange(best.shape[1]) + 2)
    ideal = sum(1 / log2(rank + 1) for rank in range(1, min(_CUTOFF, len(row.relevant)) + 1))
    gained: NDArray[np.float64] = (hit * discount).sum(axis=1) / ideal
    return gained
