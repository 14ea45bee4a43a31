"""The graph in memory against a plain dictionary, after any history of additions and removals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph.adjacency import Adjacency
from graph.forward_chaining import StatedRelation
from graph.neighbourhood import Bounds, GraphView, Neighbourhood
from graph.resolution import Seed
from graph.segments import LEVELS, EdgeSegment
from tests.graph_edges import Edges, edges_of, latest_edges, weightiest_edges

ENTITIES = (-(2**62), -7, 0, 3, 4, 2**62)
UNKNOWN = 12_345
MEMORIES = 20

Mentions = Mapping[int, float]
"""Weights by entity."""


@dataclass
class Plain:
    """Each memory's mentions and relations."""

    mentions: dict[int, Mentions] = field(default_factory=dict)
    relations: dict[int, Sequence[StatedRelation]] = field(default_factory=dict)

    def put(self, mentions: Mapping[int, Mentions], relations: Mapping[int, Sequence[StatedRelation]]) -> None:
        """Replace memories."""
        self.mentions |= mentions
        self.relations |= {doc: relations.get(doc, ()) for doc in mentions}

    def remove(self, docs: Sequence[int]) -> None:
        """Forget memories."""
        for doc in docs:
            self.mentions.pop(doc, None)
            self.relations.pop(doc, None)

    def latest_of(
        self, entities: Sequence[int], eligible: NDArray[np.bool_], scanned: int, most: int
    ) -> list[tuple[int, int, float]]:
        """The edges of some entities, in their order, to their latest memories."""
        found = []
        for entity in entities:
            docs = [doc for doc in sorted(self.mentions, reverse=True) if entity in self.mentions[doc]][:scanned]
            seen = [doc for doc in docs if eligible[doc]][:most]
            found += [(entity, doc, self.mentions[doc][entity]) for doc in seen]
        return found

    def weightiest_of(self, docs: Sequence[int], most: int) -> set[tuple[int, int, float]]:
        """The edges of some memories to what they mention most."""
        ranked = {doc: sorted(self.mentions.get(doc, {}).items(), key=lambda way: (-way[1], way[0])) for doc in docs}
        return {(entity, doc, weight) for doc in docs for entity, weight in ranked[doc][:most]}


def rows_of(edges: Edges) -> list[tuple[int, int, float]]:
    return list(zip(*(column.tolist() for column in edges), strict=True))


WEIGHTS = st.sampled_from([0.25, 0.5, 0.75, 1.0])  # as exact in single precision
MENTIONS = st.dictionaries(
    st.integers(0, MEMORIES - 1), st.dictionaries(st.sampled_from(ENTITIES), WEIGHTS, max_size=4), max_size=8
)
DOCS = st.lists(st.integers(0, MEMORIES - 1), unique=True, max_size=6)
RELATED = st.dictionaries(
    st.integers(0, MEMORIES - 1),
    st.lists(
        st.tuples(st.sampled_from(ENTITIES), st.sampled_from(["in", "near"]), st.sampled_from(ENTITIES)),
        unique=True,
        max_size=3,
    ),
)
HISTORY: st.SearchStrategy[list[Any]] = st.lists(
    st.tuples(st.just("add"), MENTIONS, RELATED)
    | st.tuples(st.just("remove"), DOCS, st.just({}))
    | st.tuples(st.just("keep in a file"), st.just(()), st.just({}))
)


def stated(
    mentions: Mapping[int, Mentions], related: Mapping[int, Sequence[tuple[int, str, int]]]
) -> dict[int, list[StatedRelation]]:
    """The relations of those memories that are there."""
    return {doc: [StatedRelation(*relation, doc) for relation in related.get(doc, ())] for doc in mentions}


