"""The BM25 index against oracles: plain arithmetic over the live texts, and bm25s."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postgres.connection import Connection
from retrieval.legs.bm25_scoring import K1, TermQuery, length_penalty
from retrieval.store.bm25 import compaction
from retrieval.store.pool import Pool
from retrieval.text.analysis import analyze, term_id
from tests.bm25 import append, live_postings, remove
from tests.examples import share_of_examples
from tests.okapi import best

WORDS = [first + second for first in "bcdfgklm" for second in ("ara", "eno", "ilu", "oma", "upe")]
NAMESPACES = itertools.count(1_000)
Texts = dict[int, str]


def plain_bm25(texts: Texts, query: str) -> dict[int, float]:
    """BM25 by its formula, over texts by ordinal."""
    terms = {doc: Counter(analyze(text)) for doc, text in texts.items()}
    average = max(sum(sum(counts.values()) for counts in terms.values()) / len(terms), 1.0)
    b = length_penalty(average)
    scores: dict[int, float] = {}
    for word in set(analyze(query)):
        df = sum(word in counts for counts in terms.values())
        idf = math.log(1 + (len(terms) - df + 0.5) / (df + 0.5))
        for doc, counts in terms.items():
            if tf := counts[word]:
                norm = K1 * (1 - b + b * sum(counts.values()) / average)
                scores[doc] = scores.get(doc, 0.0) + idf * tf * (K1 + 1) / (tf + norm)
    return scores


async def scores(conn: Connection, ns: int, query: str, *, k1: float = K1, b: float | None = None) -> dict[int, float]:
    found = await live_postings(conn, ns, sorted({term_id(term) for term in analyze(query)}))
    return dict(best(TermQuery.from_postings(found, k1=k1, b=b), np.ones(1_000, np.bool_), 1_000))


def random_texts(seed: int, count: int) -> Texts:
    rng = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    return {doc: " ".join(rng.choices(WORDS, weights, k=rng.randint(1, 30))) for doc in range(count)}


@pytest.mark.parametrize("packed", [0, 50, 120])
async def test_scores_equal_the_formula_wherever_the_postings_lie(pool: Pool, packed: int) -> None:
    """Tail, segments or both: the same scores."""
    texts = random_texts(1, 120)
    async with pool.connection() as conn:
        await append(conn, 1, {doc: text for doc, text in texts.items() if doc < packed})
        await compaction.compact(conn, 1)
        await append(conn, 1, {doc: text for doc, text in texts.items() if doc >= packed})
        for query in ("bara", "bara cilu loma", "mupe moma absent", "absent"):
            assert await scores(conn, 1, query) == pytest.approx(plain_bm25(texts, query), rel=1e-9)


@pytest.mark.parametrize(("k1", "b"), [(K1, None), (1.5, 0.75), (0.5, 0.0), (2.0, 1.0)])
async def test_ranking_equals_bm25s(pool: Pool, k1: float, b: float | None) -> None:
    """bm25s (method lucene) leaves out the constant factor k1 + 1; everything else is the same."""
    texts = random_texts(2, 300)
    words = [text.split() for text in texts.values()]
    penalty = length_penalty(sum(map(len, words)) / len(words)) if b is None else b
    oracle = bm25s.BM25(method="lucene", k1=k1, b=penalty, dtype="float64")
    oracle.index(words, show_progress=False)
    async with pool.connection() as conn:
        await append(conn, 1, texts)
        await compaction.compact(conn, 1)
        for query in ("beno cara", "bara bilu mupe", "gara"):
            expected = oracle.get_scores(query.split()) * (k1 + 1)
            found = await scores(conn, 1, query, k1=k1, b=b)
            assert [found.get(doc, 0.0) for doc in texts] == pytest.approx(expected.tolist(), abs=1e-5)


@settings(max_examples=share_of_examples(0.25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_any_history_scores_like_a_fresh_index(pool: Pool, data: st.DataObject) -> None:
    """After appends, deletes and compactions in any order it equals an index of the live texts."""
    async with pool.connection() as conn:
        ns = next(NAMESPACES)
        live: Texts = {}
        number = 0
        for _ in range(data.draw(st.integers(1, 12))):
            action = data.draw(st.sampled_from(["append", "append", "remove", "compact"]))
            if action == "append":
                new = {number + at: data.draw(st.lists(st.sampled_from(WORDS[:8]), max_size=6)) for at in range(3)}
                number += 3
                texts = {doc: " ".join(words) for doc, words in new.items()}
                await append(conn, ns, texts)
                live |= texts
            elif action == "remove" and live:
                gone = data.draw(st.sets(st.sampled_from(sorted(live)), min_size=1))
                await remove(conn, ns, gone)
                live = {doc: text for doc, text in live.items() if doc not in gone}
            else:
                await compaction.compact(conn, ns)
        expected = plain_bm25(live, "bara boma cara") if live else {}
        assert await scores(conn, ns, "bara boma cara") == pytest.approx(expected, rel=1e-9)


async def test_many_segments_become_few(pool: Pool) -> None:
    """Merging keeps the number of segments logarithmic, and the scores."""
    texts = random_texts(3, 130)
    async with pool.connection() as conn:
        for start in range(0, 130, 2):
            await append(conn, 1, {doc: texts[doc] for doc in (start, start + 1)})
            await compaction.compact(conn, 1)
        row = await (await conn.execute("select count(*) from bm25_segment where ns = 1")).fetchone()
        assert row is not None
        assert row[0] < 2 * compaction.TIER_WIDTH
        assert await scores(conn, 1, "bara cupe") == pytest.approx(plain_bm25(texts, "bara cupe"), rel=1e-9)


async def test_deleting_everything_leaves_nothing(pool: Pool) -> None:
    """A namespace whose memories are all gone has no posting after compaction, not even of empty texts."""
    texts = {0: "beno bilu", 1: "", 2: "beno"}
    async with pool.connection() as conn:
        await append(conn, 1, texts)
        await compaction.compact(conn, 1)
        await remove(conn, 1, texts)
        await append(conn, 1, {3: ""})
        await compaction.compact(conn, 1)
        assert await scores(conn, 1, "beno") == {}
        for table in ("bm25_posting", "bm25_tombstone"):
            row = await (await conn.execute(f"select count(*) from {table} where ns = 1")).fetchone()
            assert row == (0,)


async def test_term_frequencies_above_a_byte_are_exact(pool: Pool) -> None:
    """A term that occurs 1,000 times counts 1,000 times."""
    texts = {0: "beno " * 1_000, 1: "beno bilu", 2: "bilu"}
    async with pool.connection() as conn:
        await append(conn, 1, texts)
        await compaction.compact(conn, 1)
        assert await scores(conn, 1, "beno") == pytest.approx(plain_bm25(texts, "beno"), rel=1e-9)
