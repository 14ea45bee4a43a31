"""LangGraph's store, in graphs and beside LangGraph's own."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

import trivet
from retrieval.ids import uuid7
from tests.connections import Connection, connections
from tests.examples import share_of_examples
from trivet.integrations.langgraph import TrivetStore

ANA, BEN = ("users", "ana"), ("users", "ben")


class Chat(TypedDict):
    question: str
    answer: str


@pytest.fixture
def store(client: trivet.Client) -> TrivetStore:
    return TrivetStore(client)


def test_items_are_stored_read_replaced_and_deleted(store: TrivetStore) -> None:
    value = {"likes": ["tea", 3, None], "nested": {"zoë": 1.5, "yes": True}}
    assert store.get(ANA, "taste") is None
    store.put(ANA, "taste", value)
    item = store.get(ANA, "taste")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (ANA, "taste", value)
    assert item.created_at.tzinfo is not None
    store.put(ANA, "taste", {"likes": "coffee"})
    replaced = store.get(ANA, "taste")
    assert replaced is not None
    assert replaced.value == {"likes": "coffee"}
    assert replaced.updated_at > item.updated_at
    assert store.get(BEN, "taste") is None
    store.delete(ANA, "taste")
    store.delete(ANA, "taste")
    assert store.get(ANA, "taste") is None


def test_a_query_finds_below_a_namespace_what_is_indexed(store: TrivetStore) -> None:
    store.put(ANA, "sister", {"memory": "Her sister Ines moved to Porto."})
    store.put((*ANA, "kitchen"), "kettle", {"memory": "The kettle is made of copper.", "room": "kitchen"})
    store.put(ANA, "secret", {"memory": "The sister's PIN is in the kettle."}, index=False)
    store.put(BEN, "sister", {"memory": "His sister Rosa lives in Lisbon."})
    found = store.search(ANA, query="Where does her sister live?")
    assert (found[0].key, found[0].namespace) == ("sister", ANA)
    assert found[0].score is not None
    assert {item.key for item in store.search(("users",), query="sister kettle", limit=10)} <= {"sister", "kettle"}
    assert {item.key for item in store.search((*ANA, "kitchen"), query="kettle sister")} == {"kettle"}
    assert [item.key for item in store.search(ANA, query="kettle", filter={"room": "kitchen"})] == ["kettle"]
    assert [item.key for item in store.search(ANA, query="kettle", filter={"room": {"$ne": "kitchen"}})] in (
        [],
        ["sister"],
    )
    assert {item.key for item in store.search(ANA, query=" ")} == {"sister", "kettle", "secret"}


def test_fields_say_what_a_query_searches(client: trivet.Client) -> None:
    store = TrivetStore(client, fields=["title", "parts[*].text"])
    value = {"title": "Travel", "parts": [{"text": "We went to Porto."}, {"text": "It rained."}], "note": "copper"}
    store.put(("trips",), "t1", value)
    store.put(("trips",), "t2", value, index=["note"])
    store.put(("trips",), "t3", {"other": "Porto"})
    texts = {memory.metadata["langgraph"]["key"]: memory.text for memory in client.get_all()}
    assert texts == {"t1": "Travel\nWe went to Porto.\nIt rained.", "t2": "copper", "t3": "(not indexed)"}
    assert store.search((), query="Where did we go when it rained?")[0].key == "t1"
    assert "t3" not in {item.key for item in store.search((), query="Porto")}


def test_items_that_say_the_same_are_all_found(store: TrivetStore) -> None:
    for namespace in (ANA, BEN, ("users", "cleo")):
        store.put(namespace, "drink", {"memory": "They drink green tea in the morning."})
    found = store.search(("users",), query="What do they drink in the morning?")
    assert sorted(item.namespace for item in found) == [ANA, BEN, ("users", "cleo")]
    assert len(store.search(("users",), query="What do they drink in the morning?", limit=2)) == 2


def test_other_memories_of_the_namespace_are_no_items(client: trivet.Client, store: TrivetStore) -> None:
    client.add("The kettle is copper.")
    assert (store.search(()), store.search((), query="kettle"), store.list_namespaces()) == ([], [], [])
    TrivetStore(client, namespace="elsewhere").put(ANA, "k", {"memory": "kettle"})
    assert (store.search(()), store.get(ANA, "k")) == ([], None)


def test_what_cannot_be_stored_is_said_and_the_rest_is_stored(client: trivet.Client, store: TrivetStore) -> None:
    good, bad = PutOp(ANA, "good", {"n": 1}), PutOp(ANA, "bad", {"numbers": [5] * 40_000}, index=False)
    with pytest.raises(trivet.InvalidInput, match=r"'bad'.* metadata"):
        store.batch([good, bad])
    assert store.get(ANA, "good") is not None
    assert store.get(ANA, "bad") is None
    with pytest.raises(trivet.InvalidInput, match="finite number"):
        store.put(ANA, "bad", {"n": float("nan")})
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "k", {})])
    long = ("a" * 123, "b" * 122)
    store.put(long, "k", {"n": 1})
    assert store.list_namespaces(prefix=long) == [long]
    with pytest.raises(InvalidNamespaceError, match=r"^the labels of a namespace may take 246 characters in all: \("):
        store.put((*long, "c"), "k", {"n": 1})
    with pytest.raises(ValueError, match=r"\$in"):
        store.search((), filter={"n": {"$in": [1]}})
    with pytest.raises(trivet.InvalidInput, match="metadata"):
        store.batch([bad, PutOp(ANA, "good", None)])
    assert store.get(ANA, "good") is None
    with pytest.raises(TypeError, match="asynchronous"):
        TrivetStore(trivet.AsyncClient()).get(ANA, "k")


def test_a_graph_remembers(store: TrivetStore) -> None:
    """A node has the store from its runtime."""

    def answer(state: Chat, runtime: Runtime[None]) -> dict[str, str]:
        assert runtime.store is not None
        [best, *_] = runtime.store.search(ANA, query=state["question"])
        return {"answer": best.value["memory"]}

    store.put(ANA, "m1", {"memory": "Her sister Ines moved to Porto."})
    graph = StateGraph(Chat).add_node("answer", answer).add_edge(START, "answer").compile(store=store)
    assert "Porto" in graph.invoke({"question": "Where is her sister?", "answer": ""})["answer"]


@connections
async def test_asynchronous_methods_with_either_client(connection: Connection, database_url: str) -> None:
    async with connection(database_url) as asynchronous:
        with trivet.open(database_url=database_url, namespace="ana") as synchronous:
            for store in (TrivetStore(asynchronous), TrivetStore(synchronous)):
                await store.aput(ANA, "m1", {"memory": "Her sister Ines moved to Porto."})
                item = await store.aget(ANA, "m1")
                assert item is not None
                assert [each.key for each in await store.asearch(("users",), query="Where is Ines?")] == ["m1"]
                assert [each.key for each in await store.asearch(("users",))] == ["m1"]
                assert await store.alist_namespaces(prefix=("users",)) == [ANA]
                await store.adelete(ANA, "m1")
                assert await store.asearch(()) == []


labels = st.sampled_from(["a", "b", "*x"])
paths = st.lists(labels, min_size=1, max_size=3).map(tuple)
keys = st.sampled_from(["", "k", "a.b /", "ключ" * 100])
# Neither 0 nor 1, which Python treats as booleans and JSON does not.
leaves = st.none() | st.booleans() | st.integers(2, 9) | st.sampled_from(["", "tea", "5", " "])
values = st.dictionaries(
    st.sampled_from("xyz"), leaves | st.lists(leaves, max_size=2) | st.dictionaries(st.sampled_from("xy"), leaves)
)
numbers = st.fixed_dictionaries({}, optional={name: st.integers(2, 9) for name in ("$eq", "$ne")})
wanted = st.dictionaries(st.sampled_from("xyz"), leaves | st.lists(leaves, max_size=2) | numbers, max_size=2)
patterns = st.lists(labels | st.just("*"), min_size=1, max_size=2).map(tuple)
conditions = st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), patterns)
puts = st.builds(lambda path, key, value: PutOp(path, key, value), paths, keys, values | st.none())
reads = st.one_of(
    st.builds(GetOp, paths, keys),
    st.builds(lambda path, wanted: SearchOp(path, wanted, 1_000), st.lists(labels, max_size=2).map(tuple), wanted),
    st.builds(
        ListNamespacesOp,
        st.lists(conditions, max_size=2).map(tuple),
        st.none() | st.integers(1, 3),
        st.integers(1, 4),
        st.integers(0, 2),
    ),
)
batches = st.lists(st.lists(puts | reads, min_size=1, max_size=6), min_size=1, max_size=4)


def read(store: BaseStore, op: Op) -> Any:
    """An operation's result without times and, in a search, without the order, which differs between stores.

    LangGraph's own store also lists namespaces without items.
    """
    if isinstance(op, ListNamespacesOp) and isinstance(store, InMemoryStore):
        [items] = store.batch([SearchOp((), limit=1_000)])
        full = InMemoryStore()
        full.batch([PutOp(item.namespace, item.key, item.value) for item in items])  # type: ignore[union-attr]
        store = full
    [result] = store.batch([op])
    if isinstance(op, GetOp):
        return result and (result.namespace, result.key, result.value)  # type: ignore[union-attr]
    if isinstance(op, SearchOp):
        found = [(item.namespace, item.key, item.value) for item in result]  # type: ignore[union-attr]
        return sorted(found, key=repr)
    return result


def test_it_does_what_langgraphs_own_store_does(database_url: str) -> None:
    with trivet.open(database_url=database_url) as client:

        @settings(max_examples=share_of_examples(0.3))
        @given(batches=batches)
        def check(batches: list[list[Op]]) -> None:
            store, own = TrivetStore(client, namespace=uuid7()), InMemoryStore()
            for ops in batches:
                for op in ops:
                    if not isinstance(op, PutOp):
                        assert read(store, op) == read(own, op)
                store.batch(ops)
                own.batch(ops)
            assert read(store, SearchOp((), limit=1_000)) == read(own, SearchOp((), limit=1_000))

        check()


def test_pages_of_a_search_make_up_all_of_it(store: TrivetStore) -> None:
    store.batch([PutOp(ANA, f"k{number:03}", {"n": number}) for number in range(250)])
    keys = [item.key for offset in range(0, 300, 90) for item in store.search(ANA, limit=90, offset=offset)]
    assert sorted(keys) == [f"k{number:03}" for number in range(250)]
    assert len(store.search(ANA, filter={"n": {"$gte": 100, "$lt": 110}}, limit=1_000)) == 10
