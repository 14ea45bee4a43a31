"""The BM25 leg over chat turns, each scored with its neighbours."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from retrieval.ingest.service import Ingest
from retrieval.legs.bm25 import BESIDE, Bm25Retriever
from retrieval.legs.bm25_scoring import AFTER_SHARES, BEFORE_SHARES
from retrieval.profiles.profile import DEFAULT
from retrieval.store import namespaces
from retrieval.store.bm25 import compaction
from retrieval.store.pool import Pool
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import Filters
from tests.snapshot import Ask, Indexed
from tests.turns import hashed

QUERY = "Which instrument does she practise?"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)

CHAT = [
    ("q", "Ana", "Which instrument do you practise these days?"),
    ("a", "Bo", "The cello, mostly at night."),
    ("b", "Ana", "Lovely! My tomatoes are ripe."),
    ("c", "Bo", "Mine have blight, sadly."),
    ("d", "Ana", "Try copper, or pull them out."),
    ("e", "Bo", "Thanks, I will."),
]


def turn(id_: str, text: str, position: int, session: str = "s", **fields: object) -> MemoryInput:
    """A message, as many minutes past noon as its position."""
    said = {"created_at": NOON + timedelta(minutes=position), "kind": "message", **fields}
    return MemoryInput(id=id_, text=text, session_id=session, position=position, **said)  # type: ignore[arg-type]


def chat(session: str = "s", prefix: str = "") -> list[MemoryInput]:
    return [turn(f"{prefix}{id_}", text, at, session, speaker=speaker) for at, (id_, speaker, text) in enumerate(CHAT)]


class Bench:
    """The leg over a database that the test fills."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.ingest = Ingest(pool, hashed())
        self._mirrored = Indexed(pool)

    async def add(self, *memories: MemoryInput, namespace: str = "n") -> None:
        """Store memories, all of which must be accepted."""
        results = await self.ingest.add(namespace, memories)
        assert {result.status for result in results} <= {"created", "updated"}

    async def scores(self, text: str = QUERY, *, namespace: str = "n", **changes: object) -> dict[str, float]:
        """The scores by id, in order of the ranking."""
        ask = Ask(text=text, namespace=namespace, **changes)  # type: ignore[arg-type]
        ranking = await self._mirrored.search(Bm25Retriever(), ask)
        scores = {hit.id: hit.score for hit in ranking.hits}
        assert list(scores) == sorted(scores, key=lambda id_: (-scores[id_], id_))
        return scores


@pytest.fixture
async def bench(pool: Pool) -> Bench:
    opened = Bench(pool)
    # Memories without a session, so that idf separates rare from common terms.
    await opened.add(*(MemoryInput(id=f"x{at}", text=f"Some other note number {at}.") for at in range(20)))
    return opened


async def test_an_answer_is_found_through_the_question_before_it(bench: Bench) -> None:
    """It shares no word with the query; nearer turns have more of it, and those far away have nothing."""
    await bench.add(*chat())
    scores = await bench.scores()
    assert list(scores)[:3] == ["q", "a", "b"]
    assert scores["q"] > scores["a"] > scores["b"] > 0
    assert len(scores) == 1 + BESIDE
    assert set(await bench.scores(profile=structs.replace(DEFAULT, neighbour_share=0.0))) == {"q"}


async def test_a_turn_is_found_through_the_one_after_it(bench: Bench) -> None:
    await bench.add(turn("a", "It arrived broken.", 0), turn("b", "The grandfather clock?", 1))
    assert list(await bench.scores("grandfather clock")) == ["b", "a"]


async def test_a_turn_that_has_the_words_itself_beats_one_that_is_beside_them(bench: Bench) -> None:
    await bench.add(*chat(), turn("own", "I practise an instrument too.", 0, session="t"))
    scores = await bench.scores()
    assert list(scores).index("own") < list(scores).index("a")


