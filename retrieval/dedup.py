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

_SHINGLE = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A memory to be compared; who said it counts."""

    id: str
    text: str
    speaker: str | None = None


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
    wording: Wording
    shingles: frozenset[int]
    duplicates: list[str]


def deduplicate(candidates: Sequence[Candidate], *, threshold: float = 0.85) -> list[Kept]:
    """Group duplicates; the best ranked of each group survives, in the order given.

    Exact duplicates are the same after NFKC, case folding and squeezing of whitespace and punctuation.
    Two texts that differ in a number, a negation, a name or in being a question are never duplicates,
    nor are those of two different speakers.

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
        found = next((s for s in exact.get(own, ()) if _same_speaker(s, candidate)), None)
        shingles: frozenset[int] = frozenset()
        if found is None:
            shingles = _shingles(own.words)
            prefix = _prefix(shingles, threshold)
            found = _near(candidate, own, shingles, prefix, prefixes, threshold)
            if found is None:
                survivor = _Survivor(candidate.id, len(survivors), candidate.speaker, own, shingles, [])
                survivors.append(survivor)
                exact.setdefault(own, []).append(survivor)
                for shingle in prefix:
                    prefixes.setdefault(shingle, []).append(survivor)
                continue
        found.duplicates.append(candidate.id)
        found.speaker = found.speaker or candidate.speaker
    return [Kept(id=survivor.id, duplicates=tuple(survivor.duplicates)) for survivor in survivors]


def _same_speaker(survivor: _Survivor, candidate: Candidate) -> bool:
    """Whether one person may have said both; a group without a speaker takes the first one that comes."""
    return not survivor.speaker or not candidate.speaker or survivor.speaker == candidate.speaker


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
            _same_speaker(survivor, candidate)
            and _jaccard(shingles, survivor.shingles) >= threshold
            and not contradicts(own, survivor.wording)
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
