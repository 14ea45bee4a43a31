"""From the legs' rankings to the memories of an answer, through the whole engine."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from math import fsum
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from classifier.intents import Intent
from retrieval.answer.answer import Answer
from retrieval.engine import Trivet
from retrieval.profiles.profile import DEFAULT
from retrieval.types.memory import EntityInput, MemoryInput
from retrieval.types.search import Leg, LegWeights, Mode, SearchRequest
from tests.serving import settings_for

FUSED = replace(DEFAULT, rescore=False)
"""The fusion's order is tested here; the rescorer's in test_rescoring."""

PROFILES = {
    profile.name: profile
    for profile in (
        FUSED,
        replace(FUSED, name="strict", vector_noise=0.0, bm25_noise=1.0),
        replace(FUSED, name="open", vector_noise=2.0, bm25_noise=0.0),
        replace(FUSED, name="wary", learned_share=0.0),
        replace(FUSED, name="capped", source_cap=1),
        replace(FUSED, name="varied", diversity=0.9),
    )
}
QUERY = "Which boats did Ida paint in the harbour?"
COLOURS = ("red", "green", "blue", "white", "black", "grey", "brown", "pink", "teal", "gold")
PLACES = ("Bergen", "Oslo", "Rome", "Porto", "Lyon", "Ghent", "Graz", "Turku", "Malmo", "Leeds")


@pytest.fixture
async def trivet(database_url: str) -> AsyncIterator[Trivet]:
    async with Trivet.open(settings_for(database_url), profiles=PROFILES) as engine:
        yield engine


def paintings() -> list[MemoryInput]:
    """Some that fit the query more or less, and others about bread."""
    return [
        *(MemoryInput(id=f"p{at}", text=f"Ida painted a {colour} boat in the harbour of {place}.")
          for at, (colour, place) in enumerate(zip(COLOURS, PLACES, strict=True))),
        *(MemoryInput(id=f"h{at}", text=f"The harbour of {place} was closed for {at + 2} days.")
          for at, place in enumerate(PLACES)),
        *(MemoryInput(id=f"b{at}", text=f"Bread number {at} needs {at + 2} spoons of {colour} flour.")
          for at, colour in enumerate(COLOURS)),
    ]  # fmt: skip


def ids(answer: Answer) -> list[str]:
    return [found.memory.id for found in answer.memories]


async def asked(trivet: Trivet, query: str = QUERY, **options: Any) -> Answer:
    return await trivet.answer("n", SearchRequest(query=query, **options))


def summed(answer: Answer, legs: Sequence[tuple[Leg, int]]) -> float:
    return fsum(answer.weighting.weights[leg] / (answer.ordering.rrf_k + rank) for leg, rank in legs)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rrf_k": 60},
        {"mode": Mode.HYBRID},
        {"mode": Mode.BM25},
        {"weights": LegWeights(vector=1.0, bm25=2.5)},
        {"profile": "open", "intent": Intent.RELATIONSHIP},
        {"profile": "strict"},
        {"profile": "wary"},
    ],
)
async def test_a_score_is_the_sum_over_the_legs_that_are_shown(trivet: Trivet, options: dict[str, Any]) -> None:
    """The scores are weight / (rrf_k + rank) with the ranks shown, and determine the order."""
    await trivet.add("n", paintings())
    answer = await asked(trivet, **options)
    assert answer.memories
    for place, found in enumerate(answer.memories, 1):
        assert not found.duplicates
        assert found.fused_rank == place
        legs = [(leg, evidence.rank) for leg, evidence in found.leg_evidence.items()]
        assert found.fused_score == summed(answer, legs)
        for leg, rank in legs:
            assert answer.fused_rankings[leg].hits[rank - 1].id == found.memory.id
        shown = {leg for leg, _ in legs}
        assert shown == {
            leg for leg, each in answer.fused_rankings.items() if found.memory.id in {h.id for h in each.hits}
        }
    scores = [found.fused_score for found in answer.memories]
    assert scores == sorted(scores, reverse=True)
    assert sum(answer.weighting.weights.values()) == pytest.approx(3.5 if "weights" in options else 1.0)


@pytest.mark.parametrize("scale", [1.0, 2**-20])
async def test_callers_see_the_same_numbers(trivet: Trivet, scale: float) -> None:
    await trivet.add("n", paintings())
    weights = {"vector": 0.5 * scale, "bm25": 0.25 * scale, "graph": 0.25 * scale}
    request = SearchRequest(query=QUERY, weights=LegWeights(**weights), rrf_k=10)
    response = await trivet.search("n", request)
    assert response.weights == weights
    for result in response.results:
        parts = [response.weights[leg] / (10 + shown.rank) for leg, shown in result.legs.items()]
        assert result.score == result.fused.score == pytest.approx(fsum(parts), rel=1e-12)


async def test_what_is_no_better_than_chance_has_no_say(trivet: Trivet) -> None:
    """The strict profile keeps only each leg's best, the open one everything; the graph leg is never cut."""
    await trivet.add("n", paintings())
    strict, usual, wide = [await asked(trivet, profile=name) for name in ("strict", "default", "open")]
    for leg in (Leg.VECTOR, Leg.BM25):
        one, some, every = (answer.fused_rankings[leg].hits for answer in (strict, usual, wide))
        assert {hit.score for hit in one} == {every[0].score}
        assert every[: len(some)] == some
        assert len(one) <= len(some) < len(every)
    assert {len(answer.fused_rankings[Leg.GRAPH].hits) for answer in (strict, usual, wide)} == {
        len(wide.fused_rankings[Leg.GRAPH].hits)
    }
    assert ids(usual)[0] in {f"p{at}" for at in range(10)}