async def test_a_question_and_its_answer_are_one_piece_of_evidence(bench: Bench) -> None:
    """A word in both counts more than in one, but less than twice."""
    await bench.add(turn("q1", "Where is the lighthouse?", 0, "s1"), turn("a1", "The lighthouse is far.", 1, "s1"))
    await bench.add(turn("q2", "Where is the bakery?", 0, "s2"), turn("a2", "The lighthouse is far.", 1, "s2"))
    both = await bench.scores("lighthouse")
    assert both["a2"] < both["a1"] < 2 * both["a2"]


async def test_a_neighbour_that_is_gone_or_edited_counts_no_more(bench: Bench) -> None:
    """At once, whether its terms are packed or not."""
    for packed in (False, True):
        await bench.add(*chat())
        if packed:
            async with bench.pool.connection() as conn:
                await compaction.compact(conn, (await namespaces.find(conn, "n")).ns)
        assert "a" in await bench.scores()
        await bench.ingest.patch("n", "q", MemoryPatch(text="How are you these days?"))
        assert await bench.scores() == {}
        await bench.ingest.patch("n", "q", MemoryPatch(text="Which instrument do you practise these days?"))
        assert list(await bench.scores()) == ["q", "a", "b"]
        await bench.ingest.delete("n", "q")
        assert await bench.scores() == {}
        for id_ in ("a", "b", "c", "d", "e"):
            await bench.ingest.delete("n", id_)


async def test_turns_close_ranks_where_one_is_deleted(bench: Bench) -> None:
    await bench.add(*chat())
    before = await bench.scores()
    await bench.ingest.delete("n", "a")
    after = await bench.scores()
    assert list(after) == ["q", "b", "c"]
    assert after["b"] > before["b"]


async def test_what_was_not_yet_said_is_no_context(bench: Bench) -> None:
    """As of a moment, a turn is scored with the turns that existed then."""
    await bench.add(turn("a", "It arrived broken.", 0), turn("b", "The grandfather clock?", 1))
    await bench.add(turn("own", "A grandfather clock.", 0, session="t"))
    assert {"a", "b"} < set(await bench.scores("grandfather clock"))
    then = await bench.scores("grandfather clock", as_of=NOON)
    assert set(then) == {"own"}


async def test_as_of_a_moment_scores_are_those_of_a_chat_that_ended_then(bench: Bench) -> None:
    """A turn's score does not grow by what is said after it later."""
    said = ["The clock.", "Which clock?", "The old one.", "That clock is broken.", "Is it?", "The clock is."]
    await bench.add(*(turn(f"t{at}", text, at) for at, text in enumerate(said)))
    async with bench.pool.connection() as conn:
        ns = (await namespaces.find(conn, "n")).ns
        await compaction.compact(conn, ns)
    now = await bench.scores("clock")
    for last in range(len(said) - 1):
        then = await bench.scores("clock", as_of=NOON + timedelta(minutes=last))
        assert set(then) <= {f"t{at}" for at in range(last + 1)}
        assert all(then[id_] <= now[id_] + 1e-12 for id_ in then)
        assert then[f"t{last}"] < now[f"t{last}"]


async def test_the_context_of_a_moment_does_not_depend_on_what_else_was_found(bench: Bench) -> None:
    """Even if the times of a session's turns are not in their order."""
    minutes = [0, 90, 1, 91, 2, 3, 92, 4, 93, 5, 6, 7]
    await bench.add(
        *(
            turn(f"t{at:02}", f"word{at} clock" if at % 2 else f"word{at} clock clock tower", at,
                 created_at=NOON + timedelta(minutes=minute))
            for at, minute in enumerate(minutes)
        )
    )  # fmt: skip
    then = NOON + timedelta(minutes=60)
    whole = await bench.scores("clock tower", as_of=then)
    for fan_out in range(1, len(whole) + 1):
        for id_, value in (await bench.scores("clock tower", as_of=then, fan_out=fan_out)).items():
            assert value == pytest.approx(whole[id_]), (id_, fan_out)


async def test_filters_hold_for_what_only_neighbours_found(bench: Bench) -> None:
    """And the neighbour through which a turn was found need not meet them."""
    await bench.add(*chat(), turn("own", "An instrument to practise.", 0, session="t", speaker="Bo"))
    assert set(await bench.scores(filters=Filters(speaker=["Ana"]))) == {"q", "b"}
    assert set(await bench.scores(filters=Filters(session_id=["t"]))) == {"own"}
    assert set(await bench.scores(filters=Filters(tags_any=["none"]))) == set()
    early = Filters(created_before=NOON + timedelta(seconds=30))
    assert set(await bench.scores(filters=early)) == {"q", "own"}


