"""Saved queries as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classifier.intents import INTENTS
from classifier.weights import confidence
from retrieval.profiles import Profile
from retrieval.tuning.runs import SavedQuery
from retrieval.types import Leg

CUTOFF = 10
"""Places that count."""

NOWHERE = 1_000_000
"""The rank of what a leg did not find."""

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

DISCOUNT: Floats = np.append(1 / np.log2(np.arange(CUTOFF) + 2), 0.0)
"""What a place counts, from the first; the last entry is that of all places beyond."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gold:
    """The relevant memories that any leg found, one entry each.

    Attributes:
        row, column: the query and the candidate that stands for the memory.
        offset: how many relevant memories the same candidate stands for before this one.
        gain: what it is worth, as a share of the best ranking's.
    """

    row: Ints
    column: Ints
    offset: Ints
    gain: Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Rescorings:
    """The rescorer's say on one query: how far it is followed, and the scores (c,) of the candidates."""

    confidence: float
    scores: Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Saved queries as arrays; `c` candidates at most, in the order of their ids.

    Attributes:
        rescored: by row, what the rescorer makes of the candidates; only of rows where it has a say.
        ranks: (n, 3, c) from 1; `NOWHERE` for what a leg did not find.
        heard: (n, 3) how many of each leg's hits are above its noise.
        alone: (n,) whether one leg alone found anything, which is then heard out.
        places: (n, c) how many places of an answer a candidate takes.
        copies: by row, the columns of candidates that another one stands for, with that one's.
        gold: what is relevant.
        probabilities: (n, 4) of the intents.
        belief: (n,) confidence times familiarity of the classification.
        familiar: (n,) how far the learned weights may be followed: how like the memories are to the training's.
        learned: (depths, n, 3) weights by what the legs found.
        learned_depths: the depths, ascending.
    """

    rescored: Mapping[int, Rescorings]
    ranks: NDArray[np.int32]
    heard: Ints
    alone: NDArray[np.bool_]
    places: NDArray[np.int32]
    copies: Mapping[int, Sequence[tuple[int, int]]]
    gold: Gold
    probabilities: Floats
    belief: Floats
    familiar: Floats
    learned: Floats
    learned_depths: Ints

    def __len__(self) -> int:
        return len(self.belief)


def served_depth(queries: Sequence[SavedQuery], fan_out: int) -> int:
    """The saved fan-out at which legs look that are asked for one: that, or the next that was asked."""
    depths = queries[0].depths
    return min((depth for depth in depths if depth >= fan_out), default=depths[-1])


def batch_of(queries: Sequence[SavedQuery], profile: Profile, depth: int | None = None) -> Batch:
    """The queries as arrays, with the noise cut of a profile, and rescored if it wants that.

    Args:
        queries: at least one.
        profile: whose legs they are of.
        depth: the saved fan-out at which the legs looked; None for the profile's.
    """
    depth = depth or served_depth(queries, profile.fan_out)
    rescoring = profile.rescore and profile.models.rescorer is not None
    columns = [_columns(query, depth) for query in queries]
    width = max(1, *(len(each) for each in columns))
    ranks = np.full((len(queries), len(Leg), width), NOWHERE, np.int32)
    places = np.ones((len(queries), width), np.int32)
    gold: list[tuple[int, int, int, float]] = []
    copies: dict[int, list[tuple[int, int]]] = {}
    for row, (query, column) in enumerate(zip(queries, columns, strict=True)):
        for at, leg in enumerate(Leg):
            hits = query.hits(leg, depth)
            ranks[row, at, [column[id_] for id_, _ in hits]] = np.arange(1, len(hits) + 1)
        leader = _leaders(query, column)
        if leader:
            copies[row] = list(leader.items())
        gold += _gold(query, row, column, leader)
    for row, at, offset, _ in gold:
        places[row, at] = max(places[row, at], offset + 1)
    entries = list(zip(*gold, strict=True)) or [(), (), (), ()]
    return Batch(
        rescored=_rescored(queries, columns, depth) if rescoring else {},
        ranks=ranks,
        heard=np.array([_above_noise(query, profile, depth) for query in queries], np.intp),
        alone=np.array([sum(bool(query.hits(leg, depth)) for leg in Leg) == 1 for query in queries]),
        places=places,
        copies=copies,
        gold=Gold(
            row=np.array(entries[0], np.intp),
            column=np.array(entries[1], np.intp),
            offset=np.array(entries[2], np.intp),
            gain=np.array(entries[3], np.float64),
        ),
        probabilities=np.array([query.probabilities for query in queries], np.float64),
        belief=np.array([_belief(query) for query in queries]),
        familiar=np.array([_familiar(query, depth) if rescoring else 1.0 for query in queries]),
        learned=np.array([[query.learned[at] for query in queries] for at in queries[0].depths], np.float64),
        learned_depths=np.array(queries[0].depths, np.intp),
    )


def importance(queries: Sequence[SavedQuery]) -> Floats:
    """What each query counts, summing to their number; every set counts alike, whatever its size."""
    weights = np.array([query.weight for query in queries], np.float64)
    sets = np.array([query.set for query in queries])
    names = np.unique(sets)
    for name in names:
        weights[sets == name] /= weights[sets == name].sum() * len(names)
    return weights * len(queries)


def _columns(query: SavedQuery, depth: int) -> dict[str, int]:
    """The candidates' columns, in the order of their ids: that of equal scores."""
    return {id_: at for at, id_ in enumerate(sorted({id_ for leg in Leg for id_, _ in query.hits(leg, depth)}))}