@given(MENTIONS, RELATED, HISTORY, st.data())
def test_it_says_what_a_dictionary_says(
    first: dict[int, Mentions],
    related: dict[int, list[tuple[int, str, int]]],
    history: list[Any],
    data: st.DataObject,
) -> None:
    """Loaded at once or added later, from its arrays, replaced, removed, removed twice, unknown."""
    plain = Plain()
    plain.put(first, stated(first, related))
    graph = Adjacency(edges_of(first), [each for some in plain.relations.values() for each in some])
    agree(graph, plain, data)
    for action, what, related_later in history:
        if action == "remove":
            graph.remove(what)
            plain.remove(what)
        elif action == "keep in a file":
            graph, former = Adjacency(), graph
            graph.restore({name: array.copy() for name, array in former.arrays().items()})
        else:
            relations = stated(what, related_later)
            graph.add(edges_of(what), [each for some in relations.values() for each in some], list(what))
            plain.put(what, relations)
        agree(graph, plain, data)


def agree(graph: Adjacency, plain: Plain, data: st.DataObject) -> None:
    """In all that can be asked."""
    entities = data.draw(st.permutations([*ENTITIES, UNKNOWN]))[: data.draw(st.integers(0, len(ENTITIES) + 1))]
    numbers = np.array(entities, np.int64)
    cap = data.draw(st.integers(1, 6))
    counts = [sum(entity in weights for weights in plain.mentions.values()) for entity in entities]
    assert graph.mentions(numbers, cap=cap).tolist() == [min(count, cap) for count in counts]

    eligible = np.array(data.draw(st.lists(st.booleans(), min_size=MEMORIES, max_size=MEMORIES)))
    most, scanned = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    found = rows_of(latest_edges(graph, numbers, eligible, scanned=MEMORIES, most=most))
    assert found == plain.latest_of(entities, eligible, MEMORIES, most)
    few = rows_of(latest_edges(graph, numbers, eligible, scanned=scanned, most=most))
    assert few == plain.latest_of(entities, eligible, scanned, most)

    docs = data.draw(st.lists(st.integers(0, MEMORIES + 5), unique=True))
    weightiest = rows_of(weightiest_edges(graph, np.array(docs, np.int64), most=most))
    assert len(weightiest) == len(set(weightiest))
    assert set(weightiest) == plain.weightiest_of(docs, most)

    every = [relation for relations in plain.relations.values() for relation in relations]
    for entity in (*ENTITIES, UNKNOWN):
        out, into = graph.relations.of_entity(entity)
        assert list(out) == sorted(relation for relation in every if relation.source == entity)
        assert list(into) == sorted(relation for relation in every if relation.target == entity)
    ends = {end for relation in every for end in (relation.source, relation.target)}
    assert graph.relations.related(entities) == [entity for entity in entities if entity in ends]


def test_an_empty_graph_has_nothing_of_anything() -> None:
    graph = Adjacency(edges_of({}), [])
    some, none = np.array([1, 2], np.int64), np.empty(0, np.int64)
    for entities in (some, none):
        assert graph.mentions(entities, cap=9).tolist() == [0] * len(entities)
        assert rows_of(latest_edges(graph, entities, np.zeros(0, np.bool_), scanned=9, most=9)) == []
        assert rows_of(weightiest_edges(graph, entities, most=9)) == []
    assert graph.relations.of_entity(1) == ((), ())
    assert graph.relations.related([1, 2]) == []
    graph.remove([1, 2])
    assert graph.mentions(some, cap=9).tolist() == [0, 0]


@pytest.mark.parametrize("loaded", [0, 500, 1_000])
def test_a_hub_costs_as_much_as_is_scanned(loaded: int) -> None:
    """However many of its memories came with it or later."""
    hub = {doc: {3: 0.5} for doc in range(1_000)}
    first = {doc: hub[doc] for doc in range(loaded)}
    graph = Adjacency(edges_of(first), [])
    later = {doc: hub[doc] for doc in range(loaded, 1_000)}
    graph.add(edges_of(later), [], list(later))
    eligible = np.arange(1_000) < 995
    found = rows_of(latest_edges(graph, np.array([3]), eligible, scanned=10, most=8))
    assert [doc for _, doc, _ in found] == [994, 993, 992, 991, 990]
    assert graph.mentions(np.array([3]), cap=200).tolist() == [200]


