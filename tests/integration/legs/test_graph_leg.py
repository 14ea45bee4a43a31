"""The graph leg as the pipeline sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph import store
from graph.extraction import extract
from graph.graph_rows import DocGraph, GivenRelation
from graph.neighbourhood import Bounds
from retrieval.ingest.service import Ingest
from retrieval.legs.base import Hit, LegRanking
from retrieval.legs.graph import GraphRetriever, anchors_of
from retrieval.profiles.profile import DEFAULT
from retrieval.store.pool import Pool
from retrieval.types.memory import EntityInput, MemoryInput, RelationInput
from retrieval.types.namespace import RuleInput, SymmetricRule, TransitiveRule
from retrieval.types.search import Filters, Leg
from tests.rankings import ranking_of
from tests.snapshot import Ask, Indexed
from tests.turns import hashed, own_vector

NS = 7
TEXTS = {
    1: "I met Caroline at the choir in Rome.",
    2: "Caroline sells paintings.",
    3: "The choir sang in Oslo.",
    4: "Bread needs flour.",
}
_NAMESPACE: LiteralString = """
    insert into namespace (ns, name, next_doc) overriding system value values (%(ns)s, 'walks', %(next_doc)s)
"""
_MEMORY: LiteralString = """
    insert into memory (ns, doc, id, kind, text, created_at, tags, metadata, entities, relations, fingerprint,
                        length, embedding, traits)
    values (%(ns)s, %(doc)s, %(id)s, 'memory', %(text)s, %(created_at)s, %(tags)s, '{}', '[]', '[]', '', 1,
            %(embedding)s::halfvec, 0)
"""


def axis(number: int) -> NDArray[np.float32]:
    vector = np.zeros(384, dtype=np.float32)
    vector[number] = 1
    return vector


def given(vector: NDArray[np.float32]) -> Callable[[], Awaitable[NDArray[np.float32]]]:
    async def embedding() -> NDArray[np.float32]:
        return vector

    return embedding


def found_by(**legs: Sequence[tuple[int, float]]) -> Callable[[], Awaitable[Mapping[Leg, LegRanking]]]:
    """Other legs' hits: ordinals and scores, best first, by leg."""

    async def other_rankings() -> Mapping[Leg, LegRanking]:
        return {Leg(leg): ranking_of((f"m{doc}", doc, score) for doc, score in hits) for leg, hits in legs.items()}

    return other_rankings


async def dead() -> NDArray[np.float32]:
    raise ConnectionError("no embedder")


class Walks:
    """The graph leg over a database."""

    def __init__(self, pool: Pool, *, bounds: Bounds | None = None) -> None:
        self._mirrored = Indexed(pool)
        self._leg = GraphRetriever(pool, bounds=bounds)

    async def search(self, ask: Ask) -> LegRanking:
        """What it answers."""
        return await self._mirrored.search(self._leg, ask)


@pytest.fixture
async def leg(pool: Pool) -> Walks:
    """Memory n has the unit vector of axis n, the id mn, the tag tn and was created on the n-th."""
    async with pool.connection() as conn, conn.transaction():
        await _load_vectors(conn)
    return Walks(pool)


async def _load_vectors(conn: AsyncConnection[Any]) -> None:
    await conn.execute(_NAMESPACE, {"ns": NS, "next_doc": max(TEXTS) + 1})
    for doc, text in TEXTS.items():
        row = {"ns": NS, "doc": doc, "id": f"m{doc}", "text": text, "tags": [f"t{doc}"]}
        row["created_at"] = datetime(2024, 1, doc, tzinfo=UTC)
        row["embedding"] = str(axis(doc).tolist())
        await conn.execute(_MEMORY, row)
    await store.write(conn, NS, [DocGraph(doc, extract(text)) for doc, text in TEXTS.items()])


ASK = Ask(
    namespace="walks",
    text="Where did Caroline go?",
    embedding=given(axis(300)),
    fan_out=10,
)