def _leaders(query: SavedQuery, column: dict[str, int]) -> dict[int, int]:
    """The column that stands for another one."""
    leaders = {}
    for group in query.duplicates:
        members = sorted(column[id_] for id_ in group if id_ in column)
        leaders.update({member: members[0] for member in members[1:]})
    return leaders


def _gold(
    query: SavedQuery, row: int, column: dict[str, int], leader: dict[int, int]
) -> list[tuple[int, int, int, float]]:
    """Row, column, offset and share of the ideal gain of each relevant memory that was found."""
    best = sorted(query.gains.values(), reverse=True)[:CUTOFF]
    ideal = float(np.dot(best, DISCOUNT[: len(best)]))
    taken: dict[int, int] = {}
    found = []
    for id_ in sorted(query.gains):
        if id_ in column:
            at = leader.get(column[id_], column[id_])
            found.append((row, at, taken.get(at, 0), query.gains[id_] / ideal))
            taken[at] = taken.get(at, 0) + 1
    return found


def _above_noise(query: SavedQuery, profile: Profile, depth: int) -> list[int]:
    """How many hits of each leg `noise.above_noise` leaves."""
    counts = []
    for leg in Leg:
        scores = [score for _, score in query.hits(leg, depth)]
        least = -np.inf
        if scores and leg is Leg.VECTOR:
            least = scores[0] - profile.vector_noise
        if scores and leg is Leg.BM25:
            least = scores[0] * profile.bm25_noise
        counts.append(sum(score >= least for score in scores))
    return counts


def _rescored(queries: Sequence[SavedQuery], columns: Sequence[Mapping[str, int]], depth: int) -> dict[int, Rescorings]:
    """By row; a candidate without a score comes after all others."""
    found = {}
    width = max(1, *(len(each) for each in columns))
    for row, (query, column) in enumerate(zip(queries, columns, strict=True)):
        said = query.rescored.get(depth)
        if said is not None:
            scores = np.full(width, min(said.scores.values(), default=0.0) - 1.0)
            known = [(column[id_], score) for id_, score in said.scores.items() if id_ in column]
            scores[[at for at, _ in known]] = [score for _, score in known]
            found[row] = Rescorings(confidence=said.confidence, scores=scores)
    return found


def _familiar(query: SavedQuery, depth: int) -> float:
    said = query.rescored.get(depth)
    return 1.0 if said is None else said.familiarity


def _belief(query: SavedQuery) -> float:
    return confidence(dict(zip(INTENTS, query.probabilities, strict=True))) * query.familiarity
