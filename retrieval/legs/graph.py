"""The graph leg: memories near the query's entities and near the best hits of the other legs."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from graph.adjacency import in_mask, is_in_mask
from graph.neighbourhood import Bounds, GraphView
from graph.traversal import begin, walk
from retrieval.index.query_vectors import cosines
from retrieval.index.slots import NO_SLOT
from retrieval.legs.base import LegQuery, LegRanking, log_once
from retrieval.legs.entity_lookup import EntityLookup
from retrieval.legs.path_explanations import paths_to
from retrieval.store.pool import Pool
from retrieval.types.search import Leg

SIMILARITY_FLOOR = 0.1
"""score = activation * ((floor + max(cosine, 0)) / (floor + 1))^2, so that activation alone still counts."""

MAX_COMPARED = 100
"""Memories, nearest first, whose similarity to the query is computed; at least `fan_out`."""

MAX_BESIDE = 16
"""Memories, nearest first, that pass activation on to adjacent turns."""


class GraphRetriever:
    """Links the query to entities and starts the walk at once; continues it when the other legs have answered.

    It depends on neither the embedding nor the other legs: without an embedding it ranks by the walk alone, and without
    other legs it walks only from the query's entities.
    """

    def __init__(self, pool: Pool, *, bounds: Bounds | None = None) -> None:
        """Use connections of `pool`; `bounds` caps the walk except its hops, which each query sets."""
        self._pool = pool
        self._entity_lookup = EntityLookup(pool)
        self._bounds = bounds or Bounds()

    async def search(self, query: LegQuery) -> LegRanking:
        """The best `fan_out` memories near the query; none if it names no known entity and no other leg has hits.

        A hit's score is its activation in [0, 1], weighted by similarity if there is an embedding.
        """
        index, namespace = query.snapshot.index, query.snapshot.namespace
        size = max(namespace.next_doc, 1)  # an upper bound of the number of memories
        rules = namespace.settings.graph_rules()
        seeds = await self._entity_lookup.seeds(index, query.request.query, size)
        details: dict[str, Any] = {
            "entities": [{"name": s.name, "how": s.how, "score": round(s.score, 4)} for s in seeds]
        }
        view = GraphView(graph=index.graph, memories=size, eligible=query.view.eligible)
        max_hops = query.profile.hops if query.request.max_hops is None else query.request.max_hops
        bounds = structs.replace(self._bounds, max_hops=max_hops)
        neighbourhood = begin(view, seeds, rules=rules, bounds=bounds)  # while the other legs still run
        others = await query.other_rankings() if max_hops else {}
        anchors = anchors_of(others, query.profile.anchors)
        details["anchors_from"] = [leg.value for leg, hits in others.items() if anchors.keys() & hits.docs.tolist()]
        ids = index.memories.ids
        if not seeds and not anchors:
            return LegRanking(docs=np.empty(0, np.int64), scores=np.empty(0), ids=ids, details=details)
        with query.stopwatch.span("graph_walk"):
            # A leg may have found a memory that was added or removed meanwhile.
            eligible_anchors = {doc: part for doc, part in anchors.items() if is_in_mask(doc, view.eligible)}
            walk(view, neighbourhood, eligible_anchors, rules=rules)
            found, activations = neighbourhood.activations()
            share, most = query.profile.adjacency, max(MAX_COMPARED, query.fan_out)
            docs, activations = spread_to_neighbours(
                found[:most],
                activations[:most],
                share=share,
                passing=MAX_BESIDE if share else 0,
                links=(index.memories.previous.values, index.memories.next.values),
                eligible=view.eligible,
            )
        details |= {"anchors": len(anchors), "hops": neighbourhood.hops, "memories": len(found)}
        entity_idfs = tuple(math.log(1 + size / seed.mentions) / math.log(1 + size) for seed in seeds)
        if docs.size:
            embedding = await self._embedding(query)
            details["similarity"] = embedding is not None
            if embedding is not None:
                await query.vectors.read(docs.tolist())
                docs, activations = _scaled_by_similarity(query, docs, activations, embedding)
        ranking = LegRanking.best(
            docs, np.minimum(activations, 1.0), ids, count=query.fan_out, details=details, entity_idfs=entity_idfs
        )
        if not query.request.explain or not docs.size:
            return ranking
        async with self._pool.connection() as conn:
            return structs.replace(ranking, paths=await paths_to(conn, index, neighbourhood, seeds, ranking.docs))

    async def _embedding(self, query: LegQuery) -> NDArray[np.float32] | None:
        try:
            async with asyncio.timeout(query.optional_wait_s):
                return await query.embedding()
        except Exception as error:  # the walk is useful without the embedder
            why = str(error) or f"the query's vector took longer than {query.optional_wait_s:g} s"
            log_once(f"graph leg ranks without similarity: {why}")
            return None


def anchors_of(others: Mapping[Leg, LegRanking], count: int) -> dict[int, float]:
    """The best memories of the other legs combined, by slot, with strengths.

    Each leg adds a memory's score, scaled so that the leg's lowest is 0 and its best 1; for BM25, whose 0 is
    meaningful, 0 stays 0. The strength is the square of the sum, times the similarity to the query.
    """
    found = {leg: ranking for leg, ranking in others.items() if len(ranking)}
    if not found:
        return {}
    parts = [_scaled(ranking.scores, from_zero=leg is Leg.BM25) for leg, ranking in found.items()]
    # Grouped by hand: `np.unique` would take 1 % of a search.
    hits = np.concatenate([ranking.docs for ranking in found.values()])
    by_doc = hits.argsort(kind="stable")
    hits = hits[by_doc]
    is_first = np.ones(len(hits), np.bool_)
    is_first[1:] = hits[1:] != hits[:-1]
    starts = is_first.nonzero()[0]
    docs, together = hits[starts], np.add.reduceat(np.concatenate(parts)[by_doc], starts)
    similarity = np.ones(len(docs))
    if nearest := found.get(Leg.VECTOR):
        similarity[:] = nearest.scores[-1]
        similarity[docs.searchsorted(nearest.docs)] = nearest.scores
    best = (-together).argsort(kind="stable")[:count]
    strengths = together[best] ** 2 * np.maximum(similarity[best], 0.0)
    return {doc: part for doc, part in zip(docs[best].tolist(), strengths.tolist(), strict=True) if part > 0}


def _scaled(scores: NDArray[np.float64], *, from_zero: bool) -> NDArray[np.float64]:
    """Scores, best first, scaled to [0, 1]; all 1 if they do not differ."""
    least = 0.0 if from_zero else scores[-1]
    span = scores[0] - least
    return (scores - least) / span if span > 0 else np.ones(len(scores))


def spread_to_neighbours(
    near: NDArray[np.int64],
    activations: NDArray[np.float64],
    *,
    share: float,
    passing: int,
    links: tuple[NDArray[np.int32], NDArray[np.int32]],
    eligible: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Add the turns adjacent to the first `passing` memories, and pass a share of the activation on to them.

    A `share` is passed on in each direction, and the result is scaled by 1 / (1 + 2 * share). `near` are slots, nearest
    first, without repeats; `links`, by slot, the turn before and the one after, negative for none.
    """
    reached = dict(zip(near.tolist(), activations.tolist(), strict=True))
    first = list(islice(reached.items(), passing))
    for side in links:
        for doc, activation in first:
            beside = int(side[doc]) if doc < len(side) else NO_SLOT
            if beside >= 0:
                reached[beside] = reached.get(beside, 0.0) + share * activation
    docs = np.array([*reached], np.int64)
    found = in_mask(docs, eligible)
    return docs[found], np.array([*reached.values()])[found] / (1 + 2 * share)


def _scaled_by_similarity(
    query: LegQuery, docs: NDArray[np.int64], activations: NDArray[np.float64], embedding: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The memories that have a vector, with their activation scaled by their similarity to the query."""
    rows = query.vectors.rows_of(docs.tolist())
    if rows.min() < 0:
        is_read = rows >= 0
        docs, activations, rows = docs[is_read], activations[is_read], rows[is_read]
    similarity = np.clip(cosines(query.vectors.context_vectors, embedding, rows), 0, 1)
    return docs, activations * ((SIMILARITY_FLOOR + similarity) / (SIMILARITY_FLOOR + 1)) ** 2
