"""Rankings of legs made up for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from retrieval.index.strings import StringColumn
from retrieval.legs.base import LegRanking


def ranking_of(hits: Iterable[tuple[str, int, float]], **about: Any) -> LegRanking:
    """A ranking of memories given by id, slot and score, best first."""
    names, docs, scores = list(zip(*hits, strict=True)) or [(), (), ()]
    ids, slots = StringColumn(), np.array(docs, np.int64)
    if slots.size:
        encoded = [name.encode() for name in names]
        ids.put(slots, b"".join(encoded), np.array([len(each) for each in encoded], np.int32))
    return LegRanking(docs=slots, scores=np.array(scores, np.float64), ids=ids, **about)
