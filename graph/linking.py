"""Which entities of the graph a query speaks of: by exact name, by alias, by part of a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any, Literal, LiteralString, NamedTuple

from psycopg import AsyncConnection

from graph.arrays import array_text
from graph.extraction import ExtractedMention, extract
from graph.names import entity_id, normalize, singular
from graph.stopwords import STOP_WORDS

MAX_SEEDS = 8
MAX_QUERY_WORDS = 64
"""Words of the query that are looked at; longer queries are pasted text, not questions."""

MAX_NAME_WORDS = 6
MENTIONS_CAP = 256
"""Mentions are counted up to here: beyond it an entity is a hub, whatever its size."""

COVERED_SHARE = 0.1
"""What is left of the score of a name that lies inside a longer one that was found."""

SIMILAR_SHARE = 0.5
ALIAS_SHARE = 0.95
MIN_COVERAGE = 0.5
MIN_PREFIX_CHARS = 3

_UNIT_SEPARATOR = "\x1f"  # no key holds it; one text is adapted many times faster than a list

_ARTICLES = frozenset({"a", "an", "the"})

How = Literal["exact", "alias", "similar"]


@dataclass(frozen=True, slots=True)
class Seed:
    """An entity that the query speaks of.

    Attributes:
        entity, name, key: which one.
        score: how much the query is about it, in (0, 1]; the best has 1.
        how: by what it was found.
        mentions: memories that mention it, counted up to 256.
    """

    entity: int
    name: str
    key: str
    score: float
    how: How
    mentions: int


class _Found(NamedTuple):
    entity: int
    key: str
    name: str
    how: How
    matched: list[str]
    mentions: int
    memories: int


_LINK: LiteralString = """
    with word as (
        select q.token, t.entity from unnest(%(tokens)s::text[]) as q (token)
        cross join lateral (
            select entity from entity_token where ns = %(ns)s and token = q.token order by entity limit 64
        ) as t
    ), found as (
        select entity, 'exact' as how, array[key] as matched
        from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[])
        union all
        select entity, 'alias', array_agg(distinct key)
        from entity_alias where ns = %(ns)s and key = any(string_to_array(%(keys)s, chr(31))) group by entity
        union all
        (select entity, 'similar', array_agg(token) from word
         where entity <> all(%(entities)s::bigint[]) group by entity order by count(*) desc, entity limit 16)
    )
    select e.entity, e.key, e.name, f.how, f.matched,
        (select count(*) from (
            select from mention n where n.ns = %(ns)s and n.entity = f.entity limit %(cap)s) as few)::integer,
        coalesce((select next_doc from namespace where ns = %(ns)s), 0)
    from found f join entity e on e.ns = %(ns)s and e.entity = f.entity
"""
_COMPLETE: LiteralString = """
    select distinct q.prefix, t.token from unnest(%(prefixes)s::text[], %(ends)s::text[]) as q (prefix, after)
    cross join lateral (
        select token from entity_token
        where ns = %(ns)s and token > q.prefix collate "C" and token < q.after collate "C" order by token limit 64
    ) as t
"""


async def link(conn: AsyncConnection[Any], ns: int, query: str) -> list[Seed]:
    """The at most 8 entities that a query is most about, best first, in one round trip or two.

    A score grows with the words of the name and its rarity; a name inside a longer one found
    counts little. Parts of a name count by the share of the name they cover and how few names
    have them. A capitalised word that nothing has is completed ("Mel") if just one word fits.
    """
    mentions = extract(query)
    spans = _spans(query, mentions)
    if not spans:
        return []
    words = list(dict.fromkeys(key for key in spans if " " not in key and key not in STOP_WORDS))
    found = await _look_up(conn, ns, spans, words)
    known = {part for row in found for key in row.matched for part in key.split()}
    unknown = [m.key for m in mentions if m.type == "name" and " " not in m.key and m.key not in known]
    if unknown and (completed := await _complete(conn, ns, unknown)):
        found += [row for row in await _look_up(conn, ns, {}, completed) if row.how == "similar"]
    return _best(spans, found)


def _spans(query: str, mentions: Sequence[ExtractedMention]) -> dict[str, frozenset[int]]:
    """Keys to look up, each with the positions of the query's words that it covers."""
    words = [word for piece in query.split()[:MAX_QUERY_WORDS] for word in normalize(piece).split()][:MAX_QUERY_WORDS]
    bare = [singular(word) for word in words]
    spans: dict[str, frozenset[int]] = {}
    for size in range(min(MAX_NAME_WORDS, len(words)), 0, -1):
        for start in range(len(words) - size + 1):
            end = start + size
            if words[start] not in _ARTICLES and not STOP_WORDS.issuperset(words[start:end]):
                where = frozenset(range(start, end))
                spans.setdefault(" ".join(words[start:end]), where)
                spans.setdefault(" ".join(bare[start:end]), where)
    for mention in mentions:
        if mention.key not in spans:
            parts = set(mention.key.split())
            spans[mention.key] = frozenset(at for at, word in enumerate(words) if word in parts or bare[at] in parts)
    return spans