def ids(ranking: LegRanking) -> list[str]:
    return [hit.id for hit in ranking.hits]


async def test_it_finds_what_mentions_the_entity_and_what_lies_behind(leg: Walks) -> None:
    ranking = await leg.search(replace(ASK, explain=True))
    assert sorted(ids(ranking)[:2]) == ["m1", "m2"]
    assert ids(ranking)[2:] == ["m3"]
    assert ranking.hits[2].path == ("Caroline", "choir")
    assert all(0 < hit.score <= 1 for hit in ranking.hits)


async def test_similarity_decides_between_memories_as_near(leg: Walks) -> None:
    assert ids(await leg.search(replace(ASK, embedding=given(axis(2)))))[0] == "m2"
    assert ids(await leg.search(replace(ASK, embedding=given(axis(1)))))[0] == "m1"
    assert ids(await leg.search(replace(ASK, embedding=given(axis(3)))))[0] != "m4"


async def test_without_hops_only_mentions_count(leg: Walks) -> None:
    assert sorted(ids(await leg.search(replace(ASK, max_hops=0)))) == ["m1", "m2"]


async def test_it_lives_when_the_embedder_is_dead(leg: Walks) -> None:
    ranking = await leg.search(replace(ASK, embedding=dead))
    assert sorted(ids(ranking)) == ["m1", "m2", "m3"]
    assert ranking.hits[0].score == pytest.approx(1 / (1 + 2 * DEFAULT.adjacency))  # the rest is for neighbouring turns
    assert ranking.details["similarity"] is False


@pytest.mark.parametrize("text", ["", "what is it?", "Zorro", "\U0001f389", "the \x00 of"])
async def test_with_nothing_to_say_it_returns_nothing(leg: Walks, text: str) -> None:
    assert (await leg.search(replace(ASK, text=text, embedding=dead))).hits == ()


async def test_filters_and_time_hold_also_for_what_is_walked_through(leg: Walks) -> None:
    assert ids(await leg.search(replace(ASK, filters=Filters(tags_any=["t2", "t3"])))) == ["m2"]
    assert ids(await leg.search(replace(ASK, as_of=datetime(2024, 1, 1, tzinfo=UTC)))) == ["m1"]


async def test_it_cuts_to_the_fan_out(leg: Walks) -> None:
    full = await leg.search(ASK)
    cut = await leg.search(replace(ASK, fan_out=1))
    assert ids(cut) == ids(full)[:1]


async def test_what_the_other_legs_found_leads_on(leg: Walks) -> None:
    """To memories without the query's entities, with the reason in words."""
    ask = replace(ASK, text="What did they sing?", explain=True)
    assert (await leg.search(ask)).hits == ()
    ranking = await leg.search(replace(ask, other_rankings=found_by(vector=[(3, 0.8)], bm25=[])))
    hits = {hit.id: hit for hit in ranking.hits}
    assert set(hits) == {"m1", "m2", "m3"}
    assert (ranking.details["anchors"], ranking.details["anchors_from"]) == (1, ["vector"])
    assert (hits["m3"].path, hits["m3"].why) == ((), "This memory is among the closest of the other legs.")
    assert hits["m1"].path == ("choir",)
    assert hits["m1"].why == "m3, close to the query, mentions choir, and this memory mentions choir."
    assert hits["m2"].path == ("choir", "Caroline")
    assert hits["m2"].why == (
        "m3, close to the query, mentions choir, m1 also mentions Caroline, and this memory mentions Caroline."
    )


async def test_seeds_and_anchors_lead_together(leg: Walks) -> None:
    """Paths of the query's entities begin there; an anchor without entities has none."""
    ranking = await leg.search(replace(ASK, other_rankings=found_by(bm25=[(4, 3.0)]), explain=True))
    hits = {hit.id: hit for hit in ranking.hits}
    assert {"m1", "m2", "m4"} <= set(hits)
    assert hits["m2"].path == ("Caroline",)
    assert hits["m2"].why == "The query mentions Caroline, and this memory mentions Caroline."
    assert (hits["m4"].path, hits["m4"].why) == ((), "This memory is among the closest of the other legs.")


