"""How much of a query's terms stands in the memories that the legs found, each on its own."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import native
from retrieval.legs.okapi import K1, Sought

_coverage = native.function(
    "trivet_coverage",
    ctypes.c_int64, native.Array, ctypes.c_int64, native.Array, native.Array, native.Array,
    ctypes.c_double, ctypes.c_double, ctypes.c_double, native.Array,
)  # fmt: skip


class Coverage(NamedTuple):
    """How much of a query stands in each of some memories, float32 of shape (n,) in [0, 1].

    Attributes:
        covered: the share of its idf.
        shared: the share of its terms.
        rarest: the greatest idf of a term in the memory, as a share of the query's greatest that occurs.
    """

    covered: NDArray[np.float32]
    shared: NDArray[np.float32]
    rarest: NDArray[np.float32]


def coverage(sought: Sought | None, docs: NDArray[np.int64]) -> Coverage:
    """How much of a query stands in memories; nothing of one that looked for no terms.

    Args:
        sought: what the query looks for.
        docs: ordinals, contiguous.
    """
    if sought is None or sought.query is None or not sought.query.terms:
        return Coverage(*np.zeros((3, len(docs)), np.float32))
    terms = sought.query.terms
    lists = [np.ascontiguousarray(term.postings.docs, np.int32) for term in terms]
    places = np.array([native.at(each) for each in lists], np.int64)
    sizes = np.array([each.size for each in lists], np.int64)
    idf = np.array([term.idf for term in terms], np.float64)
    found = np.empty((3, len(docs)), np.float32)
    _coverage(
        len(docs), native.at(docs), len(terms), native.at(places), native.at(sizes), native.at(idf),
        K1 + 1, sought.attainable, sought.terms, native.at(found),
    )  # fmt: skip
    return Coverage(*found)
