"""An index's vectors with 12 bits per component, and nearest-neighbour search."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from native.worker_pool import WorkerPool
from retrieval.index.quantized_vectors import QuantizedVectors

OFF = 1.5e-4
"""Maximum error of a cosine; components are off by up to 1/2047 of the greatest."""


def unit(count: int, seed: int) -> NDArray[np.float32]:
    """Unit vectors as a database of half floats has them."""
    vectors = np.random.default_rng(seed).normal(size=(count, 384))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float16).astype(np.float32)


def kept(ordinals: int, docs: list[int], vectors: NDArray[np.float32]) -> QuantizedVectors:
    """Those vectors, the last memory being a turn whose own one is the first's."""
    quantised = QuantizedVectors(ordinals)
    quantised.put(np.array(docs), vectors, np.array(docs[-1:]), vectors[:1], version=0)
    return quantised


def by_upper_bits(vectors: NDArray[np.float32]) -> NDArray[np.floating[Any]]:
    """The value of the upper 8 of the 12 bits, with the mean of the others."""
    units = np.abs(vectors).max(axis=1, keepdims=True) / 2_047
    upper = np.floor(np.rint(rounded(vectors) / units) / 16)
    coarse: NDArray[np.floating[Any]] = units * (16 * upper + 7.5)
    return coarse


