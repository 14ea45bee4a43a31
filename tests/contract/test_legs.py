"""The contract of every leg."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval.embedding.onnx import OnnxEmbedder
from retrieval.ingest.service import Ingest
from retrieval.legs.base import Hit, LegRanking, Retriever
from retrieval.legs.bm25 import Bm25Retriever
from retrieval.legs.graph import GraphRetriever
from retrieval.legs.vector import VectorRetriever
from retrieval.store.pool import Pool
from retrieval.types.memory import MemoryInput
from retrieval.types.search import Filters, Leg
from tests.rankings import ranking_of
from tests.snapshot import Ask, Indexed
from tests.turns import uncached

RETRIEVERS: Mapping[Leg, Callable[[Pool], Retriever]] = {
    Leg.VECTOR: VectorRetriever,
    Leg.BM25: lambda _: Bm25Retriever(),
    Leg.GRAPH: GraphRetriever,
}
RANGES = {Leg.VECTOR: (-1.0, 1.0), Leg.BM25: (0.0, float("inf")), Leg.GRAPH: (0.0, 1.0)}

QUERY = "What did Otto Brandt paint?"
ODD_QUERIES = (
    "",
    " ",
    "🎉",
    "?!",
    "_",
    "the",
    "北京烤鸭",
    "o\u0301\u0301",
    "\u202eOtto",
    "Otto " * 1_000,
    "%_\\'\";--",
)


def day(number: int) -> datetime:
    """A day of January 2024."""
    return datetime(2024, 1, number, tzinfo=UTC)


def painted(id_: str, what: str, **fields: object) -> MemoryInput:
    """A memory that all three legs find."""
    return MemoryInput(id=id_, text=f"Otto Brandt painted {what}.", **{"created_at": day(1), **fields})  # type: ignore[arg-type]


class Bench:
    """One leg over a database that the test fills."""

    def __init__(self, leg: Leg, pool: Pool, embedder: OnnxEmbedder) -> None:
        self.leg = leg
        self._mirrored = Indexed(pool)
        self._embedder = embedder
        self._ingest = Ingest(pool, uncached(embedder))
        self._retriever = RETRIEVERS[leg](pool)

    async def add(self, *memories: MemoryInput, namespace: str = "n") -> None:
        """Store memories, all of which must be accepted."""
        assert {result.status for result in await self._ingest.add(namespace, memories)} == {"created"}

    async def delete(self, id_: str) -> None:
        """Delete one."""
        await self._ingest.delete("n", id_)

    async def hits(self, text: str = QUERY, *, namespace: str = "n", **changes: object) -> tuple[Hit, ...]:
        """The leg's answer, checked for what holds for every answer."""
        ask = Ask(text=text, namespace=namespace, embedding=self._embedding_of(text), fan_out=50, explain=True)
        ask = replace(ask, **changes)  # type: ignore[arg-type]
        ranking = await self._mirrored.search(self._retriever, ask)
        keys = [(-hit.score, hit.id) for hit in ranking.hits]
        assert keys == sorted(keys), "score descending, ties by id"
        assert len({hit.id for hit in ranking.hits}) == len(keys) <= ask.fan_out
        least, most = RANGES[self.leg]
        assert all(least <= hit.score <= most for hit in ranking.hits)
        return ranking.hits

    async def ids(self, text: str = QUERY, **changes: object) -> list[str]:
        """The ids of the leg's answer."""
        return [hit.id for hit in await self.hits(text, **changes)]  # type: ignore[arg-type]

    def _embedding_of(self, text: str) -> Callable[[], Awaitable[NDArray[np.float32]]]:
        return lambda: self._embedder.embed_query(text)


@pytest.fixture(params=list(Leg))
async def bench(request: pytest.FixtureRequest, pool: Pool, embedder: OnnxEmbedder) -> Bench:
    return Bench(request.param, pool, embedder)


async def test_it_finds_what_was_stored(bench: Bench) -> None:
    """And hits of the graph leg have a path."""
    await bench.add(painted("a", "the barn"), MemoryInput(id="b", text="Bread needs flour and water."))
    hits = await bench.hits()
    assert hits[0].id == "a"
    if bench.leg is Leg.GRAPH:
        assert hits[0].path


async def test_an_empty_namespace_has_no_hits(bench: Bench) -> None:
    assert await bench.ids() == []
    await bench.add(painted("a", "the barn"))
    await bench.delete("a")
    assert await bench.ids() == []


async def test_fan_out_cuts_the_same_ranking(bench: Bench) -> None:
    """The first hits do not depend on how many are requested."""
    await bench.add(*(painted(f"m{at:02}", f"barn {at} {'red ' * at}") for at in range(30)))
    whole = await bench.hits()
    assert len(whole) == 30
    for fan_out in (1, 7, 29, 31):
        assert [hit.id for hit in await bench.hits(fan_out=fan_out)] == [hit.id for hit in whole[:fan_out]]