async def _look_up(
    conn: AsyncConnection[Any], ns: int, spans: dict[str, frozenset[int]], tokens: Sequence[str]
) -> list[_Found]:
    params = {
        "ns": ns,
        "entities": array_text(map(entity_id, spans)),
        "keys": _UNIT_SEPARATOR.join(spans),
        "tokens": list(tokens),
        "cap": MENTIONS_CAP,
    }
    rows = await (await conn.execute(_LINK, params)).fetchall()
    return [_Found(*row) for row in rows]


async def _complete(conn: AsyncConnection[Any], ns: int, words: Sequence[str]) -> list[str]:
    """The one word of a name that each given beginning fits; none where several do."""
    prefixes = [word for word in words if len(word) >= MIN_PREFIX_CHARS]
    params = {"ns": ns, "prefixes": prefixes, "ends": [prefix + "\U0010ffff" for prefix in prefixes]}
    rows = await (await conn.execute(_COMPLETE, params)).fetchall() if prefixes else []
    fits: dict[str, list[str]] = {}
    for prefix, token in rows:
        fits.setdefault(prefix, []).append(token)
    return [tokens[0] for tokens in fits.values() if len(tokens) == 1]


def _best(spans: dict[str, frozenset[int]], found: Sequence[_Found]) -> list[Seed]:
    """Score and cut: longer names first, so that what lies inside them is seen as covered."""
    names_with: dict[str, int] = {}
    for row in found:
        for token in row.matched if row.how == "similar" else ():
            names_with[token] = names_with.get(token, 0) + 1
    covered: set[int] = set()
    seeds: dict[int, Seed] = {}
    for row in sorted(found, key=lambda r: (r.how == "similar", -_words(spans, r), r.entity)):
        if row.mentions == 0:
            continue
        where = _where(spans, row)
        rarity = log(1 + row.memories / row.mentions) / log(1 + max(row.memories, 1)) if row.memories else 1.0
        score = rarity * _words(spans, row) ** 0.5
        if row.how == "similar":
            coverage = len(row.matched) / len(row.key.split())
            if coverage < MIN_COVERAGE and len(row.matched) < 2:
                continue
            score *= SIMILAR_SHARE * coverage / max(1, min(names_with[token] for token in row.matched))
        elif row.how == "alias":
            score *= ALIAS_SHARE
        if where and where <= covered:
            score *= COVERED_SHARE
        if row.how != "similar" and len(where) > 1:
            covered |= where
        if row.entity not in seeds or score > seeds[row.entity].score:
            seeds[row.entity] = Seed(row.entity, row.name, row.key, score, row.how, row.mentions)
    best = sorted(seeds.values(), key=lambda seed: (-seed.score, seed.entity))[:MAX_SEEDS]
    return [replace(seed, score=seed.score / best[0].score) for seed in best if seed.score > 0]


def _where(spans: dict[str, frozenset[int]], row: _Found) -> frozenset[int]:
    return frozenset[int]().union(*(spans.get(key, ()) for key in row.matched))


def _words(spans: dict[str, frozenset[int]], row: _Found) -> int:
    return max(1, len(_where(spans, row)))
