"""Several statements about the same thing: the latest if a question asks for now, the first if it asks for then."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import structs

from retrieval.engine import Trivet
from retrieval.profiles.schema import ProfileInput
from retrieval.types.memory import MemoryInput
from retrieval.types.search import ContextRequest, SearchRequest, SearchResponse

NS = "moves"
CITIES = ("Lisbon", "Porto", "Madrid", "Bilbao", "Lyon")
STATEMENTS = [
    MemoryInput(
        id=city,
        text=f"Maria has moved house and lives in {city}.",
        speaker="Maria",
        session_id=city,
        created_at=datetime(2019 + year, 5, 1, tzinfo=UTC),
    )
    for year, city in enumerate(CITIES)
]


async def asked(trivet: Trivet, query: str, **options: object) -> SearchResponse:
    return await trivet.search(NS, structs.replace(SearchRequest(query=query, explain=True), **options))


async def test_the_latest_statement_comes_first_where_the_question_asks_for_now(trivet: Trivet) -> None:
    await trivet.add(NS, STATEMENTS)
    for query in (
        "In which city does Maria live now?",
        "Where does Maria live now?",
        "Where is Maria living these days?",
        "What city does Maria currently live in?",
        "What is Maria's current home?",
        "What city is Maria's home now?",
    ):
        now = await asked(trivet, query)
        assert now.results[0].id == CITIES[-1], query
        assert now.explanation
        assert now.explanation.time == "the query asks how things are now, so later memories rank higher"


async def test_the_first_statement_comes_first_where_the_question_asks_for_then(trivet: Trivet) -> None:
    await trivet.add(NS, [STATEMENTS[0], STATEMENTS[-1]])
    then = await asked(trivet, "In which city did Maria live originally?")
    assert [result.id for result in then.results] == [CITIES[0], CITIES[-1]]
    assert then.explanation
    assert then.explanation.time == "the query asks how things were before, so earlier memories rank higher"


async def test_what_was_latest_then(trivet: Trivet) -> None:
    await trivet.add(NS, STATEMENTS)
    then = await asked(trivet, "Where does Maria live now?", as_of=datetime(2021, 7, 1, tzinfo=UTC))
    assert then.results[0].id == "Madrid"


async def test_other_questions_and_a_named_time_are_left_alone(trivet: Trivet) -> None:
    await trivet.add(NS, STATEMENTS)
    other = await asked(trivet, "Where does Maria live?")
    assert other.explanation
    assert other.explanation.time is None
    named = await asked(trivet, "Where does Maria live now, since May 2019?")
    assert named.explanation
    assert named.explanation.time == "the query names a time, so the memories of that time rank higher"


async def test_a_time_in_another_language_raises_what_was_told_then(trivet: Trivet) -> None:
    soups = [
        MemoryInput(
            id=str(day), text=f"Suppe Nummer {day} ist gekocht.", created_at=datetime(2023, 6, day, 12, tzinfo=UTC)
        )
        for day in range(8, 16)
    ]
    await trivet.add(NS, soups)
    asked_at = datetime(2023, 6, 15, 18, tzinfo=UTC)
    then = await asked(trivet, "Welche Suppe habe ich vor zwei Tagen gekocht?", query_timestamp=asked_at)
    assert then.results[0].id == "13"
    assert then.explanation
    assert then.explanation.time == "the query names a time, so the memories of that time rank higher"


async def test_a_named_time_without_memories_is_no_earlier_state(trivet: Trivet) -> None:
    await trivet.add(NS, STATEMENTS)
    then = await asked(trivet, "What did Maria do the day before yesterday?")
    assert then.explanation
    assert then.explanation.time is None


async def test_a_profile_switches_it_off(trivet: Trivet) -> None:
    await trivet.add(NS, STATEMENTS)
    await trivet.profiles.put("timeless", ProfileInput(period_weight=0.0))
    off = await asked(trivet, "Where does Maria live now?", profile="timeless@1")
    assert off.explanation
    assert off.explanation.time is None


async def test_what_is_so_again_is_the_newest_and_holds(trivet: Trivet) -> None:
    """Even if a pack shows the first of two equal statements, which was superseded in between."""

    def stated(id: str, city: str, year: int, supersedes: str | None = None) -> MemoryInput:
        at = datetime(year, 6, 1, tzinfo=UTC)
        return MemoryInput(id=id, text=f"Ana lives in {city}.", created_at=at, supersedes=supersedes)

    moves = [stated("before", "Lisbon", 2020), stated("away", "Porto", 2023, "before"),
             stated("later", "Lisbon", 2025, "away")]  # fmt: skip
    await trivet.add(NS, moves)
    for query, shown in (("Where did Ana live originally?", "before"), ("Where does Ana live?", "later")):
        pack = await trivet.context(NS, ContextRequest(query=query, include_superseded=True))
        assert pack.context.splitlines()[3:5] == [
            "[1] 1 June 2020: Ana lives in Lisbon. (2 times, the last on 1 June 2025)",
            "[2] 1 June 2023: Ana lives in Porto. (superseded)",
        ]
        found = await asked(trivet, query, include_superseded=True)
        assert [each.id for each in found.results if each.duplicates] == [shown]


async def test_of_near_duplicates_the_newest_is_shown_unless_the_question_asks_for_the_past(trivet: Trivet) -> None:
    """In a long text a word may change and the two still fold into one."""
    text = (
        "When you arrive at the cottage late in the evening please park behind the barn, walk along the gravel path to "
        "the side entrance and look for the spare key which lies under the {} pot beside the bench, then switch on the "
        "heating in the hall cupboard and close the shutters."
    )
    notes = [
        MemoryInput(id=pot, text=text.format(pot), created_at=datetime(year, 6, 1, tzinfo=UTC))
        for pot, year in (("blue", 2023), ("clay", 2024))
    ]
    await trivet.add(NS, [*notes, MemoryInput(id="rooms", text="The cottage has two bedrooms.")])
    for query, first, folded in (
        ("Under which blue pot is the spare key?", "clay", "blue"),
        ("Under which clay pot was the spare key before?", "blue", "clay"),
        ("Under which pot was the spare key in June 2023?", "blue", "clay"),
    ):
        best, other = (await asked(trivet, query)).results
        assert (best.id, best.duplicates, other.id) == (first, [folded], "rooms")
        assert best.score > other.score
    [newest, _] = (await asked(trivet, "Under which blue pot is the spare key?", rescore=False)).results
    assert (newest.id, newest.score, newest.fused.rank) == ("clay", newest.fused.score, 1)
    pack = await trivet.context(NS, ContextRequest(query="Under which blue pot is the spare key?"))
    assert "1 June 2024: " + text.format("clay") + " (2 times)" in pack.context
