"""The visible graph and merged entities in it, against plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graph.adjacency import Adjacency
from graph.forward_chaining import StatedRelation
from graph.merges import moved, unified
from graph.visible import MAX_EVIDENCE, RECENT, STATED_SCANNED, VisibleGraph, co_mentions, grouped
from tests.graph_edges import edges_of

ENTITIES = (-(2**62), -7, 0, 3, 4, 2**62)
MEMORIES = 12

Mentions = Mapping[int, Mapping[int, float]]
"""Weights by memory and entity."""

WEIGHTS = st.sampled_from([0.25, 0.5, 1.0])
MENTIONS = st.dictionaries(
    st.integers(0, MEMORIES - 1), st.dictionaries(st.sampled_from(ENTITIES), WEIGHTS, min_size=1, max_size=4)
)
STATED = st.lists(
    st.builds(
        StatedRelation,
        st.sampled_from(ENTITIES),
        st.sampled_from(["in", "near", "Near"]),
        st.sampled_from(ENTITIES),
        st.integers(0, MEMORIES - 1),
    ),
    unique=True,
)
VISIBLE = st.lists(st.booleans(), min_size=MEMORIES, max_size=MEMORIES)
ROOTS = st.dictionaries(st.sampled_from(ENTITIES[:3]), st.sampled_from(ENTITIES[3:]))


def graph_of(parts: Sequence[Mentions], stated: Sequence[StatedRelation]) -> Adjacency:
    """Loaded in parts, of which later ones replace memories of earlier ones."""
    graph = Adjacency(edges_of({}), [])
    for mentions in parts:
        docs = list(mentions)
        graph.add(edges_of(mentions), [each for each in stated if each.doc in mentions], docs)
    return graph


@given(st.lists(MENTIONS, max_size=3), STATED, VISIBLE)
def test_it_says_what_visible_memories_say(
    parts: list[Mentions], stated: list[StatedRelation], visible: list[bool]
) -> None:
    mentions = {doc: weights for part in parts for doc, weights in part.items()}
    graph = VisibleGraph(graph_of(parts, stated), np.array(visible, np.bool_))
    docs = {
        entity: [doc for doc in sorted(mentions, reverse=True) if visible[doc] and entity in mentions[doc]]
        for entity in ENTITIES
    }
    entities, counts = graph.counts()
    expected = sorted(((-len(some), entity) for entity, some in docs.items() if some))
    assert list(zip((-counts).tolist(), entities.tolist(), strict=True)) == expected
    there = {each for each in stated if each.doc in mentions and visible[each.doc]}
    for entity in ENTITIES:
        assert graph.docs_of(entity).tolist() == docs[entity]
        own = [each for each in there if entity in (each.source, each.target)]
        relations, is_cut = graph.relations_of(entity)
        assert relations == grouped(own)
        assert not is_cut
        ties, is_cut = graph.ties_of(entity, most=100)
        assert not is_cut
        assert [-tie.strength for tie in ties] == sorted(-tie.strength for tie in ties)
        for tie in ties:
            both = [doc for doc in docs[entity] if doc in docs[tie.other]]
            assert (tie.entity, tie.shared, list(tie.docs)) == (entity, len(both), both[:MAX_EVIDENCE])
            assert set(tie.stated) == {each for each in own if tie.other in (each.source, each.target)}
        met = {other for other in ENTITIES if other != entity and set(docs[other]) & set(docs[entity])}
        related = {end for each in own for end in (each.source, each.target)} - {entity}
        assert {tie.other for tie in ties} == met | related
    among, _ = graph.relations_among(ENTITIES[:3])
    assert among == grouped([each for each in there if {each.source, each.target} <= set(ENTITIES[:3])])
    shared, is_cut = co_mentions([graph.docs_of(entity) for entity in ENTITIES], most_docs=MEMORIES)
    assert not is_cut
    assert shared.tolist() == [[len(set(docs[one]) & set(docs[other])) for other in ENTITIES] for one in ENTITIES]


@given(MENTIONS, STATED, ROOTS)
def test_merged_entities_are_their_roots(
    mentions: Mentions, stated: list[StatedRelation], roots: dict[int, int]
) -> None:
    edges, relations = unified(edges_of(mentions), stated, roots)
    heaviest: dict[tuple[int, int], float] = {}
    for doc, weights in mentions.items():
        for entity, weight in weights.items():
            pair = roots.get(entity, entity), doc
            heaviest[pair] = max(weight, heaviest.get(pair, 0.0))
    rows = list(zip(*(column.tolist() for column in edges), strict=True))
    assert {(entity, doc): weight for entity, doc, weight in rows} == heaviest
    assert len(rows) == len(heaviest)
    shown = {
        StatedRelation(
            roots.get(each.source, each.source), each.relation, roots.get(each.target, each.target), each.doc
        )
        for each in stated
        if each.source == each.target or roots.get(each.source, each.source) != roots.get(each.target, each.target)
    }
    assert len(relations) == len(set(relations))
    assert set(relations) == shown


def test_what_is_shown_as_another_has_moved() -> None:
    assert moved({}, {1: 2}) == {1}
    assert moved({1: 2}, {}) == {2}
    assert moved({1: 2}, {1: 3}) == {2}
    assert moved({1: 2}, {1: 3, 2: 3}) == {2}
    assert moved({1: 2}, {1: 2}) == set()


def test_a_hub_is_read_in_part() -> None:
    """The latest of its memories, the first of its relations, and the cut is reported."""
    count = 3 * STATED_SCANNED
    hub, others = 1, np.arange(2, count + 2)
    docs = np.arange(count)
    edges = np.concatenate([np.full(count, hub), others]), np.concatenate([docs, docs]), np.ones(2 * count)
    stated = [StatedRelation(hub, "met", int(other), int(doc)) for other, doc in zip(others, docs, strict=True)]
    graph = VisibleGraph(Adjacency(edges, stated), np.ones(count, np.bool_))
    relations, is_cut = graph.relations_of(hub)
    assert (len(relations), is_cut) == (STATED_SCANNED, True)
    ties, is_cut = graph.ties_of(hub, most=50)
    assert (len(ties), is_cut) == (50, True)
    ties, is_cut = graph.ties_of(hub, most=10 * count)
    assert len(ties) <= RECENT + STATED_SCANNED
    assert is_cut
    assert len(graph.docs_of(hub)) == count
    shared, is_cut = co_mentions([graph.docs_of(hub), graph.docs_of(2)], most_docs=100)
    assert (shared.tolist(), is_cut) == ([[100, 0], [0, 0]], True)
