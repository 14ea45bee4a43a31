"""Vectors that a mirror keeps: as they are stored, or in a byte per component."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval.mirror.quantised import EXACT_UP_TO, Quantised


def unit(count: int, seed: int) -> NDArray[np.float32]:
    """Unit vectors as a database of half floats has them."""
    vectors = np.random.default_rng(seed).normal(size=(count, 384))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float16).astype(np.float32)


def kept(ordinals: int, docs: list[int], vectors: NDArray[np.float32]) -> Quantised:
    """Those vectors, the last memory being a turn whose own one is the first's."""
    quantised = Quantised(ordinals, 384)
    quantised.put(np.array(docs), vectors, np.array(docs[-1:]), vectors[:1], version=0)
    return quantised


@pytest.mark.parametrize(("ordinals", "off"), [(EXACT_UP_TO, 0.0), (EXACT_UP_TO + 1, 2e-3)])
def test_what_was_put_comes_back(ordinals: int, off: float) -> None:
    """Exactly in small namespaces; ordinals that come later have room too."""
    docs, vectors = [3, 7, ordinals + 9], unit(3, 1)
    stored, own = kept(ordinals, docs, vectors).of(np.array(docs))
    np.testing.assert_allclose(stored, vectors, atol=off)
    np.testing.assert_allclose(own, vectors[[0, 1, 0]], atol=off)
    assert Quantised(ordinals, 384).rounded(vectors).tobytes() == stored.tobytes()


def test_a_vector_of_zeros_stays_one() -> None:
    quantised = kept(EXACT_UP_TO + 1, [0], np.zeros((1, 384), np.float32))
    assert not quantised.of(np.array([0]))[0].any()


@pytest.mark.parametrize("ordinals", [1_000, EXACT_UP_TO + 1])
def test_the_likeliest_are_about_the_nearest_and_all_that_are_not_known(ordinals: int) -> None:
    vectors = unit(500, 2)
    query = vectors[17] + 0.5 * vectors[400]
    quantised = kept(ordinals, list(range(500)), vectors)
    nearest = np.argsort(-(vectors @ query))[:10]
    found = quantised.likeliest(np.arange(505), query, 40)
    assert len(found) == 45
    assert set(found.tolist()) >= {*nearest.tolist(), *range(500, 505)}


def test_what_is_forgotten_is_not_known_and_nothing_older_is_kept() -> None:
    docs, vectors = np.array([1, 2]), unit(2, 3)
    none = np.empty(0, np.int64), np.empty((0, 384), np.float32)
    quantised = Quantised(10, 384)
    before = quantised.version
    quantised.forget(np.array([2]))
    quantised.put(docs, vectors, *none, version=before)
    assert not quantised.knows(docs).any()
    quantised.put(docs, vectors, *none, version=quantised.version)
    quantised.forget(np.array([2]))
    assert quantised.knows(docs).tolist() == [True, False]
