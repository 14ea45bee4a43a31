"""The graph leg: memories near the query's entities and near what the other legs found first."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import nlargest
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.resolution import MENTIONS_CAP, Seed, resolve
from graph.traversal import Bounds, View, Walk, begin, walk
from native import Array, at, function
from retrieval.legs.base import Hit, LegQuery, LegRanking
from retrieval.legs.linked import Linked, Linker
from retrieval.legs.wayfinding import Reason, reasons
from retrieval.mirror.vectors import cosines
from retrieval.store.pool import Pool
from retrieval.types import Leg

log = logging.getLogger(__name__)

SIMILARITY_FLOOR = 0.1
"""score = activation * ((floor + max(cosine, 0)) / (floor + 1))^2: nearness alone still counts."""

MAX_COMPARED = 100
"""Memories, nearest first, whose similarity to the query is computed; as many as are asked for if that is more."""

MAX_BESIDE = 16
"""Most memories, nearest first, that pass activation on to the turns beside them."""

_INT = ctypes.c_int64
_spread_out = function("trivet_walk_spread", Array, Array, _INT, _INT, ctypes.c_double, Array, Array, _INT, Array, _INT,
                       result=_INT)  # fmt: skip


class GraphRetriever:
    """Links the query and takes its entities' memories at once; walks on when the other legs have answered.

    Without an embedding it ranks by the walk alone, and without other legs it walks from its own first
    memories: neither a dead embedder nor a dead leg takes this one along.
    """

    leg = Leg.GRAPH

    def __init__(self, pool: Pool, *, bounds: Bounds | None = None) -> None:
        """Use connections of `pool`; `bounds` caps the walk, its hops come with each query."""
        self._pool = pool
        self._bounds = bounds or Bounds()

    async def search(self, query: LegQuery) -> LegRanking:
        """The best `fan_out` memories near the query; none if it names none that are known and no leg found any.

        A hit's score is its activation in [0, 1], weighed by similarity where there is an embedding.
        """
        linked = query.linked or Linked(Linker(self._pool), query.text)
        named = await linked(query.standing.mirror)
        size = max(query.docs_given_out, 1)
        mentions_of = partial(query.standing.mirror.graph.mentions, cap=MENTIONS_CAP)
        seeds = resolve(named, mentions_of, size)
        details: dict[str, Any] = {
            "entities": [{"name": s.name, "how": s.how, "score": round(s.score, 4)} for s in seeds]
        }
        view = self._view(query)
        bounds = replace(self._bounds, max_hops=query.max_hops)
        near = begin(view, seeds, rules=query.rules, bounds=bounds)  # while the other legs are still at it
        anchors = anchors_of(await query.others(), query.profile.anchors) if query.max_hops else {}
        if not seeds and not anchors:
            return LegRanking(hits=(), details=details)
        with query.stopwatch.span("graph_walk"):
            view = self._view(query)
            found = walk(view, near, _there(anchors, view), rules=query.rules)
            docs, activations = _spread(query, found, view)
        details |= {"anchors": len(anchors), "hops": found.hops, "memories": len(found.docs)}
        rarities = tuple(math.log(1 + size / seed.mentions) / math.log(1 + size) for seed in seeds)
        if not docs.size:
            return LegRanking(hits=(), details=details, rarities=rarities)
        embedding = await self._embedding(query)
        details["similarity"] = embedding is not None
        if embedding is not None:
            await query.vectors.read(docs.tolist())
        hits = _ranked(query, docs, activations, embedding)
        if query.explain:
            hits = await self._explained(query, found, seeds, hits)
        return LegRanking(hits=hits, details=details, rarities=rarities)

    async def _explained(
        self, query: LegQuery, found: Walk, seeds: Sequence[Seed], hits: Sequence[Hit]
    ) -> tuple[Hit, ...]:
        """The hits with the way that led to each."""
        async with self._pool.connection() as conn:
            why = await reasons(conn, query.ns, found, seeds, [hit.doc for hit in hits])
        nothing = Reason((), None)
        reason = [why.get(hit.doc, nothing) for hit in hits]
        return tuple(hit._replace(path=each.path, why=each.text) for hit, each in zip(hits, reason, strict=True))

    def _view(self, query: LegQuery) -> View:
        """What the query may see of the graph by now."""
        _, eligible = query.masks()
        return View(graph=query.standing.mirror.graph, memories=max(query.docs_given_out, 1), eligible=eligible)

    async def _embedding(self, query: LegQuery) -> NDArray[np.float32] | None:
        try:
            async with asyncio.timeout(query.patience_s):
                return await query.embedding()
        except Exception as error:  # whatever the provider raises, the walk is worth having
            log.warning("graph leg ranks without similarity: %s", error)
            return None


def anchors_of(others: Mapping[Leg, Sequence[Hit]], count: int) -> dict[int, float]:
    """The best memories of the other legs together, by ordinal, with strengths that grow with the square.

    Each leg gives a memory its score between the leg's least (0) and best (1); BM25, whose 0 means
    something, between 0 and 1.
    """
    together: dict[int, float] = {}
    for leg, hits in others.items():
        if not hits:
            continue
        least = 0.0 if leg is Leg.BM25 else hits[-1].score
        span = hits[0].score - least
        for hit in hits:
            doc = hit.doc
            together[doc] = together.get(doc, 0.0) + ((hit.score - least) / span if span > 0 else 1.0)
    similarity = {hit.doc: hit.score for hit in others.get(Leg.VECTOR, ())}
    unknown = min(similarity.values(), default=1.0)
    if len(together) > count > 0:
        enough = nlargest(count, together.values())[-1]
        together = {doc: part for doc, part in together.items() if part >= enough}
    best = sorted(together, key=lambda doc: (-together[doc], doc))[:count]
    strengths = {doc: together[doc] ** 2 * max(similarity.get(doc, unknown), 0.0) for doc in best}
    return {doc: strength for doc, strength in strengths.items() if strength > 0}


def _there(anchors: Mapping[int, float], view: View) -> dict[int, float]:
    """Those that may be seen: a leg may have found a memory that came or went meanwhile."""
    return {doc: part for doc, part in anchors.items() if doc < len(view.eligible) and view.eligible[doc]}


def _spread(query: LegQuery, found: Walk, view: View) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest memories with their activation, a share of which they pass on to the turns beside them."""
    share, memories = query.profile.adjacency, query.standing.mirror.memories
    most = max(MAX_COMPARED, query.fan_out)
    return spread_out(
        found.docs[:most],
        found.activations[:most],
        share=share,
        passing=MAX_BESIDE if share else 0,
        links=(memories.previous.values, memories.next.values),
        eligible=view.eligible,
    )


