"""Context packs in a conversation: what is added, what is never repeated, and what is left out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retrieval.engine import Trivet
from retrieval.types.memory import MemoryInput, MemoryPatch
from retrieval.types.search import ChatMessage, ContextRequest, ContextResponse, Exclude, Filters, Mode, SearchRequest
from tests.serving import settings_for

DAY = datetime(2024, 10, 2, 9, tzinfo=UTC)  # a Wednesday
NS = "chat"


def turn(id: str, speaker: str, text: str, *, day: int = 0, session: str = "s") -> MemoryInput:
    at = DAY + timedelta(days=day)
    return MemoryInput(id=id, text=text, speaker=speaker, session_id=session, kind="message", created_at=at)


CHAT = [
    turn("hello", "Bob", "Good morning! The train was late again."),
    turn("asked", "Bob", "Where did you buy the blue sailing boat?"),
    turn("answer", "Ann", "In Porto."),
    turn("ah", "Bob", "Ah."),
    turn("price", "Ann", "The sailing boat was cheap, since its mast is broken."),
    turn("later", "Ann", "I sold the sailing boat to my cousin Ines.", day=3, session="t"),
]
FACT = MemoryInput(id="fact", text="Ann is afraid of open water.", created_at=DAY)


@pytest.fixture
async def trivet(database_url: str) -> AsyncIterator[Trivet]:
    async with Trivet.open(settings_for(database_url)) as engine:
        await engine.add(NS, [*CHAT, FACT])
        yield engine


async def context(trivet: Trivet, query: str | None = "Where did Ann buy the sailing boat?", **fields: Any) -> Any:
    response = await trivet.context(NS, ContextRequest(query=query, **fields))
    assert response.degraded == []
    return response


def shown(pack: ContextResponse) -> list[str]:
    return [item.id for item in pack.items]


def reasons(pack: ContextResponse) -> dict[str, str]:
    return {drop.id: drop.reason for drop in pack.dropped}


async def test_a_chat_is_read_as_it_was_said(trivet: Trivet) -> None:
    """Sessions under their dates, questions before their answers, facts apart, small talk left out."""
    pack = await context(trivet)
    lines = pack.context.splitlines()
    assert lines[2:4] == ["## Facts", "[1] 2 October 2024: Ann is afraid of open water."]
    first = lines.index("## Wednesday 2 October 2024, 09:00")
    assert [line[4:] for line in lines[first + 1 : first + 5]] == [
        "Bob: Good morning! The train was late again.",
        "Bob: Where did you buy the blue sailing boat?",
        "Ann: In Porto.",
        "Ann: The sailing boat was cheap, since its mast is broken.",
    ]
    assert "## Saturday 5 October 2024, 09:00" in lines
    assert reasons(pack)["ah"] == "empty"


async def test_an_answer_comes_with_its_question(trivet: Trivet) -> None:
    """Even if only one of them is found, unless the other is hidden."""
    by_ann = Filters(speaker=["Ann"])
    pack = await context(trivet, "Porto", top_k=1)
    assert shown(pack) == ["asked", "answer"]
    assert pack.items[0].needed_by == "answer"
    assert shown(await context(trivet, "Porto", top_k=1, filters=by_ann)) == ["answer"]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [("من أين اشتريت القارب الأزرق؟", "من بورتو."), ("Πού αγόρασες το μπλε ιστιοφόρο;", "Στο Πόρτο.")],
)
async def test_an_answer_comes_with_its_question_in_other_scripts(trivet: Trivet, asked: str, answer: str) -> None:
    await trivet.add(NS, [turn("asks", "Bob", asked, session="u"), turn("says", "Ann", answer, session="u")])
    pack = await context(trivet, answer, top_k=1)
    assert shown(pack) == ["asks", "says"]
    assert (await context(trivet, asked, top_k=1)).items[1].needed_by == "asks"


async def test_nothing_in_the_conversation_comes_back(trivet: Trivet) -> None:
    """Neither recent messages nor an earlier turn's pack; new memories take their place."""
    pack = await context(trivet, top_k=2)
    messages = [
        ChatMessage(role="system", content=pack.context),
        ChatMessage(role="user", content="The sailing boat was cheap, since its mast is broken!"),
        ChatMessage(role="user", content="Where did Ann buy the sailing boat?"),
    ]
    again = await context(trivet, None, messages=messages)
    held = {*shown(pack), "price"}
    assert again.items
    assert not held & {*shown(again)}
    assert held <= {id for id, reason in reasons(again).items() if reason == "in_messages"}


