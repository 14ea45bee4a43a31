"""Agreement of two rankings of one query, given as ids, best first and without repeats; no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, combinations

PERSISTENCE = 0.9
"""The `p` of rank-biased overlap used throughout: the first 10 ranks have 86% of the weight."""


def overlap(one: Sequence[str], other: Sequence[str]) -> float:
    """Share of ids that two rankings have in common: |A ∩ B| / max(|A|, |B|); 1 for two empty ones.

    >>> overlap(["a", "b", "c"], ["c", "d", "a"])
    0.6666666666666666
    """
    first, second = set(one), set(other)
    longer = max(len(first), len(second))
    return len(first & second) / longer if longer else 1.0


def rank_biased_overlap(one: Sequence[str], other: Sequence[str], *, p: float = PERSISTENCE) -> float:
    """Rank-biased overlap, extrapolated beyond the ends of rankings of any length.

    With s and l the lengths of the shorter and the longer ranking, and X(d) the number of ids in both of
    their first d:

        RBO = (1 - p) / p * (sum over d = 1..l of X(d) / d * p^d
                             + sum over d = s+1..l of X(s) * (d - s) / (s * d) * p^d)
              + ((X(l) - X(s)) / l + X(s) / s) * p^l

    Webber, Moffat and Zobel, A similarity measure for indefinite rankings, ACM TOIS 28(4), 2010,
    doi:10.1145/1852102.1852106, equation 32.

    `p`, in (0, 1), is the probability that a reader continues from one rank to the next. Returns 1 for equal rankings,
    including two empty ones, and 0 if only one is empty.

    >>> round(rank_biased_overlap(["a", "b", "c"], ["a", "c", "b"]), 4)
    0.955
    """
    shorter, longer = sorted((one, other), key=len)
    short, long = len(shorter), len(longer)
    if not short:
        return 0.0 if long else 1.0
    ranks = {candidate: rank for rank, candidate in enumerate(shorter)}
    met = Counter(max(rank, ranks[candidate]) for rank, candidate in enumerate(longer) if candidate in ranks)
    common = list(accumulate((met[rank] for rank in range(long)), initial=0))  # X(0) to X(l)
    total = 0.0
    for depth in range(1, long + 1):
        total += common[depth] / depth * p**depth
        if depth > short:
            total += common[short] * (depth - short) / (short * depth) * p**depth
    return (1 - p) / p * total + ((common[long] - common[short]) / long + common[short] / short) * p**long


def kendall_tau(one: Sequence[str], other: Sequence[str]) -> float | None:
    """Kendall's tau of the ids that both rankings have: (concordant - discordant) / all pairs.

    Kendall, A new measure of rank correlation, Biometrika 30, 1938, doi:10.1093/biomet/30.1-2.81; there are no ties.
    None with fewer than two common ids.

    >>> kendall_tau(["a", "b", "c"], ["a", "c", "x", "b"])
    0.3333333333333333
    """
    ranks = {candidate: rank for rank, candidate in enumerate(other)}
    common = [ranks[candidate] for candidate in one if candidate in ranks]
    signs = [1 if earlier < later else -1 for earlier, later in combinations(common, 2)]
    return sum(signs) / len(signs) if signs else None