async def test_what_is_not_visible_is_not_found_through_its_neighbours(bench: Bench) -> None:
    """Nor does it stand between those that are."""
    await bench.add(
        turn("q", "Which instrument do you practise?", 0),
        turn("a", "The cello.", 1, expires_at=NOON + timedelta(hours=1)),
        turn("b", "The oboe.", 2),
        turn("c", "No, the viola.", 3, supersedes="b"),
    )
    assert set(await bench.scores()) == {"q", "c"}
    assert set(await bench.scores(include_superseded=True)) == {"q", "b", "c"}
    assert set(await bench.scores(as_of=NOON + timedelta(minutes=2))) == {"q", "a", "b"}


async def test_other_sessions_and_namespaces_have_no_influence(bench: Bench) -> None:
    await bench.add(*chat())
    before = await bench.scores()
    await bench.add(*chat(session="s", prefix=""), namespace="other")
    assert await bench.scores() == before
    await bench.add(turn("z0", "Plums again.", 0, session="z"), turn("z1", "And pears.", 1, session="z"))
    after = await bench.scores()
    assert list(after) == list(before)
    assert not {"z0", "z1"} & set(await bench.scores())


async def test_neighbours_of_another_session_at_the_same_place_are_none(bench: Bench) -> None:
    await bench.add(turn("q", "Which instrument?", 0, session="s"), turn("a", "The cello.", 1, session="t"))
    assert set(await bench.scores()) == {"q"}


async def test_the_speaker_whom_the_query_names_comes_first_among_equals(bench: Bench) -> None:
    """In any spelling of case, as often as the profile says."""
    for at, speaker in enumerate(("Ana", "Bo", "Cleo", "Dan")):
        await bench.add(turn(f"m{at}", "The pottery class was fun.", 0, session=f"s{at}", speaker=speaker))
    assert list(await bench.scores("pottery class")) == ["m0", "m1", "m2", "m3"]
    for query, first in (("What did Cleo say of the pottery?", "m2"), ("did BO like pottery", "m1")):
        scores = await bench.scores(query)
        assert next(iter(scores)) == first
        plain = await bench.scores(query, profile=structs.replace(DEFAULT, speaker_boost=0.0))
        boost = 1 + DEFAULT.speaker_boost
        assert scores == pytest.approx({id_: v * boost if id_ == first else v for id_, v in plain.items()})
    assert set(list(await bench.scores("Did Bo or Cleo like pottery?"))[:2]) == {"m1", "m2"}


async def test_a_speaker_is_named_in_full_or_by_a_first_name_that_no_other_has(bench: Bench) -> None:
    """Any other part of the name is a word like others."""
    boost = 1 + DEFAULT.speaker_boost
    plain = structs.replace(DEFAULT, speaker_boost=0.0)

    async def assert_boosted(boosts: dict[str, float], *queries: str) -> None:
        for query in queries:
            expected = {id_: boosts[id_] * score for id_, score in (await bench.scores(query, profile=plain)).items()}
            assert await bench.scores(query) == pytest.approx(expected)

    await bench.add(turn("a", "The pottery class.", 0, session="s", speaker="Ana Lima"))
    await assert_boosted({"a": boost}, "ana lima's pottery", "Ana's pottery", "Has Ana a pottery?")
    await assert_boosted({"a": 1}, "Lima pottery")
    await bench.add(turn("b", "The pottery class.", 0, session="t", speaker="Ana Costa"))
    await assert_boosted({"a": boost, "b": 1}, "ana lima's pottery")
    await assert_boosted({"a": 1, "b": 1}, "Ana's pottery")


async def test_the_speaker_counts_for_memories_of_no_session_too(bench: Bench) -> None:
    await bench.add(*(MemoryInput(id=s.lower(), text="The pottery class.", speaker=s) for s in ("Ana", "Bo", "Cleo")))
    assert next(iter(await bench.scores("Cleo's pottery"))) == "cleo"


