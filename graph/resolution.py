"""Which of the entities found for a query are meant, and how surely. Precision goes before recall."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import log
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.nicknames import FORMAL_NAMES
from graph.spellings import HONORIFICS, Spellings, is_acronym

MAX_SEEDS = 8
MENTIONS_CAP = 256
"""Mentions are counted up to here: beyond it an entity is a hub, whatever its size."""

COVERED_SHARE = 0.1
"""What is left of the score of a name that lies inside a longer one that was found."""

SHARES = {"exact": 1.0, "spelling": 0.95, "alias": 0.95, "acronym": 0.9, "nickname": 0.8, "prefix": 0.5}
"""How sure a name is that matches whole, by what it was found."""

SIMILAR_SHARE = 0.5
ONLY_BEARER_SHARE = 0.7
"""Of a name of which the query has a part that no other name has."""

MIN_COVERAGE = 0.5
TOKENIZED_TYPES = frozenset({"phrase", "term", "date", "identifier"})
"""Types of found entities that have no name of their own: nobody's nickname, no acronym's expansion."""

_NOWHERE: frozenset[int] = frozenset()

How = Literal["exact", "spelling", "alias", "nickname", "acronym", "similar"]


class Seed(NamedTuple):
    """An entity that the query speaks of.

    Attributes:
        entity, name, key: which one.
        score: how much the query is about it, in (0, 1]; the best has 1.
        how: by what it was found; "similar" is by a part of its name.
        mentions: memories that mention it, counted up to 256.
    """

    entity: int
    name: str
    key: str
    score: float
    how: How
    mentions: int


class Candidate(NamedTuple):
    """An entity that a look-up found.

    Attributes:
        how: the look-up: exact, alias, similar, rival, prefix or acronym.
        matched: the keys or words by which it was found.
        bearers: names that have the rarest of these words, counted up to 64; 0 if it is no word.
    """

    entity: int
    key: str
    name: str
    type: str
    how: str
    matched: list[str]
    bearers: int


class Named(NamedTuple):
    """The ways in which a query may spell names, and the entities that were found by them."""

    spelled: Spellings
    found: Sequence[Candidate]


NOTHING = Named(Spellings(), ())


class _Meant(NamedTuple):
    row: Candidate
    how: How
    share: float
    where: frozenset[int]


def resolve(named: Named, mentions_of: Callable[[NDArray[np.int64]], NDArray[np.int64]], memories: int) -> list[Seed]:
    """Keep what the query can mean, score it, and cut to the best 8.

    Longer names go first, so that what lies inside them is seen as covered. A score grows with
    the words of the name and with its rarity.

    Args:
        named: what was found.
        mentions_of: by how many memories each of some entities is mentioned, counted up to `MENTIONS_CAP`; what
            none mentions is not meant.
        memories: size of the namespace.
    """
    meant = list(_meant(*named))
    counts = mentions_of(np.array([each.row.entity for each in meant], np.int64)).tolist()
    known = sorted((pair for pair in zip(meant, counts, strict=True) if pair[1]), key=_place)
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
    return [_seed(best[entity][1], less / ranked[0][0], best[entity][2]) for less, entity in ranked]


def _place(known: tuple[_Meant, int]) -> tuple[bool, int, int]:
    meant, _ = known
    return meant.how == "similar", -len(meant.where), meant.row.entity


def _seed(meant: _Meant, score: float, mentions: int) -> Seed:
    row = meant.row
    return Seed(row.entity, row.name, row.key, score, meant.how, mentions)


def acronyms_of(spelled: Spellings, found: Sequence[Candidate]) -> list[str]:
    """The acronyms whose expansions in the namespace have to be counted."""
    known = [row.key for row in found if row.how == "exact" and _means(spelled, row.key) == "acronym" and _is_loud(row)]
    return list(dict.fromkeys((*spelled.acronyms, *known)))[:2]


def _meant(spelled: Spellings, found: Sequence[Candidate]) -> Iterator[_Meant]:
    people = [row for row in found if row.how in ("exact", "rival", "similar") and row.type not in TOKENIZED_TYPES]
    present = {row.key.partition(" ")[0] for row in people}
    expansions: dict[str, set[str]] = {}
    bearers: dict[str, int] = {}
    for row in found:
        if row.how == "acronym" and is_acronym(row.matched[0], row.key):
            expansions.setdefault(row.matched[0], set()).add(row.key)
        for word in row.matched if row.how == "similar" else ():
            bearers[word] = bearers.get(word, 0) + 1
    for row in found:
        places = [spelled.spans.get(key, _NOWHERE) for key in row.matched]
        where = places[0] if len(places) == 1 else _NOWHERE.union(*places)
        if row.how == "exact":
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
            if nickname := _only_bearer(spelled, row, people, present):
                yield _Meant(row, "similar", SHARES["nickname"] * ONLY_BEARER_SHARE, spelled.spans[nickname])
        elif share := _similar_share(spelled, row, bearers):
            yield _Meant(row, "similar", share, where)


def _means(spelled: Spellings, key: str) -> Literal["spelling", "nickname", "acronym"] | None:
    variant = spelled.variants.get(key)
    return variant.means if variant else None


def _is_loud(row: Candidate) -> bool:
    return row.type not in TOKENIZED_TYPES and row.name.isupper()


def _is_short_for(spelled: Spellings, row: Candidate, present: set[str]) -> bool:
    """Whether a nickname and a full name are of one person: nobody else here could have the nickname."""
    if row.type in TOKENIZED_TYPES:
        return False
    if " " in row.key:
        return True
    said = spelled.variants[row.key].of
    if row.key in FORMAL_NAMES.get(said, ()):
        return present & FORMAL_NAMES[said] == {row.key}
    return present & FORMAL_NAMES[row.key] <= {said}


def _only_bearer(spelled: Spellings, row: Candidate, people: Sequence[Candidate], present: set[str]) -> str | None:
    """The nickname in the query that the given name of `row` alone can be meant by."""
    given = row.key.partition(" ")[0]
    if row.type in TOKENIZED_TYPES or sum(other.key.partition(" ")[0] == given for other in people) > 1:
        return None
    said = [of for means, of in spelled.variants.values() if means == "nickname" and given in FORMAL_NAMES.get(of, ())]
    return next((of for of in said if present & FORMAL_NAMES[of] == {given}), None)


def _similar_share(spelled: Spellings, row: Candidate, bearers: dict[str, int]) -> float:
    """Parts of a name count by the share of it that they cover and by how few names have them."""
    parts = row.key.split()
    if not HONORIFICS.isdisjoint(parts):
        parts = [part for part in parts if part not in HONORIFICS] or parts
    coverage = min(1.0, len(row.matched) / len(parts))
    if coverage < MIN_COVERAGE and len(row.matched) < 2:
        return 0.0
    if row.bearers == 1 and len(parts) <= 3 and spelled.alone.issuperset(row.matched):
        return ONLY_BEARER_SHARE
    return SIMILAR_SHARE * coverage / max(1, min(bearers[word] for word in row.matched))