async def test_an_answer_is_shown_though_its_question_was_just_asked(trivet: Trivet) -> None:
    await trivet.add(NS, [turn("sold", "Bob", "Did you sell the broken mast?", session="u"),
                          turn("not-yet", "Ann", "Not yet.", session="u")])  # fmt: skip
    messages = [ChatMessage(role="user", content="Did you sell the broken mast?")]
    pack = await context(trivet, None, messages=messages, min_relevance=0)
    assert "not-yet" in shown(pack)


async def test_what_came_along_is_not_among_the_irrelevant(trivet: Trivet) -> None:
    query = "In Porto."
    found = await trivet.search(NS, SearchRequest(query=query))
    relevance = {result.id: result.relevance or 0.0 for result in found.results}
    pack = await context(trivet, query, min_relevance=(relevance["asked"] + relevance["answer"]) / 2)
    assert {"asked", "answer"} <= {*shown(pack)}
    assert "asked" not in reasons(pack)


async def test_a_question_is_understood_from_the_turns_before_it(trivet: Trivet) -> None:
    """Without a language model: the query includes what it refers to."""
    messages = [
        ChatMessage(role="user", content="Tell me about Ann's sailing boat."),
        ChatMessage(role="assistant", content="She had one."),
        ChatMessage(role="user", content="Who did she sell it to?"),
    ]
    pack = await context(trivet, None, messages=messages, top_k=2, explain=True)
    assert "later" in shown(pack)
    assert "sailing boat" not in str(messages[-1].content)


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (Exclude(ids=["asked", "answer"]), {"hello", "price", "later", "fact"}),
        (Exclude(session_id=["s"]), {"later", "fact"}),
        (Exclude(created_after=DAY), {"hello", "asked", "answer", "price", "fact"}),
        (Exclude(ids=["fact"], session_id=["t"]), {"hello", "asked", "answer", "price"}),
    ],
)
async def test_what_is_excluded_never_comes(trivet: Trivet, exclude: Exclude, left: set[str]) -> None:
    """Neither by itself nor as the question of an answer; also in a search."""
    assert {*shown(await context(trivet, exclude=exclude))} == left
    found = await context(trivet, exclude=exclude, explain=True)
    assert {result.id for result in found.results} <= {*left, "ah"}


async def test_many_excluded_ids_do_not_crowd_out_the_rest(trivet: Trivet) -> None:
    await trivet.add(
        NS, [turn(f"more{n}", "Ann", f"The sailing boat number {n} is {n} metres long.") for n in range(90)]
    )
    exclude = Exclude(ids=[f"more{n}" for n in range(90)])
    assert {"answer", "price", "later"} <= {*shown(await context(trivet, exclude=exclude, top_k=10))}


async def test_a_long_memory_is_an_excerpt_around_the_answer(trivet: Trivet) -> None:
    filler = "We talked about the weather and about nothing else. " * 150
    text = f"{filler}The harbour master of Porto is called Duarte Lobo. {filler}"
    await trivet.add(NS, [MemoryInput(id="long", text=text, created_at=DAY)])
    pack = await context(trivet, "Who is the harbour master of Porto?", max_tokens=300)
    item = next(item for item in pack.items if item.id == "long")
    assert "… We talked" in pack.context
    assert "is called Duarte Lobo." in pack.context
    assert item.excerpt is True
    assert item.tokens <= 64 + 12  # with its citation and date