def numbered(count: int, *, first: int = 0, mentioned: int = 3) -> dict[int, Mentions]:
    """Memories that mention an entity each and one together."""
    return {doc: {-doc: 0.5, mentioned: 1.0} for doc in range(first, first + count)}


def test_segments_stay_few_however_often_something_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones are merged; replaced data are found in the last one that has them."""
    monkeypatch.setattr("graph.adjacency.MERGED_EDGES", 64)
    graph, plain = Adjacency(edges_of(numbered(10)), []), Plain(dict(numbered(10)))
    for first in range(5, 305):
        new = numbered(1, first=first) if first % 3 else {first % 40: {7: 0.25, first: 0.75}}
        graph.add(edges_of(new), [], list(new))
        plain.put(new, {})
    every = len(plain.mentions)
    assert len(graph._segments) < 30
    everyone = np.ones(400, np.bool_)
    for entity in (3, 7, -12, -290, 300):
        some = np.array([entity])
        assert rows_of(latest_edges(graph, some, everyone, scanned=999, most=every)) == plain.latest_of(
            [entity], everyone, 999, every
        )
        assert graph.mentions(some, cap=999).tolist() == [sum(entity in each for each in plain.mentions.values())]
    docs = np.arange(400)
    assert set(rows_of(weightiest_edges(graph, docs, most=9))) == plain.weightiest_of(docs.tolist(), 9)


def test_no_more_segments_than_a_byte_can_tell_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """If they are too large to be merged often, they still are in the end."""
    monkeypatch.setattr("graph.adjacency.MERGED_EDGES", 1)
    monkeypatch.setattr("graph.adjacency.MOST_SEGMENTS", 20)
    graph = Adjacency(edges_of({}), [])
    for doc in range(100):
        graph.add(edges_of(numbered(1, first=doc)), [], [doc])
        assert len(graph._segments) < 20
    found = latest_edges(graph, np.array([3]), np.ones(100, np.bool_), scanned=999, most=999)
    assert found[1].tolist() == list(range(99, -1, -1))


def test_weights_are_exact_up_to_as_many_as_there_are_levels() -> None:
    """And near beyond that."""
    for count, error in ((LEVELS, 0.0), (3 * LEVELS, 1 / LEVELS)):
        weights = np.linspace(0.001, 1, count, dtype=np.float32)
        graph = Adjacency((np.arange(count), np.arange(count), weights), [])
        _, _, found = weightiest_edges(graph, np.arange(count), most=1)
        assert np.abs(found - weights).max() <= error


@given(st.integers(0, 2**32 - 1))
def test_nothing_is_read_out_of_bounds(seed: int) -> None:
    """Whatever the arrays contain, results stay within their bounds."""
    random = np.random.default_rng(seed)
    segment = EdgeSegment(edges_of({doc: {e: 0.5 for e in ENTITIES} for doc in range(MEMORIES)}))
    for column in (segment.docs, segment.codes, segment.entity_starts, segment.memory_starts, segment.memories):
        broken = random.random(column.size) < 0.3
        column[broken] = random.integers(-(2**31), 2**31, column.size)[broken]
    random.shuffle(segment.entities)
    graph = Adjacency(edges_of({}), [])
    graph._segments, graph._home = [segment], random.integers(0, 256, MEMORIES, np.uint8) // 2
    eligible = np.ones(MEMORIES // 2, np.bool_)
    numbers = np.array(ENTITIES, np.int64)
    _, docs, _ = latest_edges(graph, numbers, eligible, scanned=50, most=9)
    assert ((docs >= 0) & (docs < len(eligible))).all()
    graph.mentions(numbers, cap=5)
    near = Neighbourhood([Seed(e, "", "", 1.0, "exact", 9) for e in ENTITIES[:3]], 9, Bounds(memories_per_seed=4))
    view = GraphView(graph, 9, eligible)
    near.begin(view)
    top = dict.fromkeys((*range(-3, MEMORIES + 3), 2**40), 1.0)
    near.onward(view, top, {}, entities=5, from_anchors=True)
    assert set(near.entities) <= set(ENTITIES)
