"""The interface between the pipeline and its retrievers: a leg's input and output."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
from cachetools import TTLCache
from msgspec.structs import replace
from numpy.typing import NDArray

from retrieval.errors import EmbeddingFailed, ModelFileError, VectorsReplaced
from retrieval.index.namespace_index import IndexState
from retrieval.index.query_vectors import QueryVectors
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.index.strings import StringColumn
from retrieval.legs.bm25_scoring import TermQuery
from retrieval.legs.query_terms import QueryTerms
from retrieval.profiles.profile import Profile
from retrieval.timings import Stopwatch
from retrieval.types.search import Degradation, Leg, SearchOptions, SearchRequest

log = logging.getLogger(__name__)

_logged: TTLCache[str, None] = TTLCache(maxsize=64, ttl=60.0)
"""What `log_once` logged in the last minute."""

T = TypeVar("T")


class SearchView(NamedTuple):
    """The memories one search may see, fixed for all of its legs from the freshness check to the answer.

    A memory that is updated during the search is seen as it was, in its old slot. If each leg took its own view, one
    could miss the new version by looking before the update, and another the old one by looking after it.

    Attributes:
        visible: by slot, whether a memory may be seen at all.
        eligible: by slot, whether it also matches the filters; the same object if there are none.
        state: of the index; while it is referenced, the index keeps the data of these memories.
    """

    visible: NDArray[np.bool_]
    eligible: NDArray[np.bool_]
    state: IndexState

    @classmethod
    def from_request(cls, snapshot: NamespaceSnapshot, request: SearchOptions) -> SearchView:
        """The memories that a request may see; take it before awaiting anything else."""
        index = snapshot.index
        visible, eligible = index.memories.masks(request, now=snapshot.now)
        if (docs := snapshot.with_metadata) is not None:
            matching = np.zeros_like(eligible)
            matching[docs[docs < len(eligible)]] = True
            eligible = eligible & matching
        return cls(visible, eligible, index.state)


class LegQuery(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The query as passed to each leg.

    Attributes:
        query_terms: terms that the index has loaded.
        embedding: awaits the query's unit vector, shape (dimensions,). A leg awaits it only where it
            needs it, and starts without. Raises what the embedder raised.
        fan_out: most memories a leg returns.
        other_rankings: awaits the rankings of the legs that wait for no other leg; without those that
            failed or are late.
        optional_wait_s: how long a leg waits for inputs that it can do without, seconds.
        vectors: memory vectors, shared by the legs, so that each is read once.
    """

    request: SearchRequest
    snapshot: NamespaceSnapshot
    view: SearchView
    query_terms: QueryTerms
    embedding: Callable[[], Awaitable[NDArray[np.float32]]]
    fan_out: int
    vectors: QueryVectors
    profile: Profile
    other_rankings: Callable[[], Awaitable[Mapping[Leg, LegRanking]]]
    optional_wait_s: float = 0.5
    stopwatch: Stopwatch = msgspec.field(default_factory=Stopwatch)


class GraphPath(NamedTuple):
    """How the graph leg reached a memory: names of the entities on the way, and the same as a sentence."""

    names: tuple[str, ...]
    why: str


class Hit(NamedTuple):
    """A memory that a leg returned, for reports.

    Attributes:
        id, doc: its id and its slot.
        score: on the leg's own scale.
        path, why: as in `GraphPath`; empty without one.
    """

    id: str
    doc: int
    score: float
    path: tuple[str, ...] = ()
    why: str | None = None


class LegRanking(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A leg's result as columns, best first (score descending, ties by id ascending), each memory once.

    Attributes:
        docs: slots, shape (n,), int64.
        scores: on the leg's own scale, shape (n,), float64.
        ids: of all memories, by slot; read only for those that are shown.
        terms: the query as weighted terms, if the leg matches terms.
        entity_idfs: of the query's known entities, in [0, 1]: 1 for one that a single memory mentions.
        paths: by slot; set by the graph leg with `explain`.
        matched_terms: by slot, the query's terms that a memory itself contains; set by the BM25 leg with `explain`.
    """

    docs: NDArray[np.int64]
    scores: NDArray[np.float64]
    ids: StringColumn
    details: dict[str, Any] = msgspec.field(default_factory=dict)
    terms: TermQuery | None = None
    entity_idfs: tuple[float, ...] = ()
    paths: Mapping[int, GraphPath] = msgspec.field(default_factory=dict)
    matched_terms: Mapping[int, list[str]] = msgspec.field(default_factory=dict)

    @classmethod
    def best(
        cls, docs: NDArray[np.int64], scores: NDArray[np.float64], ids: StringColumn, *, count: int, **about: Any
    ) -> LegRanking:
        """The best `count` of some memories, which include all ties with the last."""
        if np.count_nonzero(scores[1:] < scores[:-1]) < len(scores) - 1:  # usually already in order, without ties
            order = best_first(docs, scores, ids)
            docs, scores = docs[order], scores[order]
        return cls(docs=docs[:count], scores=scores[:count], ids=ids, **about)

    def __len__(self) -> int:
        return len(self.docs)

    def cut(self, length: int) -> LegRanking:
        """The best `length` hits; the same object if that is all of them."""
        if length >= len(self.docs):
            return self
        return replace(self, docs=self.docs[:length], scores=self.scores[:length])

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The hits with ids and paths, for reports."""
        rows = zip(self.ids.get(self.docs), self.docs.tolist(), self.scores.tolist(), strict=True)
        return tuple(Hit(id_, doc, score, *self.paths.get(doc, ())) for id_, doc, score in rows)


def best_first(docs: NDArray[np.int64], scores: NDArray[np.float64], ids: StringColumn) -> NDArray[np.int64]:
    """The positions of memories ordered by score, descending, ties by id ascending."""
    order: NDArray[np.int64] = (-scores).argsort(kind="stable")
    ordered = scores[order]
    tied = (ordered[1:] == ordered[:-1]).nonzero()[0]
    if tied.size:
        some = slice(tied[0], tied[-1] + 2)  # only these ids are read
        keys = zip((-ordered[some]).tolist(), ids.get(docs[order[some]]), order[some].tolist(), strict=True)
        order[some] = [position for _, _, position in sorted(keys)]
    return order


async def within_deadline(name: str, work: Awaitable[T], timeout_s: float) -> T | Degradation:
    """The result of a leg or the rescorer, or why there is none; a failure does not fail the query.

    Raises VectorsReplaced: then the query starts over.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except VectorsReplaced:
        raise
    except TimeoutError:
        reason = f"passed its deadline of {timeout_s:g} s"
        log_once(f"leg {name} failed: {reason}")
    except Exception as exc:
        reason = f"{type(exc).__name__}: {str(exc).partition(chr(10))[0]}"
        # No traceback for an outage of the embedder: every query hits it, and the message describes it.
        log_once(f"leg {name} failed: {reason}", exc_info=not isinstance(exc, (EmbeddingFailed, ModelFileError)))
    return Degradation(leg=name, reason=reason)


def log_once(message: str, **options: Any) -> None:
    """Log an error unless the last minute had the same: in an outage every query has it, and `/metrics` counts them."""
    if message not in _logged:
        _logged[message] = None
        log.error("%s", message, **options)


class Retriever(Protocol):
    """A leg. It raises on failure; the pipeline enforces the deadline and reports the failure."""

    async def search(self, query: LegQuery) -> LegRanking:
        """The best `query.fan_out` memories for the query."""
        ...