async def test_ties_go_by_id(bench: Bench) -> None:
    """And not by the order of insertion, even if the cut goes through equal scores."""
    for id_ in ("d", "b", "e", "a", "c"):
        await bench.add(painted(id_, "the barn"))
    hits = await bench.hits()
    assert [hit.id for hit in hits] == ["a", "b", "c", "d", "e"]
    assert len({round(hit.score, 6) for hit in hits}) == 1
    assert await bench.ids(fan_out=3) == ["a", "b", "c"]


FILTERS = [
    (Filters(tags_all=["red", "big"]), {"a"}),
    (Filters(tags_all=["red"], tags_any=["small", "huge"]), {"b"}),
    (Filters(kind=["chunk", "message"]), {"b", "c"}),
    (Filters(session_id=["s1"]), {"a"}),
    (Filters(document_id=["d1"]), {"c"}),
    (Filters(speaker=["Ana", "Bo"]), {"a", "b"}),
    (Filters(created_after=day(15)), {"b", "c"}),
    (Filters(created_before=day(5)), {"a"}),
    (Filters(metadata={"deep": {"x": 1}}), {"c"}),
    (Filters(speaker=["Ana"], session_id=["s2"]), set()),
    (Filters(tags_any=["'; drop table memory --"]), set()),
]


async def test_filters_hold_before_the_cut(bench: Bench) -> None:
    """However many others fit the query better."""
    await bench.add(*(painted(f"x{at}", "a picture", speaker="Zoe", created_at=day(10)) for at in range(60)))
    await bench.add(
        painted("a", "the barn", tags=["red", "big"], session_id="s1", speaker="Ana", created_at=day(1)),
        painted("b", "the fence", tags=["red", "small"], session_id="s2", speaker="Bo", kind="message",
                created_at=day(20)),
        painted("c", "the boat", kind="chunk", document_id="d1", metadata={"deep": {"x": 1, "y": 2}},
                created_at=day(21)),
    )  # fmt: skip
    # The graph leg looks at the latest memories of an entity only, the others at all.
    assert len(await bench.ids(filters=Filters(speaker=["Zoe"]))) >= (30 if bench.leg is Leg.GRAPH else 50)
    for filters, expected in FILTERS:
        assert set(await bench.ids(filters=filters, fan_out=3)) == expected


async def test_only_what_is_visible(bench: Bench) -> None:
    """Superseded, expired, not yet created, deleted; as of any moment."""
    now = datetime.now(UTC)
    await bench.add(
        painted("old", "the barn red", created_at=day(1)),
        painted("new", "the barn blue", created_at=day(10), supersedes="old"),
        painted("short", "the shed", created_at=day(2), expires_at=day(4)),
        painted("future", "the tower", created_at=now + timedelta(days=30)),
        painted("gone", "the gate", created_at=day(1)),
    )
    await bench.delete("gone")
    assert set(await bench.ids()) - {"future"} == {"new"}
    assert set(await bench.ids(include_superseded=True)) - {"future"} == {"new", "old"}
    assert set(await bench.ids(as_of=day(3))) == {"old", "short"}
    assert set(await bench.ids(as_of=day(5))) == {"old"}
    assert set(await bench.ids(as_of=day(11))) == {"new"}
    assert await bench.ids(as_of=day(1) - timedelta(days=1)) == []


async def test_nothing_crosses_a_namespace(bench: Bench) -> None:
    """Neither memories nor statistics leak: another tenant's rows change no score."""
    await bench.add(painted("a", "the barn"), painted("b", "the old red barn"))
    before = await bench.hits()
    await bench.add(*(painted(id_, "the barn") for id_ in ("a", "b", "c", "d")), namespace="other")
    assert await bench.hits() == before
    assert len(await bench.ids(namespace="other")) == 4
    assert await bench.ids(namespace="third") == []


async def test_odd_queries_and_texts(bench: Bench) -> None:
    """Any script can be stored and searched; every hit exists."""
    texts = ["🎉🎉", "我喜欢北京烤鸭", "Ünal kaufte Äpfel in Zürich", "שלום עולם", "the of", "o\u0301\u0301", "_"]
    await bench.add(*(MemoryInput(id=f"m{at}", text=text) for at, text in enumerate(texts)))
    for text in (*ODD_QUERIES, *texts):
        assert set(await bench.ids(text)) <= {f"m{at}" for at in range(len(texts))}
    if bench.leg is not Leg.GRAPH:
        for at, text in enumerate(texts[:-1]):  # an underscore is no term
            assert f"m{at}" in await bench.ids(text)
    assert "m2" in await bench.ids("Was kaufte Ünal in Zürich?")


