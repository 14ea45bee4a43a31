"""Parts of the queries that are held out in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.tuning.runs import SavedQuery

Rows = NDArray[np.intp]


def folds(queries: Sequence[SavedQuery], count: int, *, seed: int) -> list[Rows]:
    """Split queries into at most `count` parts of about the same size.

    In a set of several namespaces each namespace stays whole, so that what is held out was talked of nowhere
    in what is learned from; elsewhere the queries are dealt out, those of the same words together.

    Args:
        queries: what is split.
        count: of parts, >= 2; there are fewer where there is not that much to keep apart.
        seed: of the order in which they are dealt.

    Returns:
        The row numbers of each part, none empty.
    """
    spaces: dict[str, set[str]] = {}
    for query in queries:
        spaces.setdefault(query.set, set()).add(query.namespace)
    groups: dict[tuple[str, str], list[int]] = {}
    for row, query in enumerate(queries):
        kept_whole = query.namespace if len(spaces[query.set]) > 1 else query.asked
        groups.setdefault((query.set, kept_whole), []).append(row)
    rng = np.random.default_rng(seed)
    names = sorted(groups)
    dealt = sorted((names[at] for at in rng.permutation(len(names))), key=lambda name: -len(groups[name]))
    parts: list[list[int]] = [[] for _ in range(count)]
    filled: Counter[tuple[str, int]] = Counter()
    for name in dealt:  # the largest first, each to where least of its set, then least of all, has gone
        at = min(range(count), key=lambda part: (filled[name[0], part], len(parts[part])))
        parts[at] += groups[name]
        filled[name[0], at] += len(groups[name])
    return [np.array(sorted(part), np.intp) for part in parts if part]


def without(rows: Rows, n: int) -> Rows:
    """The other rows of `n`."""
    return np.setdiff1d(np.arange(n), rows)