async def test_a_leg_that_runs_alone_is_heard_out(trivet: Trivet) -> None:
    """Whatever the profile, every memory has a cosine."""
    await trivet.add("n", paintings())
    for mode in (Mode.VECTOR, Mode.BM25, Mode.GRAPH):
        strict, wide = [await asked(trivet, mode=mode, profile=name, top_k=40) for name in ("strict", "open")]
        assert ids(strict) == ids(wide)
    assert len((await asked(trivet, mode=Mode.VECTOR, top_k=40)).memories) == 30


async def test_a_leg_of_weight_0_changes_nothing(trivet: Trivet) -> None:
    """Nor does it run, and the remaining leg is not cut, as if requested alone."""
    await trivet.add("n", paintings())
    answer = await asked(trivet, weights=LegWeights(vector=1.0), top_k=40)
    assert set(answer.fused_rankings) == {Leg.VECTOR}
    assert ids(answer) == ids(await asked(trivet, mode=Mode.VECTOR, top_k=40))


async def test_where_one_leg_alone_found_anything_it_is_heard_out(trivet: Trivet) -> None:
    """The others answered, with nothing."""
    await trivet.add("n", paintings())
    query = "vessels depicted by some artist"
    alone = await asked(trivet, query, mode=Mode.VECTOR, top_k=40)
    both = await asked(trivet, query, weights=LegWeights(vector=1.0, bm25=1.0), top_k=40)
    assert not both.fused_rankings[Leg.BM25].hits
    assert ids(both) == ids(alone)


def sessions(count: int, turns: int) -> list[MemoryInput]:
    """Turns that all fit the query, the first session's best."""
    where = ["in the harbour", *(f"at {place}" for place in PLACES)]
    return [
        MemoryInput(
            id=f"s{session}-{turn}",
            text=f"Ida painted a {COLOURS[turn]} boat {where[session]}.",
            session_id=f"s{session}",
            position=10 * turn,
        )
        for session in range(count)
        for turn in range(turns)
    ]


def origins(answer: Answer) -> Counter[str | None]:
    return Counter(found.memory.session_id or found.memory.document_id for found in answer.memories)


async def test_no_source_fills_an_answer(trivet: Trivet) -> None:
    """As long as others can fill the place: the answer is full, and in the order of relevance."""
    await trivet.add("n", sessions(4, 6))
    free = await asked(trivet, top_k=24, profile="open")
    assert len(free.memories) == 24
    for cap in (1, 2, 3):
        answer = await asked(trivet, top_k=4, source_cap=cap, profile="open")
        assert len(answer.memories) == 4
        assert max(origins(answer).values()) <= cap
        expected: list[str] = []
        shown: Counter[str | None] = Counter()
        for found in free.memories:
            shown[found.memory.session_id] += 1
            if shown[found.memory.session_id] <= cap:
                expected.append(found.memory.id)
        assert ids(answer) == expected[:4]
        ranks = [found.fused_rank for found in answer.memories]
        assert ranks == sorted(ranks)