async def test_an_excerpt_of_a_turn_is_not_its_greeting_because_the_question_names_the_speaker(trivet: Trivet) -> None:
    filler = "We talked about the weather and about nothing else. " * 150
    text = f"Duarte: Good evening! {filler}I am in charge of the harbour. {filler}"
    await trivet.add(NS, [turn("long", "Duarte", text)])
    pack = await context(trivet, "Is Duarte at the harbour?", max_tokens=300)
    assert "I am in charge of the harbour." in pack.context
    assert "Good evening" not in pack.context


async def test_short_turns_fill_the_budget(trivet: Trivet) -> None:
    """However many that takes, up to `top_k`, and not many more than that are read."""
    trips = [turn(f"trip{n}", "Ann", f"Boat trip {n} went to island {n}.", session="u") for n in range(90)]
    await trivet.add(NS, trips)
    query = "Which islands did the boat trips go to?"
    pack = await context(trivet, query, max_tokens=1000, min_relevance=0)
    assert len(pack.items) > 40
    assert pack.tokens_used > 600
    assert len((await context(trivet, query, max_tokens=1000, top_k=40)).items) == 40
    for mode in (Mode.ADAPTIVE, Mode.VECTOR):
        assert len((await context(trivet, query, mode=mode, max_tokens=200, explain=True)).results) < 60
    for mode in (Mode.BM25, Mode.VECTOR):
        assert len((await context(trivet, query, mode=mode, max_tokens=4000)).items) > 80
    long = [MemoryInput(id=f"{n}", text=f"Boat trip {n} went to islands. " * 150) for n in range(3)]  # excerpts
    await trivet.add(NS, long)
    pack = await context(trivet, query, max_tokens=2000, min_relevance=0, explain=True)
    assert len(pack.items) > 40
    assert pack.explanation
    assert pack.explanation.fan_out == 60


async def test_superseded_facts_are_left_out_or_marked(trivet: Trivet) -> None:
    new = MemoryInput(id="new", text="Ann is no longer afraid of open water.", supersedes="fact", created_at=DAY)
    await trivet.add(NS, [new])
    query = "Is Ann afraid of open water?"
    assert "fact" not in shown(await context(trivet, query))
    pack = await context(trivet, query, include_superseded=True)
    assert "[1] 2 October 2024: Ann is no longer afraid of open water." in pack.context
    assert "[2] 2 October 2024: Ann is afraid of open water. (superseded)" in pack.context


@pytest.mark.parametrize("format", ["markdown", "xml", "json"])
async def test_what_was_superseded_later_still_holds_before(trivet: Trivet, format: Any) -> None:
    day = DAY + timedelta(days=400)
    await trivet.add(NS, [MemoryInput(id="new", text="Ann likes open water.", supersedes="fact", created_at=day)])
    query = "Is Ann afraid of open water?"
    pack = await context(trivet, query, as_of=day - timedelta(days=1), format=format)
    assert "fact" in shown(pack)
    assert "superseded" not in pack.context
    now = await context(trivet, query, as_of=day, include_superseded=True, format=format)
    assert "superseded" in now.context


async def test_a_turn_that_was_changed_stays_in_its_place(trivet: Trivet) -> None:
    """Turns with the same time are in the order of their session, not of the last writes."""
    await trivet.patch(NS, "hello", MemoryPatch(text="Good morning! The train to Porto was late again."))
    pack = await context(trivet)
    assert [id for id in shown(pack) if id in ("hello", "asked", "price")] == ["hello", "asked", "price"]


@pytest.mark.parametrize("format", ["markdown", "xml", "json"])
async def test_every_budget_answers(trivet: Trivet, format: Any) -> None:
    """With the same pack each time, never above the budget, and each citation that of an item."""
    for budget in (1, 2, 5, 9, 17, 30, 60, 120, 400, 200_000):
        pack = await context(trivet, max_tokens=budget, format=format)
        again = await context(trivet, max_tokens=budget, format=format)
        assert (pack.context, pack.items, pack.dropped) == (again.context, again.items, again.dropped)
        assert pack.tokens_used <= budget
        assert [item.citation for item in pack.items] == [f"[{n}]" for n in range(1, len(pack.items) + 1)]
        assert bool(pack.context) == bool(pack.items)
