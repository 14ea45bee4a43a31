"""What a peer is given, and what it offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Documents:
    """The texts of one namespace as one string each, and their unit vectors of shape (n, dimensions)."""

    ids: Sequence[str]
    texts: Sequence[str]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """One way to search what a peer has indexed.

    Attributes:
        name: of the peer, and of the way where it has several.
        note: what it does, in a phrase.
        search: takes a query's text, its unit vector and how many; gives the best ids, best first, and reads
            their texts too.
    """

    name: str
    note: str
    search: Callable[[str, NDArray[np.float32], int], Sequence[str]]
