"""Memories that say the same thing: exact and near duplicates within one ranking.

Near duplicates share at least `threshold` of their three-word shingles (Jaccard; Broder 1997,
doi:10.1109/SEQUEN.1997.666900). Pairs are found by prefix filtering (Chaudhuri, Ganti and Kaushik,
ICDE 2006, doi:10.1109/ICDE.2006.9), which misses none and compares few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from retrieval.text.wording import Wording, contradicts, wording

MIN_WORDS = 5
"""Texts of fewer words are duplicates only when they are the same."""

MAX_WORDS = 600
"""Texts of more words are duplicates only when they are the same: comparing them is not worth its time."""

MAX_COMPARED = 32
"""Most survivors that one text is compared with; more share a shingle only if they are made to."""

THRESHOLD = 0.85
"""Least share of common shingles of near duplicates: docs/decisions/0005-near-duplicates.md."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A memory to be compared; who said it and what it is a part of count."""

    id: str
    text: str
    speaker: str | None = None
    title: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A surviving memory and the ids of those that it stands for, best ranked first."""

    id: str
    duplicates: tuple[str, ...]


@dataclass(slots=True)
class _Survivor:
    id: str
    place: int
    speaker: str | None
    title: str | None
    wording: Wording
    shingles: frozenset[int]
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

    >>> deduplicate([Candidate(id="a", text="I like tea."), Candidate(id="b", text="i like  TEA")])
    [Kept(id='a', duplicates=('b',))]
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold is {threshold}, must be in (0, 1]")
    survivors: list[_Survivor] = []
    exact: dict[Wording, list[_Survivor]] = {}
    prefixes: dict[int, list[_Survivor]] = {}
    for candidate in candidates:
        own = wording(candidate.text, candidate.speaker)
        found = next((s for s in exact.get(own, ()) if _same_origin(s, candidate)), None)
        shingles: frozenset[int] = frozenset()
        if found is None:
            shingles = _shingles(own.words)
            prefix = _prefix(shingles, threshold)
            found = _near(candidate, own, shingles, prefix, prefixes, threshold)
            if found is None:
                survivor = _Survivor(
                    candidate.id, len(survivors), candidate.speaker, candidate.title, own, shingles, []
                )
                survivors.append(survivor)
                exact.setdefault(own, []).append(survivor)
                for shingle in prefix:
                    prefixes.setdefault(shingle, []).append(survivor)
                continue
        found.duplicates.append(candidate.id)
        found.speaker = found.speaker or candidate.speaker
        found.title = found.title or candidate.title
    return [Kept(id=survivor.id, duplicates=tuple(survivor.duplicates)) for survivor in survivors]


def _same_origin(survivor: _Survivor, candidate: Candidate) -> bool:
    """Whether speakers and titles may be the same; a group that lacks one takes the first that comes."""
    pairs = ((survivor.speaker, candidate.speaker), (survivor.title, candidate.title))
    return all(not one or not other or one == other for one, other in pairs)


def _near(
    candidate: Candidate,
    own: Wording,
    shingles: frozenset[int],
    prefix: list[int],
    prefixes: dict[int, list[_Survivor]],
    threshold: float,
) -> _Survivor | None:
    """The best-ranked survivor whose text is nearly the same."""
    similar: dict[int, _Survivor] = {}
    for shingle in prefix:
        for survivor in prefixes.get(shingle, ())[:MAX_COMPARED]:
            similar[survivor.place] = survivor
        if len(similar) >= MAX_COMPARED:
            break
    for _, survivor in sorted(similar.items())[:MAX_COMPARED]:
        if (
            _same_origin(survivor, candidate)
            and not contradicts(own, survivor.wording)
            and _jaccard(shingles, survivor.shingles) >= threshold
        ):
            return survivor
    return None


def _shingles(words: tuple[str, ...]) -> frozenset[int]:
    if not MIN_WORDS <= len(words) <= MAX_WORDS:
        return frozenset()
    return frozenset(map(hash, zip(words, words[1:], words[2:], strict=False)))


def _prefix(shingles: frozenset[int], threshold: float) -> list[int]:
    """The smallest shingles, so many that two sets similar enough must share one of them."""
    return sorted(shingles)[: len(shingles) - ceil(threshold * len(shingles) - 1e-9) + 1] if shingles else []


def _jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)
