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


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 12))
def test_pagerank_is_a_share_of_one(seed: int, docs: int, entities: int) -> None:
    random = np.random.default_rng(seed)
    weights = random.random((docs, entities)) * (random.random((docs, entities)) < 0.4)
    rank = bipartite_pagerank(weights, np.full(entities, 1 / entities))
    assert (rank >= 0).all()
    assert rank.sum() <= 1


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), min_size=1, max_size=40), min_size=1, max_size=4
    ),
    st.integers(2, 20),
)
def test_a_neighbourhood_keeps_its_bounds(hops: list[list[tuple[int, int]]], max_nodes: int) -> None:
    near = Neighbourhood([Seed(0, "seed", "seed", 1.0, "exact", 1)], 50, max_nodes=max_nodes)
    for number, pairs in enumerate(hops):
        unique = sorted(set(pairs))
        arrays = (np.array([e for e, _ in unique]), np.array([d for _, d in unique]), np.ones(len(unique)))
        through = dict(near.best(5))
        touched = {e for e, d in unique if d in through} - set(near.entities)
        met = [Met(e, f"e{e}", 2, 0.5) for e in sorted(touched)]
        near.add(Step(near.frontier if number == 0 else met, arrays, through))
        assert len(near.docs) + len(near.entities) <= max_nodes
    ranked = near.activations()
    assert all(0 < activation <= 1 for _, activation in ranked)
    assert [a for _, a in ranked] == sorted((a for _, a in ranked), reverse=True)
    for doc, _ in ranked:
        assert near.path(doc)[0] == "seed"
