"""Texts in batches of similar length: each once, none too large, at the least cost."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from retrieval.embedding.encoder import PIECES_PER_BATCH, PIECES_PER_RUN, TEXTS_PER_BATCH, batches_by_length


def cost(batches: list[list[int]], lengths: list[int]) -> int:
    return sum(PIECES_PER_RUN + len(batch) * max(lengths[row] for row in batch) for batch in batches)


def fits(lengths: list[int]) -> bool:
    """Whether texts may be one batch."""
    return len(lengths) <= TEXTS_PER_BATCH and (len(lengths) == 1 or len(lengths) * max(lengths) <= PIECES_PER_BATCH)


def least_cost(lengths: list[int]) -> int:
    """Over all ways to cut the sorted lengths."""
    if not lengths:
        return 0
    first = [size for size in range(1, len(lengths) + 1) if fits(lengths[:size])]
    return min(PIECES_PER_RUN + size * lengths[size - 1] + least_cost(lengths[size:]) for size in first)


def test_each_text_is_in_one_batch_and_no_cut_would_cost_less() -> None:
    random = Random(3)
    for _ in range(100):
        lengths = [
            random.randint(1, random.choice((5, 40, 200, 2 * PIECES_PER_BATCH))) for _ in range(random.randint(0, 13))
        ]
        batches = list(batches_by_length([[7] * length for length in lengths]))
        assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
        assert all(fits([lengths[row] for row in batch]) for batch in batches)
        assert cost(batches, lengths) == least_cost(sorted(lengths))


def test_shorter_texts_come_first() -> None:
    lengths = [(number * 37) % 90 + 1 for number in range(200)]
    batches = list(batches_by_length([[7] * length for length in lengths]))
    assert all(
        max(lengths[row] for row in before) <= min(lengths[row] for row in after) for before, after in pairwise(batches)
    )
