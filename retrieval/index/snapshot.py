"""A namespace as a query sees it."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import msgspec
import numpy as np
from numpy.typing import NDArray

from retrieval.index.columns import from_microseconds
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.index.terms import Postings
from retrieval.store.namespaces import Namespace


class CheckedNamespace(msgspec.Struct, frozen=True):
    """A namespace whose index has just been checked.

    Attributes:
        index: the index, which later queries may update.
        now: microseconds since 2000, by the database's clock.
        asked_at: seconds of the local monotonic clock, shortly before `now`.
    """

    namespace: Namespace
    index: NamespaceIndex
    now: int
    asked_at: float


class NamespaceSnapshot(CheckedNamespace, frozen=True):
    """A namespace as of a query.

    Attributes:
        postings: of the query's terms.
        with_metadata: slots of the memories that match the metadata filter; None without such a filter.
    """

    postings: Postings
    with_metadata: NDArray[np.int64] | None

    def time(self) -> datetime:
        """The current time by the database's clock, ahead by at most the duration of the check."""
        return from_microseconds(self.now) + timedelta(seconds=time.monotonic() - self.asked_at)
