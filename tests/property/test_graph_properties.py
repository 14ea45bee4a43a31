"""What holds for every text and every neighbourhood."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graph.extraction import MAX_MENTIONS, extract
from graph.linking import Seed
from graph.names import entity_id, normalize
from graph.neighbourhood import Met, Neighbourhood, Step
from graph.pagerank import bipartite_pagerank
from retrieval.legs.base import Hit
from retrieval.legs.graph import anchors_of
from retrieval.types import Leg


@given(st.text(max_size=300))
def test_a_key_is_its_own_key(name: str) -> None:
    key = normalize(name)
    assert normalize(key) == key or key.split()[0] in {"a", "an", "the"}
    assert key == " ".join(key.split())
    assert -(2**63) <= entity_id(key) < 2**63


@given(st.text(max_size=600), st.none() | st.text(max_size=60), st.none() | st.text(max_size=20))
def test_mentions_are_distinct_weighted_and_few(text: str, title: str | None, speaker: str | None) -> None:
    mentions = extract(text, title=title, speaker=speaker)
    assert len(mentions) <= MAX_MENTIONS
    assert len({m.key for m in mentions}) == len(mentions)
    assert all(m.key and m.name and 0 < m.weight <= 1 for m in mentions)
    assert mentions == extract(text, title=title, speaker=speaker)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(0, 12), st.floats(0, 1))
def test_pagerank_is_a_share_of_one(seed: int, docs: int, entities: int, at_memories: float) -> None:
    """However the restart is divided between entities and memories."""
    random = np.random.default_rng(seed)
    weights = random.random((docs, entities)) * (random.random((docs, entities)) < 0.4)
    restart = np.full(entities, (1 - at_memories) / max(entities, 1))
    rank = bipartite_pagerank(weights, restart, np.full(docs, at_memories / docs))
    assert np.isfinite(rank).all()
    assert (rank >= 0).all()
    assert rank.sum() <= 1 + 1e-9


HOPS = st.lists(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), min_size=1, max_size=40), min_size=1, max_size=4
)
ANCHORS = st.dictionaries(st.integers(0, 40), st.floats(1e-6, 100), max_size=12)


def collected(
    hops: list[list[tuple[int, int]]], anchors: dict[int, float], max_nodes: int, seeded: bool
) -> Neighbourhood:
    """A walk over made-up mentions: from the seed, then from the anchors, then from the best so far."""
    seeds = [Seed(0, "seed", "seed", 1.0, "exact", 1)] if seeded else []
    near = Neighbourhood(seeds, 50, max_nodes=max_nodes)
    for number, pairs in enumerate(hops):
        unique = sorted(set(pairs))
        arrays = (np.array([e for e, _ in unique]), np.array([d for _, d in unique]), np.ones(len(unique)))
        begins = seeded and number == 0
        first = number == int(seeded)
        if first and anchors:
            near.anchor(anchors)
            assert len(near.docs) + len(near.entities) <= max_nodes
        through = dict(anchors) if first and anchors else dict(near.best(5))
        touched = {e for e, d in unique if d in through and d in near.docs} - set(near.entities)
        met = [Met(e, 2, 0.5) for e in sorted(touched)]
        near.add(Step(near.frontier, arrays) if begins else Step(met, arrays, through))
        assert len(near.docs) + len(near.entities) <= max_nodes
    return near


@given(HOPS, ANCHORS, st.integers(2, 20), st.booleans())
def test_a_neighbourhood_keeps_its_bounds(
    hops: list[list[tuple[int, int]]], anchors: dict[int, float], max_nodes: int, seeded: bool
) -> None:
    """Whatever the anchors; activations lie in (0, 1], and every memory has a path unless no entity ties it in."""
    near = collected(hops, anchors, max_nodes, seeded)
    entities, memories = near.restart
    assert 0 <= entities.min(initial=0) <= entities.sum() + memories.sum() <= 1 + 1e-9
    assert memories.min(initial=0) >= 0
    ranked = near.activations()
    assert all(0 < activation <= 1 for _, activation in ranked)
    assert [a for _, a in ranked] == sorted((a for _, a in ranked), reverse=True)
    assert len({doc for doc, _ in ranked}) == len(ranked)
    assert not ranked or ranked[0][1] == 1.0
    for doc, _ in ranked:
        path = near.path(doc)
        assert path or doc in anchors
        assert not path or path[0].through is None or path[0].through in anchors
        assert [link.tied for link in path[:1]] in ([], [False])
        assert len({link.met.entity for link in path}) == len(path)


@given(HOPS, ANCHORS, st.integers(2, 40), st.booleans())
def test_the_same_walk_gives_the_same_activations(
    hops: list[list[tuple[int, int]]], anchors: dict[int, float], max_nodes: int, seeded: bool
) -> None:
    """To the last bit, and in whatever order the edges of a hop come."""
    once = collected(hops, anchors, max_nodes, seeded)
    again = collected([pairs[::-1] for pairs in hops], anchors, max_nodes, seeded)
    assert once.activations() == again.activations()
    assert [once.path(doc) for doc in once.docs] == [again.path(doc) for doc in again.docs]


LEGS = st.dictionaries(
    st.sampled_from([Leg.VECTOR, Leg.BM25]),
    st.lists(st.floats(-1, 50, allow_nan=False), max_size=12).map(lambda scores: sorted(scores, reverse=True)),
)


@given(LEGS, st.integers(0, 8))
def test_anchors_are_few_and_their_strengths_positive(legs: dict[Leg, list[float]], count: int) -> None:
    others = {
        leg: [Hit(id=f"m{at}", doc=(at * 7) % 20, score=min(score, 1.0) if leg is Leg.VECTOR else abs(score))
              for at, score in enumerate(scores)]
        for leg, scores in legs.items()
    }  # fmt: skip
    others = {leg: sorted(hits, key=lambda hit: -hit.score) for leg, hits in others.items()}
    anchors = anchors_of(others, count)
    assert len(anchors) <= count
    assert set(anchors) <= {hit.doc for hits in others.values() for hit in hits}
    assert all(0 < strength < np.inf for strength in anchors.values())