def of(quantised: QuantizedVectors, docs: list[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The stored and the own vectors."""
    stored, own = np.empty((2, len(docs), 384), np.float32)
    quantised.read(np.array(docs), stored, own)
    return stored, own


def rounded(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors as the index has them."""
    docs = [*range(len(vectors))]
    return of(kept(len(docs), docs, vectors), docs)[0]


def test_what_was_put_comes_back() -> None:
    """Ordinals that come later have room too."""
    docs, vectors = [3, 7, 1_009], unit(3, 1)
    stored, own = of(kept(1_000, docs, vectors), docs)
    np.testing.assert_allclose(stored, vectors, atol=1e-4)
    np.testing.assert_allclose(own, vectors[[0, 1, 0]], atol=1e-4)
    assert rounded(vectors).tobytes() == stored.tobytes()


def test_turns_that_are_put_again_take_no_more_room() -> None:
    """For a memory that is no longer a turn, only the stored vector counts."""
    docs, vectors = [1, 3, 5], unit(6, 1)
    quantised = kept(10, docs, vectors[:3])
    room = quantised.nbytes
    for version in range(1, 50):
        quantised.remove(np.array(docs))
        quantised.put(np.array(docs), vectors[:3], np.array([3, 5]), vectors[3:5], version=version)
    assert quantised.nbytes <= room + 1_000
    stored, own = of(quantised, docs)
    np.testing.assert_allclose(own, vectors[[0, 3, 4]], atol=1e-4)
    quantised.put(np.array([3]), vectors[5:], np.array([], np.int64), vectors[:0], version=50)
    stored, own = of(quantised, [3, 5])
    np.testing.assert_allclose(stored, vectors[[5, 2]], atol=1e-4)
    np.testing.assert_allclose(own, vectors[[5, 4]], atol=1e-4)


async def test_a_vector_of_zeros_stays_one() -> None:
    quantised = kept(1, [0], np.zeros((1, 384), np.float32))
    assert not of(quantised, [0])[0].any()
    docs, cosines = await quantised.nearest(np.ones(1, np.bool_), unit(1, 5)[0], 3, breadth=1)
    assert (docs.tolist(), cosines.tolist()) == ([0], [0.0])


async def test_vectors_of_another_length_and_too_little_room_are_refused() -> None:
    with pytest.raises(ValueError, match="384"):
        kept(3, [0, 1], unit(2, 1)[:, :100])
    with pytest.raises(ValueError, match="query of 384"):
        await kept(2, [0, 1], unit(2, 1)).nearest(np.ones(2, np.bool_), np.ones(100, np.float32), 1, breadth=1)
    room = np.empty((1, 384), np.float32)
    with pytest.raises(ValueError, match="no room for 2 vectors"):
        QuantizedVectors(3).read(np.array([0, 1]), room, room)


def test_memories_that_are_not_here_are_passed_over() -> None:
    """Unknown, forgotten, or of ordinals that nothing was kept for; the others stand together."""
    vectors = unit(3, 1)
    quantised = kept(5, [1, 2, 4], vectors)
    quantised.remove(np.array([2]))
    stored, own = np.zeros((2, 5, 384), np.float32)
    is_here = quantised.read(np.array([1, 2, 9, -1, 4]), stored, own)
    assert is_here.tolist() == [True, False, False, False, True]
    assert stored[:2].tobytes() == rounded(vectors[[0, 2]]).tobytes()
    assert own[:2].tobytes() == rounded(vectors[[0, 0]]).tobytes()


@pytest.mark.parametrize("dimensions", [2, 64, 100, 384, 1_536, 4_000])
async def test_vectors_of_any_even_length(dimensions: int) -> None:
    """Equal components give the greatest possible product; the query has others of both signs."""
    rng = np.random.default_rng(dimensions)
    vectors = rng.normal(size=(50, dimensions)).astype(np.float32)
    vectors[0], vectors[1], query = 1, -1, vectors[2] + 1
    quantised, docs, none = QuantizedVectors(50, dimensions), np.arange(50), np.empty(0, np.int64)
    quantised.put(docs, vectors, none, vectors[:0], version=0)
    as_kept, own = np.empty((2, 50, dimensions), np.float32)
    quantised.read(docs, as_kept, own)
    np.testing.assert_allclose(as_kept, vectors, atol=np.abs(vectors).max() / 4_000)
    for asked in (query, vectors[0], vectors[1]):
        found, products = await quantised.nearest(np.ones(50, np.bool_), asked, 50, breadth=50)
        np.testing.assert_allclose(products, as_kept[found] @ asked, rtol=1e-4, atol=1e-4)
        assert (np.diff(products) <= 0).all()
        first = (await quantised.nearest(np.ones(50, np.bool_), asked, 1, breadth=50))[0]
        assert first == found[0]
        one, other = asked > 0, vectors > 0
        few, _ = await quantised.nearest(np.ones(50, np.bool_), asked, 20, breadth=20)
        assert set(few.tolist()) == set(np.argsort((one != other).sum(axis=1), kind="stable")[:20].tolist())


@given(
    seed=st.integers(0, 1_000),
    size=st.integers(1, 300),
    share=st.sampled_from([0.0, 0.02, 0.5, 1.0]),
    count=st.integers(1, 40),
)
@example(seed=553, size=266, share=1.0, count=28)
async def test_with_enough_breadth_the_upper_bits_choose(seed: int, size: int, share: float, count: int) -> None:
    """As many as exist, best first, only those in the mask, with their cosines."""
    rng, vectors, query = np.random.default_rng(seed), unit(size, seed), unit(1, seed + 5_000)[0]
    among = rng.random(size) < share
    docs, cosines = await kept(size, list(range(size)), vectors).nearest(among, query, count, breadth=size)
    assert len(docs) == min(count, np.count_nonzero(among)) == len(set(docs.tolist()))
    assert among[docs].all()
    assert (np.diff(cosines) <= 0).all()
    np.testing.assert_allclose(cosines, (vectors @ query)[docs], atol=OFF)
    others = np.setdiff1d(np.flatnonzero(among), docs)
    coarse = by_upper_bits(vectors) @ query
    # The query is rounded as well, to half of 1/32767 of its greatest component.
    off = np.abs(vectors).sum(axis=1).max() * np.abs(query).max() / 32_767
    assert coarse[others].max(initial=-1) <= coarse[docs].min(initial=1) + off


@pytest.mark.parametrize("of_the_query", [False, True])
async def test_of_equal_vectors_the_first_are_taken(of_the_query: bool) -> None:
    vector = unit(1, 1)
    quantised = kept(60, list(range(60)), np.repeat(vector, 60, axis=0))
    query = vector[0] if of_the_query else unit(1, 2)[0]
    docs, cosines = await quantised.nearest(np.ones(60, np.bool_), query, 5, breadth=20)
    assert docs.tolist() == [0, 1, 2, 3, 4]
    assert len(set(cosines.tolist())) == 1


async def test_a_narrow_search_finds_nearly_all() -> None:
    vectors = unit(4_000, 2)
    quantised = kept(4_000, list(range(4_000)), vectors)
    found = 0
    for at in range(50):
        query = vectors[at] + 0.8 * vectors[at + 100]
        docs, _ = await quantised.nearest(np.ones(4_000, np.bool_), query, 10, breadth=1_000)
        found += len({*docs.tolist()} & {*np.argsort(-(vectors @ query))[:10].tolist()})
    assert found >= 0.9 * 500


async def test_a_worker_pool_finds_in_parts_what_one_thread_finds() -> None:
    """Many concurrent searches among more rows than a part has, against signs counted one by one."""
    size = 70_000
    vectors = np.repeat(unit(size // 7, 3), 7, axis=0) * np.random.default_rng(3).choice([0.9, 1.0], size)[:, None]
    vectors = vectors.astype(np.float32)
    quantised = kept(size, list(range(size)), vectors)
    masks = [np.random.default_rng(at).random(size) < share for at, share in enumerate([0.0, 0.001, 0.3, 0.9, 1.0])]
    queries = unit(4, 4)
    with closing(WorkerPool(3)) as workers:
        asked = [(mask, query, breadth) for mask in masks for query in queries for breadth in (40, 3_000)]
        answers = await asyncio.gather(
            *(quantised.nearest(mask, query, 20, breadth=breadth, workers=workers) for mask, query, breadth in asked)
        )
    for (mask, query, breadth), (docs, cosines) in zip(asked, answers, strict=True):
        differing = ((vectors > 0) != (query > 0)).sum(axis=1)
        eligible = np.flatnonzero(mask)
        chosen = eligible[np.argsort(differing[eligible], kind="stable")[:breadth]]
        assert set(docs.tolist()) <= set(chosen.tolist())
        assert len(docs) == min(20, len(chosen))
        exact = vectors[chosen] @ query
        np.testing.assert_allclose(cosines, np.sort(exact)[::-1][: len(docs)], atol=1e-3)
        alone = await quantised.nearest(mask, query, 20, breadth=breadth)
        assert [docs.tolist(), cosines.tolist()] == [each.tolist() for each in alone]


async def test_what_is_forgotten_is_not_known_and_nothing_older_is_kept() -> None:
    docs, vectors = np.array([1, 2]), unit(2, 3)
    none = np.empty(0, np.int64), np.empty((0, 384), np.float32)
    quantised = QuantizedVectors(10)
    before = quantised.version
    quantised.remove(np.array([2]))
    quantised.put(docs, vectors, *none, version=before)
    assert quantised.knows(docs).tolist() == [True, False]
    assert quantised.count == 1
    quantised.put(docs, vectors, *none, version=quantised.version)
    assert quantised.count == 2
    quantised.remove(np.array([2, 9]))
    assert quantised.knows(docs).tolist() == [True, False]
    assert quantised.count == 1
    mask = np.array([False, True, True, False, True])
    assert quantised.eligible_rows(mask).missing.tolist() == [2, 4]
    assert (await quantised.nearest(mask, vectors[0], 5, breadth=5))[0].tolist() == [1]


async def test_a_mask_longer_than_what_was_put() -> None:
    quantised = kept(2, [0, 1], unit(2, 4))
    mask = np.ones(9, np.bool_)
    assert quantised.eligible_rows(mask).missing.tolist() == [2, 3, 4, 5, 6, 7, 8]
    assert sorted((await quantised.nearest(mask, unit(1, 4)[0], 9, breadth=9))[0].tolist()) == [0, 1]
