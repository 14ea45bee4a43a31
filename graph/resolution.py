"""Decides which of the entities found for a query it means, with a score. Prefers precision to recall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import log
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.spellings import HONORIFICS, Spellings, is_acronym
from graph.stopwords import FORMAL_NAMES

MAX_SEEDS = 8
MENTIONS_CAP = 256
"""Cap of mention counts: an entity beyond it is a hub, whatever its size."""

COVERED_SHARE = 0.1
"""Factor for a name inside a longer name that was found."""

SHARES = {"exact": 1.0, "spelling": 0.95, "alias": 0.95, "acronym": 0.9, "nickname": 0.8, "prefix": 0.5}
"""Confidence of a whole-name match, by the kind of match."""

SIMILAR_SHARE = 0.5
ONLY_BEARER_SHARE = 0.7
"""Factor for a name that has a word of the query which no other name has."""

MIN_COVERAGE = 0.5

_NO_POSITIONS: frozenset[int] = frozenset()

How = Literal["exact", "spelling", "alias", "nickname", "acronym", "similar"]


class Seed(NamedTuple):
    """An entity that the query is about.

    Attributes:
        entity, name, key: its id, display name and key.
        score: how much the query is about it, in (0, 1]; the best has 1.
        how: the kind of match; "similar" is a match of part of the name.
        mentions: number of memories that mention it, at most 256.
    """

    entity: int
    name: str
    key: str
    score: float
    how: How
    mentions: int


class EntityCandidate(NamedTuple):
    """An entity found by a lookup.

    Attributes:
        is_name: whether it is a proper name, and not of `TOKENIZED_TYPES`.
        how: the lookup: exact, alias, similar, rival, prefix or acronym.
        matched: the keys or words that matched.
        bearers: number of names with the rarest of these words, at most 64; 0 if not matched by words.
    """

    entity: int
    key: str
    name: str
    is_name: bool
    how: str
    matched: list[str]
    bearers: int


class _Meant(NamedTuple):
    row: EntityCandidate
    how: How
    share: float
    where: frozenset[int]


def resolve(
    spelled: Spellings,
    found: Sequence[EntityCandidate],
    mentions_of: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    memories: int,
) -> list[Seed]:
    """Score the found entities that the query can mean, and keep the best 8.

    Longer names are placed first, so that names inside them are recognised as covered. The score grows with the
    number of words of the name and with its rarity among the namespace's memories. `mentions_of` returns how many of
    them mention each entity, at most `MENTIONS_CAP`; entities without mentions are dropped.
    """
    meant = list(_meant(spelled, found))
    counts = mentions_of(np.array([each.row.entity for each in meant], np.int64)).tolist()
    known = [pair for pair in zip(meant, counts, strict=True) if pair[1]]
    known.sort(key=lambda pair: (pair[0].how == "similar", -len(pair[0].where), pair[0].row.entity))
    covered: set[int] = set()
    whole: set[frozenset[int]] = set()
    best: dict[int, tuple[float, _Meant, int]] = {}
    for each, mentions in known:
        row, how, share, where = each
        rarity = log(1 + memories / mentions) / log(1 + memories) if memories else 1.0
        score = share * rarity * max(1, len(where)) ** 0.5
        if where and where <= covered and where not in whole:
            score *= COVERED_SHARE
        if how != "similar" and len(where) > 1:
            covered |= where
            whole.add(where)
        if row.entity not in best or score > best[row.entity][0]:
            best[row.entity] = score, each, mentions
    ranked = sorted([(-score, entity) for entity, (score, _, _) in best.items() if score > 0])[:MAX_SEEDS]
    seeds = []
    for less, entity in ranked:
        _, (row, how, _, _), mentions = best[entity]
        seeds.append(Seed(entity, row.name, row.key, less / ranked[0][0], how, mentions))
    return seeds


def acronyms_of(spelled: Spellings, found: Sequence[EntityCandidate]) -> list[str]:
    """The acronyms in the query whose expansions must be looked up."""
    known = [row.key for row in found if row.how == "exact" and _means(spelled, row.key) == "acronym" and _is_loud(row)]
    return list(dict.fromkeys((*spelled.acronyms, *known)))[:2]


def _meant(spelled: Spellings, found: Sequence[EntityCandidate]) -> Iterator[_Meant]:
    people = [row.key for row in found if row.how in ("exact", "rival", "similar") and row.is_name]
    present = Counter([key.partition(" ")[0] for key in people])
    expansions: dict[str, set[str]] = {}
    bearers: dict[str, int] = {}
    for row in found:
        if row.how == "acronym" and is_acronym(row.matched[0], row.key):
            expansions.setdefault(row.matched[0], set()).add(row.key)
        for word in row.matched if row.how == "similar" else ():
            bearers[word] = bearers.get(word, 0) + 1
    for row in found:
        places = [spelled.spans.get(key, _NO_POSITIONS) for key in row.matched]
        where = places[0] if len(places) == 1 else _NO_POSITIONS.union(*places)
        if row.how == "exact":
            if row.key in spelled.inner and not row.is_name:
                continue
            how: How = _means(spelled, row.key) or "exact"
            if how == "nickname" and not _is_short_for(spelled, row, present):
                continue
            if how == "acronym" and not (
                _is_loud(row) and expansions.get(row.key, set()) <= {spelled.variants[row.key].of}
            ):
                continue
            yield _Meant(row, how, SHARES[how], where)
        elif row.how == "alias":
            if any(_means(spelled, key) != "acronym" for key in row.matched):
                yield _Meant(row, "alias", SHARES["alias"], where)
        elif row.how == "acronym":
            if row.matched[0] in spelled.acronyms and expansions.get(row.matched[0]) == {row.key}:
                yield _Meant(row, "acronym", SHARES["acronym"], where)
        elif row.how == "prefix":
            yield _Meant(row, "similar", SHARES["prefix"] / len(row.key.split()), where)
        elif row.how == "rival":
            if nickname := _only_bearer(spelled, row, present):
                yield _Meant(row, "similar", SHARES["nickname"] * ONLY_BEARER_SHARE, spelled.spans[nickname])
        elif share := _similar_share(spelled, row, bearers):
            yield _Meant(row, "similar", share, where)


def _means(spelled: Spellings, key: str) -> Literal["spelling", "nickname", "acronym"] | None:
    variant = spelled.variants.get(key)
    return variant.means if variant else None


def _is_loud(row: EntityCandidate) -> bool:
    return row.is_name and row.name.isupper()


def _is_short_for(spelled: Spellings, row: EntityCandidate, present: Counter[str]) -> bool:
    """Whether a nickname and a full name are the same person: no other name here has the nickname."""
    if not row.is_name:
        return False
    if " " in row.key:
        return True
    said = spelled.variants[row.key].of
    if row.key in FORMAL_NAMES.get(said, ()):
        return present.keys() & FORMAL_NAMES[said] == {row.key}
    return present.keys() & FORMAL_NAMES[row.key] <= {said}


def _only_bearer(spelled: Spellings, row: EntityCandidate, present: Counter[str]) -> str | None:
    """The nickname in the query that can only mean the given name of `row`."""
    given = row.key.partition(" ")[0]
    if present[given] > 1:
        return None
    said = (of for _, of in spelled.variants.values())
    return next((of for of in said if present.keys() & FORMAL_NAMES.get(of, ()) == {given}), None)


def _similar_share(spelled: Spellings, row: EntityCandidate, bearers: dict[str, int]) -> float:
    """The share of the name's words that match, weighted by how few names have them."""
    parts = row.key.split()
    if not HONORIFICS.isdisjoint(parts):
        parts = [part for part in parts if part not in HONORIFICS] or parts
    coverage = min(1.0, len(row.matched) / len(parts))
    if coverage < MIN_COVERAGE and len(row.matched) < 2:
        return 0.0
    if row.bearers == 1 and len(parts) <= 3 and spelled.alone.issuperset(row.matched):
        return ONLY_BEARER_SHARE
    return SIMILAR_SHARE * coverage / max(1, min(bearers[word] for word in row.matched))
