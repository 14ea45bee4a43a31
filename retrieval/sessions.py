"""Puts the turns of chat sessions in order and in their context; no I/O.

All of it is local: a change at one place of a session needs the two stored turns on each side of it, and
changes the pointers of one on each side and the vectors of the two after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval.mixing import mixed

END = 2**63 - 1
"""The place of a turn that goes after all that are there."""


class Place(NamedTuple):
    """Where a turn stands; places compare as the database orders them."""

    session_id: str
    place: int
    id: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A row of the table.

    Attributes:
        doc: its ordinal.
        at: where it stands.
        own: its own unit embedding, shape (dimensions,), as precise as it is stored.
        previous: ordinal of the turn before it in the session; None for the first.
        next: of the turn after it; None for the last.
    """

    doc: int
    at: Place
    own: NDArray[np.float16]
    previous: int | None = None
    next: int | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A turn to be written, with the position that its caller gave it."""

    doc: int
    id: str
    session_id: str
    position: int | None
    embedding: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What a change of some sessions comes to.

    Attributes:
        added: the new turns with their neighbours.
        relinked: stored turns that have another neighbour now.
        vectors: mixed unit vectors, by ordinal, of the new turns and of stored ones with others before them.
    """

    added: Sequence[Turn]
    relinked: Sequence[Turn]
    vectors: Mapping[int, NDArray[np.float32]]


def destination(arrival: Arrival, former: Mapping[str, Place]) -> Place:
    """Where a turn goes: to its position, to where it stood in this session, or to the end.

    Args:
        arrival: the turn.
        former: by id, the places of the turns that are replaced.
    """
    if arrival.position is not None:
        return Place(arrival.session_id, arrival.position, arrival.id)
    stood = former.get(arrival.id)
    return stood if stood and stood.session_id == arrival.session_id else Place(arrival.session_id, END, arrival.id)


def placed(arrivals: Iterable[Arrival], former: Mapping[str, Place], around: Iterable[Turn]) -> list[Turn]:
    """Give the turns their places, one after another: the end is one more than the greatest place.

    Args:
        arrivals: in the caller's order.
        former: by id, the places of the turns that are replaced.
        around: the stored turns around all destinations, hence the last one of a session that is appended to.
    """
    greatest: dict[str, int] = {}
    for at in (*former.values(), *(turn.at for turn in around)):
        greatest[at.session_id] = max(at.place, greatest.get(at.session_id, -1))
    turns = []
    for arrival in arrivals:
        at = destination(arrival, former)
        last = greatest.get(at.session_id, -1)
        if at.place == END:
            at = at._replace(place=last + 1)
        greatest[at.session_id] = max(at.place, last)
        turns.append(Turn(arrival.doc, at, arrival.embedding.astype(np.float16)))
    return turns


def arrange(around: Sequence[Turn], added: Sequence[Turn], gone: Collection[Place]) -> Arrangement:
    """Link new turns with the stored ones, close the gaps of those that are gone, and mix the vectors.

    Args:
        around: the stored turns that stay, two on each side of every place of `added` and `gone`; others of
            the same sessions may be among them.
        added: new turns.
        gone: where turns were taken away.
    """
    stored = {turn.doc: turn for turn in around}
    turns = stored | {turn.doc: turn for turn in added}
    linked = turns | _joined(turns.values(), {turn.doc for turn in added}, gone)
    changed = [doc for doc in linked if doc not in stored or _context(doc, linked) != _context(doc, stored)]
    return Arrangement(
        added=[linked[turn.doc] for turn in added],
        relinked=[turn for doc, turn in linked.items() if doc in stored and turn is not stored[doc]],
        vectors=dict(zip(changed, _vectors(changed, linked), strict=True)),
    )


def _joined(turns: Iterable[Turn], added: Collection[int], gone: Collection[Place]) -> dict[int, Turn]:
    """The turns that stand beside a new one or a gap, with their new neighbours.

    Two stored turns with nothing new or gone between them may be far apart, so they keep what they have.
    """
    joined: dict[int, Turn] = {}
    steps = [*((turn.at, turn) for turn in turns), *((at, None) for at in gone)]
    for _, session in groupby(sorted(steps, key=lambda step: step[0]), key=lambda step: step[0].session_id):
        last: Turn | None = None
        touched = False
        for _, turn in session:
            if turn is None:
                touched = True
                continue
            if touched or turn.doc in added:
                _join(joined, last, turn)
            last, touched = turn, turn.doc in added
        if touched:
            _join(joined, last, None)
    return joined


def _join(joined: dict[int, Turn], before: Turn | None, after: Turn | None) -> None:
    if before is not None:
        known = joined.get(before.doc, before)
        joined[before.doc] = replace(known, next=after.doc if after else None)
    if after is not None:
        known = joined.get(after.doc, after)
        joined[after.doc] = replace(known, previous=before.doc if before else None)


def _context(doc: int, turns: Mapping[int, Turn]) -> tuple[int | None, int | None]:
    """The two turns before one; a text that changes gets a new ordinal, so equal ones have equal vectors."""
    previous = turns[doc].previous
    before = turns.get(previous) if previous is not None else None
    return previous, before.previous if before else None


def _vectors(docs: Sequence[int], turns: Mapping[int, Turn]) -> NDArray[np.float32]:
    """The mixed vectors of some turns whose contexts are among `turns`, shape (docs, dimensions)."""
    if not docs:
        return np.empty((0, 0), np.float32)
    nothing = np.zeros_like(turns[docs[0]].own)
    contexts = [(doc, *_context(doc, turns)) for doc in docs]
    rows = [[nothing if doc is None else turns[doc].own for doc in context] for context in contexts]
    return mixed(*np.asarray(rows, np.float32).swapaxes(0, 1))
