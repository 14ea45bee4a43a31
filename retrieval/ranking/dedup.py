"""Memories that say the same thing: exact and near duplicates within one ranking.

Near duplicates have a Jaccard similarity of at least `threshold` between their sets of three-word shingles (Broder
1997, doi:10.1109/SEQUEN.1997.666900). A C kernel marks the texts that may have a duplicate and misses none; only these,
usually few, are compared.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from itertools import compress, islice
from typing import Protocol

import msgspec

import native
from retrieval.text.normalized_text import NormalizedText, comparable, contradicts, wording
from retrieval.types.memory import Kind

Shingle = tuple[str, str, str]
"""Three consecutive words."""

MIN_WORDS = 5
"""Shorter texts are only checked for exact duplicates."""

MAX_WORDS = 600
"""Longer texts are only checked for exact duplicates: comparing their shingles costs too much."""

MAX_COMPARED = 32
"""Most survivors that one text is compared with; only adversarial texts share a shingle with more."""

THRESHOLD = 0.85
"""Least Jaccard similarity of near duplicates: docs/decisions/0005-near-duplicates.md."""

_mark_alike = native.function("trivet_alike", "PqqqqdP", "q")


class _Comparable(Protocol):
    """A memory to compare; a title is that of its document or chat."""

    @property
    def id(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def speaker(self) -> str | None: ...

    @property
    def title(self) -> str | None: ...

    @property
    def kind(self) -> Kind: ...


class _Survivor(msgspec.Struct):
    """The best ranked memory of a group of duplicates, with the ids of all of them, its own first."""

    ids: list[str]
    speaker: str | None
    title: str | None
    wording: NormalizedText
    shingles: frozenset[Shingle]


def deduplicate(candidates: Sequence[_Comparable], *, threshold: float = THRESHOLD) -> list[list[str]]:
    """Group the ids of duplicates, in the order given; the best ranked of each group survives and comes first.

    Exact duplicates are equal after NFKC, case folding and collapsing whitespace and punctuation (texts
    longer than `MAX_SQUEEZED` are compared as they are). Texts that differ in a number, a negation, a name
    or in being a question are never duplicates, nor are texts of different speakers or, except for
    messages, of different titles. Candidates are best first, with unique ids.

    `threshold` is the least Jaccard similarity of near duplicates; 1 still finds exact ones. Raises ValueError if it is
    outside (0, 1].

    >>> from types import SimpleNamespace as Said
    >>> said = {"a": "I like tea.", "b": "i like  TEA"}
    >>> deduplicate([Said(id=id, text=text, speaker=None, title=None, kind="memory") for id, text in said.items()])
    [['a', 'b']]
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold is {threshold}, must be in (0, 1]")
    marks = _alike(candidates, threshold)
    groups = {each.ids[0]: each.ids for each in _survivors(compress(candidates, marks), threshold)}
    marked = zip(candidates, marks, strict=True)
    return [groups.get(each.id, [each.id]) for each, mark in marked if not mark or each.id in groups]


def _alike(candidates: Sequence[_Comparable], threshold: float) -> bytes:
    """One byte per candidate: 1 if it may be a duplicate of another, else 0."""
    if len(candidates) < 2:
        return bytes(len(candidates))
    texts = b"\xff".join([comparable(each.text, each.speaker) for each in candidates])
    marks = ctypes.create_string_buffer(len(candidates))
    _mark_alike(texts, len(texts), len(candidates), MIN_WORDS, MAX_WORDS, threshold, marks)
    return marks.raw


def _survivors(candidates: Iterable[_Comparable], threshold: float) -> list[_Survivor]:
    """The best ranked memory of each group of duplicates, with the others of the group."""
    survivors: list[_Survivor] = []
    by_words: dict[tuple[str, ...], list[_Survivor]] = {}
    seen: set[Shingle] = set()
    for candidate in candidates:
        normalized = wording(candidate.text, candidate.speaker)
        same = (each for each in by_words.get(normalized.words, ()) if each.wording == normalized)
        found = next((each for each in same if _same_origin(each, candidate)), None)
        shingles: frozenset[Shingle] = frozenset()
        if found is None:
            shingles = _shingles(normalized.words)
            if not seen.isdisjoint(shingles):
                found = _near(candidate, normalized, shingles, survivors, threshold)
        if found is not None:
            found.ids.append(candidate.id)
            found.speaker = found.speaker or candidate.speaker
            found.title = found.title or _title(candidate)
            continue
        survivor = _Survivor([candidate.id], candidate.speaker, _title(candidate), normalized, shingles)
        survivors.append(survivor)
        by_words.setdefault(normalized.words, []).append(survivor)
        seen |= shingles
    return survivors


def _same_origin(survivor: _Survivor, candidate: _Comparable) -> bool:
    """Whether speaker and title are compatible; a group without a speaker or title adopts its first duplicate's."""
    return _may_be(survivor.speaker, candidate.speaker) and _may_be(survivor.title, _title(candidate))


def _title(candidate: _Comparable) -> str | None:
    """The title, which separates equal texts; None for a message, since a chat's title says nothing about a turn."""
    return None if candidate.kind == "message" else candidate.title


def _may_be(one: str | None, other: str | None) -> bool:
    return not one or not other or one == other


def _near(
    candidate: _Comparable,
    normalized: NormalizedText,
    shingles: frozenset[Shingle],
    survivors: Sequence[_Survivor],
    threshold: float,
) -> _Survivor | None:
    """The best-ranked survivor that is a near duplicate."""
    sharing = (survivor for survivor in survivors if not survivor.shingles.isdisjoint(shingles))
    for survivor in islice(sharing, MAX_COMPARED):
        if (
            _same_origin(survivor, candidate)
            and _jaccard(shingles, survivor.shingles) >= threshold
            and not contradicts(normalized, survivor.wording)
        ):
            return survivor
    return None


def _shingles(words: tuple[str, ...]) -> frozenset[Shingle]:
    if not MIN_WORDS <= len(words) <= MAX_WORDS:
        return frozenset()
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def _jaccard(one: frozenset[Shingle], other: frozenset[Shingle]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)