async def test_an_anchor_that_names_nothing_known_is_all_there_is(leg: Walks) -> None:
    ranking = await leg.search(replace(ASK, text="What is it?", other_rankings=found_by(vector=[(4, 0.5)])))
    assert ids(ranking) == ["m4"]


async def test_filters_hold_for_what_anchors_lead_to(leg: Walks) -> None:
    other_rankings = found_by(vector=[(3, 0.8)])
    ask = replace(ASK, text="What did they sing?", other_rankings=other_rankings)
    assert ids(await leg.search(replace(ask, filters=Filters(tags_any=["t3", "t2"])))) == ["m3"]
    assert set(ids(await leg.search(replace(ask, filters=Filters(tags_any=["t3", "t1"]))))) == {"m3", "m1"}


@pytest.mark.parametrize("anchor", [3, 99])
async def test_an_anchor_that_may_not_be_seen_leads_nowhere(leg: Walks, anchor: int) -> None:
    """Not even to visible memories: another leg found it before its deletion, or is mistaken."""
    ask = replace(ASK, text="What did they sing?", other_rankings=found_by(vector=[(anchor, 0.8)]), explain=True)
    ranking = await leg.search(replace(ask, filters=Filters(tags_any=["t1", "t2"])))
    assert ids(ranking) == []
    assert (
        await leg.search(replace(ask, filters=Filters(tags_any=["t1"]), other_rankings=found_by(vector=[(1, 0.8)])))
    ).hits


async def test_without_hops_anchors_count_nothing(leg: Walks) -> None:
    """Nor is there anything to wait for."""

    async def never() -> Mapping[Leg, LegRanking]:
        raise AssertionError("asked for")

    assert sorted(ids(await leg.search(replace(ASK, max_hops=0, other_rankings=never)))) == ["m1", "m2"]


async def test_without_anchors_in_the_profile_there_are_none(leg: Walks) -> None:
    ask = replace(ASK, text="What did they sing?", other_rankings=found_by(vector=[(3, 0.8)]))
    assert ids(await leg.search(replace(ask, profile=structs.replace(DEFAULT, anchors=0)))) == []


@pytest.mark.parametrize("other_rankings", [found_by(), found_by(vector=[], bm25=[]), found_by(vector=[(3, -0.2)])])
async def test_legs_that_found_nothing_change_nothing(leg: Walks, other_rankings: Any) -> None:
    """Like memories that point away from the query."""
    assert ids(await leg.search(replace(ASK, other_rankings=other_rankings))) == ids(await leg.search(ASK))


async def test_the_same_question_gives_the_same_answer(leg: Walks) -> None:
    ask = replace(ASK, other_rankings=found_by(vector=[(3, 0.8), (4, 0.1)], bm25=[(2, 7.0), (3, 1.0)]), explain=True)
    first = await leg.search(ask)
    assert all(0 < hit.score <= 1 for hit in first.hits)
    for _ in range(3):
        assert (await leg.search(ask)).hits == first.hits


async def test_rarities_are_those_of_the_seeds(leg: Walks) -> None:
    """In (0, 1]; a query without entities has none."""
    [rarity] = (await leg.search(ASK)).entity_idfs
    assert 0 < rarity < 1
    assert (await leg.search(replace(ASK, text="Rome"))).entity_idfs == (1.0,)
    assert (await leg.search(replace(ASK, text="it", other_rankings=found_by(vector=[(3, 1.0)])))).entity_idfs == ()


