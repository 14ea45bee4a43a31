"""Memories that say the same thing: exact and near duplicates within one ranking.

Near duplicates share at least `threshold` of their three-word shingles (Jaccard; Broder 1997,
doi:10.1109/SEQUEN.1997.666900). Most texts resemble none: a kernel finds those that may, and no others are looked at
closely. So few of the one's shingles may be missing in the other that any one more of them hold one that is not: pairs
are found by those, as in the prefix filter of Chaudhuri, Ganti and Kaushik (ICDE 2006, doi:10.1109/ICDE.2006.9), which
misses none and compares few.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from itertools import compress, islice
from math import ceil
from typing import NamedTuple, Protocol

import msgspec

import native
from retrieval.text.wording import Wording, comparable, contradicts, wording

Shingle = tuple[str, str, str]
"""Three words in a row."""

MIN_WORDS = 5
"""Texts of fewer words are duplicates only when they are the same."""

MAX_WORDS = 600
"""Texts of more words are duplicates only when they are the same: comparing them is not worth its time."""

MAX_COMPARED = 32
"""Most survivors that one text is compared with; more share a shingle only if they are made to."""

THRESHOLD = 0.85
"""Least share of common shingles of near duplicates: docs/decisions/0005-near-duplicates.md."""

_mark_alike = native.function(
    "trivet_alike",
    ctypes.c_char_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_double,
    native.Array,
    result=ctypes.c_int64,
)


class Candidate(Protocol):
    """A memory to be compared; who said it and what it is a part of count."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def text(self) -> str:
        """What it says."""

    @property
    def speaker(self) -> str | None:
        """Who said it."""

    @property
    def title(self) -> str | None:
        """Of what it is a part."""


class Kept(NamedTuple):
    """A surviving memory and the ids of those that it stands for, best ranked first."""

    id: str
    duplicates: tuple[str, ...]


class _Survivor(msgspec.Struct):
    id: str
    speaker: str | None
    title: str | None
    wording: Wording
    shingles: frozenset[Shingle]
    duplicates: list[str]


def deduplicate(candidates: Sequence[Candidate], *, threshold: float = THRESHOLD) -> list[Kept]:
    """Group duplicates; the best ranked of each group survives, in the order given.

    Exact duplicates are the same after NFKC, case folding and squeezing of whitespace and punctuation
    (very long ones as they are written: `wording.MAX_SQUEEZED`). Two texts that differ in a number, a
    negation, a name or in being a question are never duplicates, nor are those of two different speakers
    or under two different titles.

    Args:
        candidates: best first, ids unique.
        threshold: least Jaccard similarity of near duplicates, in (0, 1]; 1 still finds the exact ones.

    Raises:
        ValueError: threshold outside (0, 1].

    >>> from types import SimpleNamespace as Said
    >>> said = {"a": "I like tea.", "b": "i like  TEA"}
    >>> deduplicate([Said(id=id, text=text, speaker=None, title=None) for id, text in said.items()])
    [Kept(id='a', duplicates=('b',))]
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold is {threshold}, must be in (0, 1]")
    marks = _alike(candidates, threshold)
    if not any(marks):
        return [Kept(each.id, ()) for each in candidates]
    stands_for = {each.id: tuple(each.duplicates) for each in _survivors(compress(candidates, marks), threshold)}
    return [
        Kept(each.id, stands_for.get(each.id, ()))
        for each, mark in zip(candidates, marks, strict=True)
        if not mark or each.id in stands_for
    ]


def _alike(candidates: Sequence[Candidate], threshold: float) -> bytes:
    """For each candidate 1 or 0: whether it may be a duplicate of another at all."""
    if len(candidates) < 2:
        return bytes(len(candidates))
    texts = b"\xff".join([comparable(each.text, each.speaker) for each in candidates])
    marks = ctypes.create_string_buffer(len(candidates))
    if _mark_alike(texts, len(texts), len(candidates), MIN_WORDS, MAX_WORDS, threshold, marks) < 0:
        raise MemoryError("no memory to compare texts in")
    return marks.raw


def _survivors(candidates: Iterable[Candidate], threshold: float) -> list[_Survivor]:
    """The best ranked of each group of duplicates, with the others."""
    survivors: list[_Survivor] = []
    said: dict[tuple[str, ...], list[_Survivor]] = {}
    seen: set[Shingle] = set()
    for candidate in candidates:
        own = wording(candidate.text, candidate.speaker)
        found = _same(candidate, own, said[own.words]) if own.words in said else None
        shingles: frozenset[Shingle] = frozenset()
        if found is None:
            shingles = _shingles(own.words)
            few = _few(shingles, threshold)
            if not seen.isdisjoint(few):
                found = _near(candidate, own, shingles, few, survivors, threshold)
        if found is not None:
            found.duplicates.append(candidate.id)
            found.speaker = found.speaker or candidate.speaker
            found.title = found.title or candidate.title
            continue
        survivor = _Survivor(candidate.id, candidate.speaker, candidate.title, own, shingles, [])
        survivors.append(survivor)
        said.setdefault(own.words, []).append(survivor)
        seen |= shingles
    return survivors


def _same_origin(survivor: _Survivor, candidate: Candidate) -> bool:
    """Whether speakers and titles may be the same; a group that lacks one takes the first that comes."""
    return _may_be(survivor.speaker, candidate.speaker) and _may_be(survivor.title, candidate.title)


def _may_be(one: str | None, other: str | None) -> bool:
    return not one or not other or one == other


def _same(candidate: Candidate, own: Wording, survivors: Sequence[_Survivor]) -> _Survivor | None:
    """The best-ranked of the survivors with its words whose text is the same."""
    for survivor in survivors:
        if survivor.wording == own and _same_origin(survivor, candidate):
            return survivor
    return None


def _near(
    candidate: Candidate,
    own: Wording,
    shingles: frozenset[Shingle],
    few: Sequence[Shingle],
    survivors: Sequence[_Survivor],
    threshold: float,
) -> _Survivor | None:
    """The best-ranked survivor whose text is nearly the same."""
    sharing = (survivor for survivor in survivors if not survivor.shingles.isdisjoint(few))
    for survivor in islice(sharing, MAX_COMPARED):
        if (
            _same_origin(survivor, candidate)
            and not contradicts(own, survivor.wording)
            and _jaccard(shingles, survivor.shingles) >= threshold
        ):
            return survivor
    return None


def _shingles(words: tuple[str, ...]) -> frozenset[Shingle]:
    if not MIN_WORDS <= len(words) <= MAX_WORDS:
        return frozenset()
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def _few(shingles: frozenset[Shingle], threshold: float) -> list[Shingle]:
    """Some of the shingles, so many that a set that is similar enough must have one of them."""
    size = len(shingles)
    return list(islice(shingles, size - ceil(threshold * size - 1e-9) + 1)) if shingles else []


def _jaccard(one: frozenset[Shingle], other: frozenset[Shingle]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)