TALK = (
    "Hello there.",
    "Otto Brandt painted the barn.",
    "All of it?",
    "Every board, in red.",
    "And the fence?",
    "No, somebody else did that.",
)


def talk(session: str = "s", prefix: str = "t", **fields: object) -> list[MemoryInput]:
    """A chat, a turn a day."""
    return [
        MemoryInput(id=f"{prefix}{at}", text=text, session_id=session, position=at, created_at=day(at + 1), **fields)  # type: ignore[arg-type]
        for at, text in enumerate(TALK)
    ]


async def test_a_turn_that_fits_comes_before_those_around_it(bench: Bench) -> None:
    """Which come with it."""
    await bench.add(*talk())
    found = await bench.ids()
    assert found[0] == "t1"
    assert "t2" in found


async def test_filters_hold_in_a_chat(bench: Bench) -> None:
    """For memories found by their own words as for those found through others."""
    await bench.add(*talk(), *talk("other", "o", speaker="Zoe"))
    for filters, expected in (
        (Filters(session_id=["s"]), {f"t{at}" for at in range(len(TALK))}),
        (Filters(speaker=["Zoe"]), {f"o{at}" for at in range(len(TALK))}),
        (Filters(session_id=["s"], created_after=day(2)), {"t2", "t3", "t4", "t5"}),
        (Filters(session_id=["s"], created_before=day(2)), {"t0"}),
        (Filters(speaker=["Bo"]), set[str]()),
    ):
        assert set(await bench.ids(filters=filters)) <= expected
    assert set(await bench.ids(as_of=day(2))) <= {"t0", "t1", "o0", "o1"}
    assert {"t1", "o1"} <= set(await bench.ids(as_of=day(2)))


async def test_a_deleted_turn_leaves_no_trace(bench: Bench) -> None:
    """Without it, a chat is answered as if it never had it."""
    await bench.add(*talk(), *(painted(f"m{at}", f"barn {at}") for at in range(5)))
    await bench.delete("t1")
    left = await bench.hits()
    await bench.add(*talk()[:1], *talk()[2:], *(painted(f"m{at}", f"barn {at}") for at in range(5)), namespace="never")
    assert [hit.id for hit in left] == [hit.id for hit in await bench.hits(namespace="never")]
    scores = [hit.score for hit in await bench.hits(namespace="never")]
    assert [hit.score for hit in left] == pytest.approx(scores, abs=2e-3)


async def test_chats_of_another_namespace_change_nothing(bench: Bench) -> None:
    """Although sessions and ids are the same."""
    await bench.add(*talk())
    before = await bench.hits()
    await bench.add(*talk(), painted("x", "the barn", session_id="s", position=1), namespace="other")
    assert await bench.hits() == before


async def test_the_order_of_arrival_changes_nothing(bench: Bench) -> None:
    """Turns in order, one by one, or backwards."""
    turns = [*talk(), *talk("other", "o")]
    await bench.add(*turns, namespace="at once")
    for one in turns:
        await bench.add(one, namespace="in order")
    for one in reversed(turns):
        await bench.add(one, namespace="backwards")
    at_once = await bench.hits(namespace="at once")
    for name in ("in order", "backwards"):
        hits = await bench.hits(namespace=name)
        assert {hit.id: hit.score for hit in hits} == pytest.approx({hit.id: hit.score for hit in at_once}, abs=1e-3)
        if bench.leg is not Leg.VECTOR:  # stored vectors are mixed from the rounded ones of that moment
            assert [hit.id for hit in hits] == [hit.id for hit in at_once]


async def test_the_same_question_has_the_same_answer(bench: Bench) -> None:
    await bench.add(*talk(), *(painted(f"m{at}", f"barn {at}") for at in range(20)))
    assert await bench.hits() == await bench.hits() == await bench.hits()


async def test_a_leg_answers_whatever_the_others_found(bench: Bench) -> None:
    """Nothing, memories that are gone, or all there are."""
    await bench.add(*talk(), *(painted(f"m{at}", f"barn {at}") for at in range(5)))
    everything = [("any", doc, 1 / (doc + 1)) for doc in range(40)]

    def told(hits: list[tuple[str, int, float]]) -> Callable[[], Awaitable[Mapping[Leg, LegRanking]]]:
        async def other_rankings() -> Mapping[Leg, LegRanking]:
            return {Leg.VECTOR: ranking_of(hits), Leg.BM25: ranking_of(hits)}

        return other_rankings

    stored = {f"t{at}" for at in range(len(TALK))} | {f"m{at}" for at in range(5)}
    for hits in ([], everything, everything[::-1][-1:]):
        found = await bench.ids(other_rankings=told(hits))
        assert set(found) <= stored
        assert found
    gone = await bench.ids(other_rankings=told([("gone", 9_999, 1.0)]))
    assert set(gone) <= stored
