"""A server's former knowledge of a namespace does not matter: it answers like one that starts now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from retrieval.engine import Trivet
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import SearchRequest
from tests.serving import settings_for

NOW = datetime(2024, 5, 8, 12, tzinfo=UTC)
LAST_WEEK = NOW - timedelta(days=7)


def turn(id_: str, text: str, **fields: Any) -> MemoryInput:
    return MemoryInput(id=id_, text=text, **{"created_at": LAST_WEEK, **fields})


async def found(trivet: Trivet, query: str) -> tuple[list[tuple[str, float]], str | None]:
    """The results, and the effect of the query's time."""
    request = SearchRequest(query=query, query_timestamp=NOW, explain=True)
    answer = await trivet.search("n", request)
    assert answer.explanation
    return [(each.id, each.score) for each in answer.results], answer.explanation.time


async def assert_as_anew(trivet: Trivet, query: str) -> None:
    async with Trivet.open(settings_for(trivet.settings.database_url)) as other:
        assert await found(trivet, query) == await found(other, query)


async def test_a_speaker_of_whom_nothing_is_left_to_see_is_a_word_like_others(trivet: Trivet) -> None:
    """And not the speakers of a period when only a time is asked for."""
    said = [
        turn("i", "I repaired my bicycle.", speaker="Ida"),
        turn("b", "Somebody bought bread.", speaker="Bo"),
        turn("o", "Ida painted the wall.", speaker="Bo", created_at=NOW - timedelta(days=400)),
    ]
    await trivet.add("n", said)
    query = "What did Ida do last week?"
    _, before = await found(trivet, query)
    assert before == "the query asks for a time alone, so the memories of that time come first"
    for change in (MemoryPatch(expires_at=LAST_WEEK), MemoryPatch(expires_at=None, speaker="Zoe")):
        await trivet.patch("n", "i", change)
        _, after = await found(trivet, query)
        assert after == "the query names a time, so the memories of that time rank higher"
    await assert_as_anew(trivet, query)


async def test_a_nickname_and_a_time_ask_for_a_time_alone_as_a_name_does(trivet: Trivet) -> None:
    await trivet.add("n", [turn("e", "I repaired my bicycle.", speaker="Elizabeth Lima"),
                           turn("w", "I paid for the food.", speaker="William Orr")])  # fmt: skip
    alone = "the query asks for a time alone, so the memories of that time come first"
    for query in ("What did Elizabeth do last week?", "What did Liz do last week?"):
        assert (await found(trivet, query))[1] == alone
    assert (await found(trivet, "What did William say of the bill last week?"))[1] != alone


async def test_of_sessions_that_begin_at_once_the_one_written_first_is_counted_first(trivet: Trivet) -> None:
    await trivet.add("n", [turn("a", "We talked of sailing.", session_id="s"), turn("b", "Cooking.", session_id="t")])
    query = "What did we talk about in our first session?"
    [(first, _), *_], _ = await found(trivet, query)
    assert first == "a"
    await trivet.patch("n", "a", MemoryPatch(tags=["red"]))  # which writes it again
    [(first, _), *_], _ = await found(trivet, query)
    assert first == "b"
    await assert_as_anew(trivet, query)