async def test_a_long_answer_is_searched_deep_enough_for_its_cap(trivet: Trivet) -> None:
    """More turns fit the query best than each leg ranks for an answer without a cap."""
    others = [
        MemoryInput(id=f"o{at}", text=f"A {colour} boat lies {where}.", session_id=f"o{at}")
        for at, (colour, where) in enumerate((colour, where) for colour in COLOURS for where in ("ashore", "at sea"))
    ]
    await trivet.add("n", [*sessions(8, 8), *others])
    answer = await asked(trivet, top_k=30, source_cap=1, profile="open")
    assert len(origins(answer)) > 8


async def test_where_there_is_nothing_else_a_source_fills_the_answer(trivet: Trivet) -> None:
    """The best beyond the cap comes after those within it."""
    await trivet.add("n", sessions(2, 6))
    answer = await asked(trivet, top_k=6, source_cap=1, profile="open")
    assert len(answer.memories) == 6
    assert len({found.memory.session_id for found in answer.memories[:2]}) == 2
    rest = [found.fused_rank for found in answer.memories[2:]]
    assert rest == sorted(rest)
    assert rest[0] < answer.memories[1].fused_rank or rest[0] == answer.memories[1].fused_rank + 1


async def test_documents_are_sources_and_memories_of_none_are_not_capped(trivet: Trivet) -> None:
    chunks = [
        MemoryInput(id=f"c{at}", text=f"Ida painted a {colour} boat in the harbour.", kind="chunk", document_id="d")
        for at, colour in enumerate(COLOURS[:5])
    ]
    alone = [MemoryInput(id=f"m{at}", text=f"A boat that Ida painted: {colour}.") for at, colour in enumerate(COLOURS)]
    await trivet.add("n", [*chunks, *alone])
    answer = await asked(trivet, top_k=8, source_cap=1, profile="open")
    assert len(answer.memories) == 8
    assert origins(answer) == {"d": 1, None: 7}


async def test_the_profile_caps_where_the_request_says_nothing(trivet: Trivet) -> None:
    await trivet.add("n", sessions(5, 4))
    assert max(origins(await asked(trivet, top_k=4, profile="capped")).values()) == 1
    assert max(origins(await asked(trivet, top_k=4, profile="capped", source_cap=4)).values()) > 1


async def test_a_varied_answer_says_different_things(trivet: Trivet) -> None:
    """It begins with the best, is as long as any other, and repeats itself less with more diversity."""
    await trivet.add("n", paintings())
    plain = await asked(trivet, top_k=8, profile="open")
    alike = []
    for diversity in (0.0, 0.5, 1.0):
        answer = await asked(trivet, top_k=8, diversity=diversity, profile="open")
        assert len(set(ids(answer))) == 8
        assert ids(answer)[0] == ids(plain)[0]
        vectors = await trivet.embedders.default.embed_documents([found.memory.text for found in answer.memories])
        alike.append(float(np.triu(vectors @ vectors.T, 1).sum()))
        by_id = {found.memory.id: found for found in answer.memories}
        ranks = {hit.id: at for at, hit in enumerate(answer.fused_rankings[Leg.VECTOR].hits, 1)}
        assert all(found.leg_evidence[Leg.VECTOR].rank == ranks[id_] for id_, found in by_id.items())
        if not diversity:
            assert ids(answer) == ids(plain)
    assert alike[0] > alike[1] > alike[2]
    assert ids(await asked(trivet, top_k=8, profile="varied")) != ids(await asked(trivet, top_k=8))


async def test_variety_and_caps_hold_together(trivet: Trivet) -> None:
    await trivet.add("n", sessions(5, 5))
    answer = await asked(trivet, top_k=5, source_cap=1, diversity=0.7, profile="open")
    assert origins(answer) == dict.fromkeys((f"s{at}" for at in range(5)), 1)


async def test_duplicates_leave_an_answer_full(trivet: Trivet) -> None:
    """However many copies of the best there are; they are named with the one that stands for them."""
    copies = [MemoryInput(id=f"copy{at:02}", text="Ida painted boats in the harbour.") for at in range(35)]
    await trivet.add("n", [*copies, *paintings()])
    request = SearchRequest(query=QUERY, top_k=10, profile="open", explain=True)
    response = await trivet.search("n", request)
    assert len(response.results) == 10
    assert len({result.text for result in response.results}) == 10
    named = [result for result in response.results if result.duplicates]
    assert [(result.id, sorted(result.duplicates or [])) for result in named] == [
        ("copy00", [f"copy{at:02}" for at in range(1, 35)])
    ]