def spread_out(
    near: NDArray[np.int64],
    activations: NDArray[np.float64],
    *,
    share: float,
    passing: int,
    links: tuple[NDArray[np.int32], NDArray[np.int32]],
    eligible: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Memories with those beside the first few of them, and a share of the activation passed on to these.

    Args:
        near: ordinals, none twice, nearest first.
        activations: theirs.
        share: of its activation that a memory passes on each way; what is left is scaled to 1 / (1 + 2 * share).
        passing: how many pass on.
        links: by ordinal the memory before and the one after, negative for none.
        eligible: by ordinal, which of them may be returned.
    """
    count = len(near)
    docs, parts = np.empty(count + 2 * passing, np.int64), np.empty(count + 3 * passing)
    docs[:count], parts[:count] = near, activations
    found = _spread_out(at(docs), at(parts), count, passing, share, *map(at, links), min(map(len, links)),
                        at(eligible), len(eligible))  # fmt: skip
    if found < 0:
        raise MemoryError("no memory for the turns beside those found")
    return docs[:found], parts[:found]


def _ranked(
    query: LegQuery,
    docs: NDArray[np.int64],
    activations: NDArray[np.float64],
    embedding: NDArray[np.float32] | None,
) -> tuple[Hit, ...]:
    """The hits, best first; without an embedding by activation alone."""
    scores = activations
    if embedding is not None:
        places = query.vectors.places(docs.tolist())
        if places.min() < 0:
            there = places >= 0
            docs, scores, places = docs[there], scores[there], places[there]
        similarity = np.clip(cosines(query.vectors.stored, embedding, places), 0, 1)
        scores = scores * ((SIMILARITY_FLOOR + similarity) / (SIMILARITY_FLOOR + 1)) ** 2
    order = np.argsort(-scores, kind="stable")
    if order.size > query.fan_out:  # equals of the last one are told apart by id
        order = order[: int(np.searchsorted(-scores[order], -scores[order[query.fan_out - 1]], side="right"))]
    docs, scores = docs[order], np.minimum(scores[order], 1.0)
    ranked = zip(query.standing.mirror.memories.ids.get(docs), docs.tolist(), scores.tolist(), strict=True)
    hits = list(starmap(Hit, ranked))
    if (scores[1:] == scores[:-1]).any():
        hits.sort(key=lambda hit: (-hit.score, hit.id))
    return tuple(hits[: query.fan_out])
