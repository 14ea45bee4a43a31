"""Orders the turns of chat sessions and blends their vectors with preceding turns; no I/O.

The chunks of a document are turns, too: the document is their session, and BM25 scores a chunk in its context.

Changes are local: a change at one place of a session needs the two stored turns on each side of it, and updates the
links of one on each side and the vectors of the two after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval.types.memory import MemoryInput

END = 2**63 - 1
"""The place of a turn that is appended to its session."""

DOCUMENT = "\x1f"
"""Prefix of a document's name among sessions; no other session name may have it."""


def session_of(memory: MemoryInput) -> str | None:
    """The session of which a memory is a turn, for a chunk its document; None for other memories."""
    if memory.session_id is None and memory.kind == "chunk" and memory.document_id is not None:
        return session_name(memory.document_id)
    return memory.session_id


def session_name(document_id: str) -> str:
    """The name of a document among sessions."""
    return DOCUMENT + document_id


class Place(NamedTuple):
    """A position in a session; places compare in the database's order."""

    session_id: str
    place: int
    id: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A row of the turn table.

    Attributes:
        text_vector: the unit embedding of its text alone, shape (dimensions,), in stored precision.
        previous: ordinal of the preceding turn in the session; None for the first.
        next: ordinal of the following turn; None for the last.
    """

    doc: int
    place: Place
    text_vector: NDArray[np.float16]
    previous: int | None = None
    next: int | None = None


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The updates that a change of some sessions requires.

    Attributes:
        relinked: stored turns whose neighbours changed.
        vectors: context unit vectors by ordinal, of new turns and of stored ones whose preceding turns changed.
    """

    added: Sequence[Turn]
    relinked: Sequence[Turn]
    vectors: Mapping[int, NDArray[np.float32]]


def destination(memory_id: str, session_id: str, position: int | None, former: Mapping[str, Place]) -> Place:
    """Where a turn goes: to the caller's position, to its former place in this session, or to the end.

    `former` has the places of replaced turns by id.
    """
    if position is not None:
        return Place(session_id, position, memory_id)
    place = former.get(memory_id)
    return place if place and place.session_id == session_id else Place(session_id, END, memory_id)


def assign_places(arriving: Iterable[Turn], former: Iterable[Place], around: Iterable[Turn]) -> list[Turn]:
    """Assign places in the caller's order; an appended turn gets the session's greatest place plus one.

    `arriving` have their destinations as places; `former` are the places of replaced turns; `around` has the stored
    turns around all destinations, including the last turn of a session appended to.
    """
    greatest: dict[str, int] = {}
    for place in (*former, *(turn.place for turn in around)):
        greatest[place.session_id] = max(place.place, greatest.get(place.session_id, -1))
    turns = []
    for turn in arriving:
        place, last = turn.place, greatest.get(turn.place.session_id, -1)
        if place.place == END:
            place = place._replace(place=last + 1)
        greatest[place.session_id] = max(place.place, last)
        turns.append(replace(turn, place=place))
    return turns


def arrange(around: Sequence[Turn], added: Sequence[Turn], gone: Collection[Place]) -> Arrangement:
    """Link new turns with stored ones, close the gaps of deleted ones, and compute context vectors.

    `around` are the remaining stored turns, two on each side of every place in `added` and `gone`, and perhaps others
    of the same sessions.
    """
    stored = {turn.doc: turn for turn in around}
    turns = stored | {turn.doc: turn for turn in added}
    linked = turns | _relinked(turns.values(), {turn.doc for turn in added}, gone)
    changed = [doc for doc in linked if doc not in stored or _context(doc, linked) != _context(doc, stored)]
    return Arrangement(
        added=[linked[turn.doc] for turn in added],
        relinked=[turn for doc, turn in linked.items() if doc in stored and turn is not stored[doc]],
        vectors=dict(zip(changed, _vectors(changed, linked), strict=True)),
    )


def _relinked(turns: Iterable[Turn], added: Collection[int], gone: Collection[Place]) -> dict[int, Turn]:
    """The turns next to a new one or a gap, with their new neighbours.

    Two stored turns with no change between them may be far apart, so they keep their links.
    """
    joined: dict[int, Turn] = {}
    steps = [*((turn.place, turn) for turn in turns), *((place, None) for place in gone)]
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
    """The two turns blended into a turn's vector.

    A changed text gets a new ordinal, so equal contexts have equal vectors. A chunk's vector has none: its title has
    its headings, and blending in neighbours makes it harder to find (docs/decisions/0016-documents.md).
    """
    if turns[doc].place.session_id.startswith(DOCUMENT):
        return None, None
    previous = turns[doc].previous
    before = turns.get(previous) if previous is not None else None
    return previous, before.previous if before else None


def _vectors(docs: Sequence[int], turns: Mapping[int, Turn]) -> NDArray[np.float32]:
    """Context vectors of turns whose preceding turns are in `turns`, shape (docs, dimensions)."""
    if not docs:
        return np.empty((0, 0), np.float32)
    zeros = np.zeros_like(turns[docs[0]].text_vector)
    contexts = [(doc, *_context(doc, turns)) for doc in docs]
    rows = [[zeros if doc is None else turns[doc].text_vector for doc in context] for context in contexts]
    return context_embedding(*np.asarray(rows, np.float32).swapaxes(0, 1))


PREVIOUS_SHARE = 0.3
"""Weight of the previous turn, relative to 1 for the turn's own vector."""

BEFORE_PREVIOUS_SHARE = 0.2
"""Weight of the turn before that. The two weights must sum to less than 1, so that no sum vanishes."""


def context_embedding(
    own: NDArray[np.float32], previous: NDArray[np.float32], before_previous: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Vectors of turns in context: unit(own + PREVIOUS_SHARE previous + BEFORE_PREVIOUS_SHARE before_previous).

    Only preceding turns count, so appending a turn changes no stored vector. All are unit vectors of one shape,
    (dimensions,) or (turns, dimensions), or zeros for a turn that does not exist; the first turn keeps its own.

    >>> print(context_embedding(np.float32([0, 1]), np.float32([1, 0]), np.float32([0, 0])).round(2))
    [0.29 0.96]
    """
    total = own + np.float32(PREVIOUS_SHARE) * previous + np.float32(BEFORE_PREVIOUS_SHARE) * before_previous
    return np.asarray(total / np.linalg.norm(total, axis=-1, keepdims=True), np.float32)