def test_anchors_are_the_best_of_the_legs_together() -> None:
    """Each leg's best counts 1 and its last 0, BM25 from 0 on; squared, times the cosine."""

    def hits(*scores: float, first: int = 1) -> LegRanking:
        return ranking_of((f"m{doc}", doc, score) for doc, score in enumerate(scores, first))

    vector, bm25 = hits(0.9, 0.6, 0.5), hits(8.0, 4.0, first=2)
    assert anchors_of({Leg.VECTOR: vector, Leg.BM25: bm25}, 5) == pytest.approx(
        {2: (0.25 + 1) ** 2 * 0.6, 1: 1.0 * 0.9, 3: 0.5**2 * 0.5}
    )
    assert anchors_of({Leg.VECTOR: vector, Leg.BM25: bm25}, 1) == pytest.approx({2: 1.25**2 * 0.6})
    assert anchors_of({Leg.BM25: bm25}, 5) == pytest.approx({2: 1.0, 3: 0.25})
    assert anchors_of({Leg.VECTOR: hits(0.4)}, 5) == pytest.approx({1: 0.4})
    assert anchors_of({}, 5) == {}


class Chats:
    """The leg over memories as the test writes them; their vectors are unlike all others."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._ingest = Ingest(pool, hashed())
        self._leg = Walks(pool, bounds=Bounds(time_s=10))

    async def add(self, *memories: MemoryInput, namespace: str = "n") -> None:
        """Store memories."""
        assert {result.status for result in await self._ingest.add(namespace, memories)} == {"created"}

    async def docs(self, *wanted: str) -> dict[str, int]:
        """Ordinals by id."""
        async with self._pool.connection() as conn:
            rows = await (
                await conn.execute("select id, doc from memory where id = any(%s)", (list(wanted),))
            ).fetchall()
        return dict(rows)

    async def hits(self, text: str, *, namespace: str = "n", **changes: Any) -> dict[str, Hit]:
        """The hits by id, best first."""
        ask = replace(ASK, namespace=namespace, text=text, embedding=dead, explain=True)
        ranking = await self._leg.search(replace(ask, **changes))
        return {hit.id: hit for hit in ranking.hits}


@pytest.fixture
def chats(pool: Pool) -> Chats:
    return Chats(pool)


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
TALK = ["hm", "Caroline went to the regatta.", "and it rained", "so wet", "all day"]


def talk(session: str = "s", prefix: str = "t", **fields: Any) -> list[MemoryInput]:
    return [
        MemoryInput(id=f"{prefix}{at}", text=text, session_id=session, position=at,
                    created_at=NOON + timedelta(minutes=at), tags=[f"tag{at}"], **fields)
        for at, text in enumerate(TALK)
    ]  # fmt: skip


async def test_the_turns_beside_a_turn_come_with_it(chats: Chats) -> None:
    """The turns right before and after it, with a share of its activation and without a path."""
    await chats.add(*talk())
    hits = await chats.hits("Caroline")
    share = DEFAULT.adjacency
    assert list(hits) == ["t1", "t0", "t2"]
    assert [hit.score for hit in hits.values()] == pytest.approx([1 / (1 + 2 * share)] + [share / (1 + 2 * share)] * 2)
    assert hits["t1"].why == "The query mentions Caroline, and this memory mentions Caroline."
    assert (hits["t2"].path, hits["t2"].why) == ((), "This memory stands next to one that was reached.")


async def test_without_adjacency_a_turn_comes_alone(chats: Chats) -> None:
    await chats.add(*talk())
    assert list(await chats.hits("Caroline", profile=structs.replace(DEFAULT, adjacency=0.0))) == ["t1"]


async def test_filters_hold_for_the_turns_beside(chats: Chats) -> None:
    await chats.add(*talk())
    assert list(await chats.hits("Caroline", filters=Filters(tags_any=["tag1", "tag2"]))) == ["t1", "t2"]
    assert list(await chats.hits("Caroline", as_of=NOON + timedelta(minutes=1))) == ["t1", "t0"]
    assert list(await chats.hits("Caroline", filters=Filters(tags_any=["tag2"]))) == []


async def test_turns_of_other_sessions_and_namespaces_are_not_beside(chats: Chats) -> None:
    await chats.add(*talk(), MemoryInput(id="u", text="so wet", session_id="u", position=2))
    await chats.add(*talk(prefix="o"), namespace="other")
    assert set(await chats.hits("Caroline")) == {"t0", "t1", "t2"}
    assert set(await chats.hits("Caroline", namespace="other")) == {"o0", "o1", "o2"}


async def test_the_turn_after_an_anchor_comes_with_it(chats: Chats) -> None:
    """Even if neither mentions an entity."""
    await chats.add(*talk())
    docs = await chats.docs("t3")
    hits = await chats.hits("How was it?", other_rankings=found_by(vector=[(docs["t3"], 0.7)]))
    assert list(hits) == ["t3", "t2", "t4"]


async def test_similarity_counts_for_the_turns_beside(chats: Chats) -> None:
    await chats.add(*talk())

    async def like_the_third() -> NDArray[np.float32]:
        return own_vector(TALK[2])

    hits = await chats.hits("Caroline", embedding=like_the_third)
    assert next(iter(hits)) == "t2"


@pytest.mark.parametrize(
    ("stated", "rule", "why"),
    [
        (
            [("Zed Labs", "twinned with", "Quux Works")],
            SymmetricRule(relation="twinned with"),
            "The query mentions Quux Works, Zed Labs —twinned with→ Quux Works, and this memory mentions Zed Labs.",
        ),
        (
            [("Quux Works", "part of", "Acme Group"), ("Acme Group", "part of", "Zed Labs")],
            TransitiveRule(relation="part of"),
            "The query mentions Quux Works, Quux Works —part of→ Zed Labs, since Quux Works —part of→ Acme Group and "
            "Acme Group —part of→ Zed Labs (transitive), and this memory mentions Zed Labs.",
        ),
    ],
)
async def test_a_rule_leads_the_walk_and_the_reason_says_so(
    chats: Chats, stated: list[tuple[str, str, str]], rule: RuleInput, why: str
) -> None:
    """Nothing but the relation ties the two together within one hop; what is stated needs no rule."""
    relations = [RelationInput(source=source, type=type_, target=target) for source, type_, target in stated]
    await chats.add(MemoryInput(id="told", text="see the register", relations=relations))
    quux = [EntityInput(name="Quux Works")]
    for first in range(0, 120, 30):  # the evidence is far down among these
        await chats.add(*(MemoryInput(id=f"q{at}", text="noted", entities=quux) for at in range(first, first + 30)))
    await chats.add(MemoryInput(id="goal", text="over there", entities=[EntityInput(name="Zed Labs")]))
    hits = await chats.hits("Quux Works", max_hops=1, rules=[rule], fan_out=200)
    assert hits["goal"].path == ("Quux Works", "Zed Labs")
    assert hits["goal"].why == why
    if isinstance(rule, TransitiveRule):
        assert "goal" not in await chats.hits("Quux Works", max_hops=1, rules=[], fan_out=200)


async def test_what_follows_by_symmetry_is_told_with_its_reason(leg: Walks, pool: Pool) -> None:
    """Where the query may be about either end, the sentence names the direction in which it was said."""
    async with pool.connection() as conn, conn.transaction():
        relation = GivenRelation("Caroline", "married to", "Vendela")
        await store.write(conn, NS, [DocGraph(4, relations=[relation])])
    for text, other in (("Caroline?", "Vendela"), ("Vendela?", "Caroline")):
        ranking = await leg.search(replace(ASK, text=text, rules=[SymmetricRule(relation="married to")], explain=True))
        hit = next(hit for hit in ranking.hits if hit.id == "m4")
        assert hit.path == (text[:-1],)
        reached = [hit for hit in ranking.hits if other in hit.path]
        assert all(
            "Caroline —married to→ Vendela" in (hit.why or "") or "also names" in (hit.why or "") for hit in reached
        )