async def test_one_that_stands_for_others_shows_the_best_place_of_all(trivet: Trivet) -> None:
    """In every leg that had any of them."""
    await trivet.add(
        "n",
        [
            MemoryInput(id="a", text="Ida painted boats in the harbour."),
            MemoryInput(id="b", text="ida painted BOATS in the harbour!", title="Ida"),
            *paintings(),
        ],
    )
    answer = await asked(trivet, profile="open")
    [found] = [each for each in answer.memories if each.duplicates]
    group = {found.memory.id, *found.duplicates}
    assert group == {"a", "b"}
    for leg, ranking in answer.fused_rankings.items():
        places = [rank for rank, hit in enumerate(ranking.hits, 1) if hit.id in group]
        assert found.leg_evidence[leg].rank == min(places)


async def test_what_is_only_true_of_a_duplicate_names_it(trivet: Trivet) -> None:
    """The path of the graph leg ends at an entity that the result does not mention."""
    text = "The cold store was checked again."
    await trivet.add(
        "n",
        [
            MemoryInput(id="a", text=text, entities=[EntityInput(name="Harbour Hall")]),
            MemoryInput(id="b", text=text, entities=[EntityInput(name="Mill Annex")]),
            *paintings(),
        ],
    )
    [found] = [
        each for each in (await asked(trivet, "cold store, Mill Annex", explain=True)).memories if each.duplicates
    ]
    assert (found.memory.id, found.duplicates) == ("a", ["b"])
    assert {leg.value: shown.duplicate for leg, shown in found.leg_evidence.items()} == {
        "vector": None,
        "bm25": None,
        "graph": "b",
    }
    assert found.leg_evidence[Leg.GRAPH].path == ["Mill Annex"]


async def test_a_longer_answer_begins_like_a_shorter_one(trivet: Trivet) -> None:
    """Each leg ranks no deeper for it, as long as that suffices."""
    words = ["Ida", "Olga", "boats", "bread", "harbour", "painted", "sold", "red", "blue", "old"]
    chosen = random.Random(7)
    await trivet.add("n", [MemoryInput(id=f"m{at}", text=" ".join(chosen.sample(words, 4))) for at in range(200)])
    for query in ("Which red boats did Ida sell at the harbour?", "Olga painted old bread", "blue boats"):
        requests = [SearchRequest(query=query, top_k=top_k, explain=True) for top_k in (10, 30)]
        short, long = [await trivet.search("n", request) for request in requests]
        assert [each.id for each in long.results[:10]] == [each.id for each in short.results]
        assert short.explanation
        assert long.explanation
        assert long.explanation.fan_out == short.explanation.fan_out


async def test_a_leg_that_alone_has_a_weight_fills_an_answer_like_a_leg_alone(trivet: Trivet) -> None:
    """Half of what it ranks may be duplicates."""
    texts = [f"Ida painted boat {number} in Porto." for number in range(90)]
    await trivet.add("n", [MemoryInput(id=f"{text}{copy}", text=text) for text in texts for copy in "ab"])
    for options in ({"mode": Mode.VECTOR}, {"weights": LegWeights(vector=1.0)}):
        assert len(ids(await asked(trivet, top_k=40, **options))) == 40


async def test_fewer_memories_than_asked_for(trivet: Trivet) -> None:
    await trivet.add("n", [MemoryInput(id="a", text="Ida painted boats."), MemoryInput(id="b", text="Bread.")])
    for options in ({}, {"source_cap": 1}, {"diversity": 1.0}, {"source_cap": 1, "diversity": 0.5}):
        assert ids(await asked(trivet, profile="open", **options)) == ["a", "b"]


async def test_an_empty_namespace_has_an_empty_answer(trivet: Trivet) -> None:
    await trivet.add("n", [MemoryInput(id="a", text="Ida painted boats.")])
    await trivet.delete("n", "a")
    for options in ({}, {"source_cap": 1}, {"diversity": 1.0}):
        assert ids(await asked(trivet, **options)) == []
