"""Weighted reciprocal rank fusion: several rankings of one query become one."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping, Sequence
from math import isfinite
from struct import Struct
from typing import NamedTuple

import msgspec

import native
from retrieval.errors import FusionError
from retrieval.types import Leg

FIRST_RANK = 1
"""Ranks start at 1, so that an absent memory (0) is worth less than any place in a ranking."""

_NUMBER_BYTES = 4
_RANKED = Struct("qqd")

_integer = ctypes.c_int64
_fuse = native.function(
    "trivet_fuse",
    _integer, _integer, native.Array, _integer, native.Array, ctypes.c_double, native.Array, native.Array,
    result=_integer,
)  # fmt: skip


class Fused(msgspec.Struct, frozen=True, gc=False):
    """One fused memory.

    Attributes:
        id: the memory.
        score: the sum of the formula, > 0.
    """

    id: str
    score: float


class Ranked(NamedTuple):
    """One of the rankings of a query: where it begins among their candidates, and how many of them count how much."""

    start: int
    length: int
    weight: float


class Order(NamedTuple):
    """Numbers of candidates, best first, and their scores."""

    numbers: list[int]
    scores: list[float]


def weighted_rrf(
    rankings: Mapping[Leg, Sequence[str]], weights: Mapping[Leg, float], *, rrf_k: float = 60
) -> list[Fused]:
    """Fuse rankings: score(d) = sum over legs of weights[leg] / (rrf_k + rank), rank from 1.

    A memory that a leg did not return gets 0 from it. A leg of weight 0 gives nothing: a memory that
    only such legs returned has no place in the result, which is empty if all weights are 0.
    The sum is exactly rounded, so the order of the legs cannot change it. Unweighted form: Cormack,
    Clarke and Buettcher, SIGIR 2009, doi:10.1145/1571941.1572114.

    Args:
        rankings: best-first ids per leg, no repeats.
        weights: finite, >= 0, one per leg present; they need not sum to 1.
        rrf_k: smoothing constant, > 0.

    Returns:
        Each id once, score descending, ties by id.

    Raises:
        FusionError: a repeated id, a missing, negative or non-finite weight, or rrf_k not above 0.

    >>> [f.id for f in weighted_rrf({"bm25": ["a", "b"], "vector": ["b"]}, {"bm25": 1.0, "vector": 1.0})]
    ['b', 'a']
    """
    parts: list[Ranked] = []
    start = 0
    for leg, ranking in rankings.items():
        if len(set(ranking)) < len(ranking):
            twice = next(id for at, id in enumerate(ranking) if id in ranking[:at])
            raise FusionError(f"the ranking of {leg} has {twice!r} twice", loc=("rankings", leg))
        parts.append(Ranked(start, len(ranking), checked_weight(weights, leg)))
        start += len(ranking)
    ids = sorted(set().union(*rankings.values()))
    number = {id: at for at, id in enumerate(ids)}
    numbers = array("i", [number[id] for ranking in rankings.values() for id in ranking])
    order = fuse(ids, numbers.tobytes(), parts, rrf_k=rrf_k)
    return [Fused(ids[number], score) for number, score in zip(*order, strict=True)]


def fuse(ids: Sequence[str], at: bytes, rankings: Sequence[Ranked], *, rrf_k: float) -> Order:
    """The same of rankings of numbered candidates.

    Args:
        ids: of the candidates, each once.
        at: their numbers as int32, ranking after ranking, none twice in one.
        rankings: up to three parts of `at`, with weights that are finite and >= 0.
        rrf_k: smoothing constant, > 0.

    Raises:
        FusionError: rrf_k not above 0, or scores beyond all bounds.
    """
    if not (isfinite(rrf_k) and rrf_k > 0):
        raise FusionError(f"rrf_k is {rrf_k}, must be above 0", loc=("rrf_k",))
    count = len(ids)
    numbers, scores = array("q", bytes(8 * count)), array("d", bytes(8 * count))
    found = _fuse(
        count, len(at) // _NUMBER_BYTES, at, len(rankings), b"".join([_RANKED.pack(*each) for each in rankings]), rrf_k,
        numbers.buffer_info()[0], scores.buffer_info()[0],
    )  # fmt: skip
    if found == -1:
        raise MemoryError
    if found < 0:
        raise ValueError(f"{rankings} are no rankings of {count} candidates")
    order = Order(numbers[:found].tolist(), scores[:found].tolist())
    if found and not isfinite(order.scores[0]):
        raise FusionError("the weights are too large", loc=("weights",))
    if len(set(order.scores)) < found:  # few are equal, which are in the order of their numbers so far
        placed = sorted(zip(order.scores, order.numbers, strict=True), key=lambda each: (-each[0], ids[each[1]]))
        order = order._replace(numbers=[number for _, number in placed])
    return order


def checked_weight(weights: Mapping[Leg, float], leg: Leg) -> float:
    """The weight of a leg.

    Raises:
        FusionError: there is none, or it is negative or not finite.
    """
    if leg not in weights:
        raise FusionError(f"no weight for {leg}", loc=("weights", leg))
    weight = weights[leg]
    if not (isfinite(weight) and weight >= 0):
        raise FusionError(f"the weight of {leg} is {weight}, must be finite and not negative", loc=("weights", leg))
    return weight