async def test_the_order_of_arrival_changes_nothing(bench: Bench) -> None:
    """Positions determine a turn's place, whenever it is added; equal turns are in the order of their ids."""
    words = ("oboe", "viola", "night", "practise", "instrument", "moon", "she", "lake")
    texts = random.Random(7)
    turns = [
        turn(f"{session}-{at}", " ".join(texts.choices(words, k=3)), at, session)
        for session in ("s", "t")
        for at in range(12)
    ]
    turns += [turn(f"copy{copy:02}-{at}", "practise viola instrument" if at else "a lake at night", at, f"copy{copy}")
              for copy in range(15) for at in range(3)]  # fmt: skip
    rankings = []
    for seed in range(3):
        shuffled = turns.copy()
        random.Random(seed).shuffle(shuffled)
        name = f"order{seed}"
        for first in range(0, len(shuffled), 9):
            await bench.add(*shuffled[first : first + 9], namespace=name)
        rankings.append(await bench.scores("practise viola instrument at night", namespace=name, fan_out=100))
    assert rankings[1] == rankings[0] == rankings[2]
    assert [list(ranking) for ranking in rankings] == [list(rankings[0])] * 3


async def test_packing_changes_nothing(bench: Bench) -> None:
    await bench.add(*chat())
    before = await bench.scores()
    async with bench.pool.connection() as conn:
        await compaction.compact(conn, (await namespaces.find(conn, "n")).ns)
    assert await bench.scores() == pytest.approx(before, rel=1e-12)


async def test_memories_of_no_session_answer_as_if_there_were_no_context(bench: Bench) -> None:
    await bench.add(*(MemoryInput(id=f"m{at}", text=text) for at, (_, _, text) in enumerate(CHAT)))
    alone = structs.replace(DEFAULT, neighbour_share=0.0)
    for query in (QUERY, "tomatoes and copper", "note number"):
        assert await bench.scores(query) == await bench.scores(query, profile=alone)


async def test_no_more_than_the_fan_out(bench: Bench) -> None:
    """Turns found through others count among them."""
    await bench.add(*chat())
    assert list(await bench.scores(fan_out=2)) == ["q", "a"]
    assert list(await bench.scores(fan_out=1)) == ["q"]


async def test_a_long_session_is_searched_turn_by_turn(bench: Bench) -> None:
    """A word counts for a few turns around it, and no further."""
    middle = 50
    await bench.add(*(turn(f"t{at:03}", "instrument" if at == middle else f"filler{at}", at) for at in range(100)))
    found = sorted(await bench.scores("instrument"))
    assert found == [f"t{at:03}" for at in range(middle - BESIDE, middle + BESIDE + 1)]
    assert min(len(BEFORE_SHARES), len(AFTER_SHARES)) >= BESIDE


async def test_words_that_stand_for_a_time_are_not_looked_for(bench: Bench) -> None:
    """The words "last month" only mean a time, "June" may also be a term."""
    await bench.add(
        MemoryInput(id="rent", text="The rent is eighty a month, last I heard.", created_at=NOON - timedelta(days=90)),
        MemoryInput(id="tea", text="Green tea was served.", created_at=NOON - timedelta(days=30)),
        MemoryInput(id="june", text="June is the name of her aunt.", created_at=NOON - timedelta(days=90)),
    )
    assert set(await bench.scores("What was said last month?", asked_at=NOON)) == {"tea"}
    assert "june" in await bench.scores("Who is June?", asked_at=NOON)


async def test_a_long_period_ends_with_its_last_day(bench: Bench) -> None:
    """And the one after that, as it is told then; not with the month."""
    last = datetime(2023, 4, 20, 12, tzinfo=UTC)
    await bench.add(
        *(
            MemoryInput(id=f"after {days}", text="Green tea.", created_at=last + timedelta(days=days))
            for days in range(3)
        )
    )
    asked_at = last + timedelta(days=90)
    found = await bench.scores("What was said from February 23rd to April 20th?", asked_at=asked_at)
    assert set(found) == {"after 0", "after 1"}
