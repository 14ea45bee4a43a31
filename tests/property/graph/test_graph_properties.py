"""Invariants for every text and every neighbourhood."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graph.extraction import MAX_MENTIONS, extract
from graph.names import entity_id, normalize
from retrieval.legs.base import Hit
from retrieval.legs.graph import anchors_of
from retrieval.types.search import Leg
from tests.rankings import ranking_of


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
    rankings = {leg: ranking_of((hit.id, hit.doc, hit.score) for hit in hits) for leg, hits in others.items()}
    anchors = anchors_of(rankings, count)
    assert len(anchors) <= count
    assert set(anchors) <= {hit.doc for hits in others.values() for hit in hits}
    assert all(0 < strength < np.inf for strength in anchors.values())
