"""Questions about conversations: who said what and when, answers found by their questions, full answers, sources."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from math import fsum
from typing import Any

import httpx
import pytest
from msgspec import structs

from retrieval.engine import Trivet
from retrieval.profiles.schema import ProfileInput
from retrieval.types.memory import EntityInput, MemoryInput, MemoryPatch
from retrieval.types.search import (
    ChatMessage,
    ClassifyRequest,
    ContextRequest,
    Exclude,
    Filters,
    Leg,
    Mode,
    SearchRequest,
    SearchResponse,
    SearchResult,
)
from tests.serving import problem_of, served

NS = "chat"
URL = f"/v1/namespaces/{NS}"
AUTUMN = datetime(2024, 10, 2, 9, tzinfo=UTC)  # a Wednesday


def turn(text: str, speaker: str, at: datetime, *, id: str, session: str = "s", position: int | None = None) -> Any:
    return MemoryInput(
        id=id, text=text, speaker=speaker, session_id=session, position=position, kind="message", created_at=at
    )


async def add(trivet: Trivet, memories: Sequence[MemoryInput], namespace: str = NS) -> None:
    assert {result.status for result in await trivet.add(namespace, memories)} <= {"created", "updated"}


async def asked(trivet: Trivet, query: str, namespace: str = NS, **options: Any) -> SearchResponse:
    response = await trivet.search(namespace, SearchRequest(query=query, explain=True, **options))
    assert response.degraded == []
    return response


def ids(response: SearchResponse) -> list[str]:
    return [result.id for result in response.results]


def details(response: SearchResponse, leg: str) -> dict[str, Any]:
    assert response.explanation
    return response.explanation.legs[leg]


SAID = [
    "We spent the weekend at the lake.",
    "The new job keeps me busy.",
    "I repotted the lemon tree.",
    "The car needs new brakes again.",
]


def months(*, prefixed: bool) -> list[MemoryInput]:
    """Three speakers who each say something in every month from March to September."""
    return [
        turn(
            f"{speaker}: {said} ({month}.{at})" if prefixed else f"{said} ({month}.{at})",
            speaker,
            datetime(2024, month, 3 + 6 * at, 12, at, tzinfo=UTC),
            id=f"{speaker}-{month}-{at}",
            session=f"s{month}-{at}",
        )
        for month in range(3, 10)
        for speaker in ("Maria", "Tom", "Olga")
        for at, said in enumerate(SAID)
    ]


@pytest.mark.parametrize("prefixed", [False, True])
@pytest.mark.parametrize("mode", [Mode.ADAPTIVE, Mode.BM25])
async def test_what_somebody_said_in_a_month_comes_first(trivet: Trivet, mode: Mode, *, prefixed: bool) -> None:
    """Maria's turns of June, then what others said in June, and not what was said on the day after."""
    after = turn("I packed.", "Maria", datetime(2024, 7, 1, tzinfo=UTC), id="after")
    await add(trivet, [*months(prefixed=prefixed), after])
    response = await asked(trivet, "What did Maria say in June?", mode=mode, query_timestamp=AUTUMN)
    assert {f"Maria-6-{at}" for at in range(len(SAID))} == set(ids(response)[: len(SAID)])
    assert all("-6-" in each for each in ids(response))
    assert len(response.results) == 10
    assert response.explanation
    assert response.explanation.time
    assert details(response, "bm25")["named"]["terms"] == details(response, "bm25")["terms"]
    response = await asked(trivet, "What did Maria say in June 2024?", mode=mode, query_timestamp=AUTUMN)
    assert all("-6-" in each for each in ids(response))


@pytest.mark.parametrize(
    "layout",
    ["{pasted}\n\n{question}", "{question}\n\n{pasted}", "User: {pasted}\nAssistant: I see.\nUser: {question}"],
)
async def test_a_question_is_found_beside_a_long_text(trivet: Trivet, layout: str) -> None:
    """Every leg looks for the answer rather than for the text, also if the whole is the last of the `messages`."""
    await add(trivet, months(prefixed=False))
    await add(trivet, [turn("Ines hid the spare key under the blue pot.", "Olga", AUTUMN, id="key")])
    question, pasted = "Where is the spare key of Ines?", " ".join(SAID * 10)
    query = layout.format(question=question, pasted=pasted)
    response = await asked(trivet, query)
    assert response.explanation
    assert response.explanation.query == question
    assert {leg: evidence.rank for leg, evidence in response.results[0].legs.items()} == dict.fromkeys(Leg, 1)
    pack = ContextRequest(messages=[ChatMessage(role="user", content=query)])
    assert (await trivet.context(NS, pack)).items[0].id == ids(response)[0] == "key"
    asked_alone, asked_beside = [await trivet.classify(ClassifyRequest(query=each)) for each in (question, query)]
    assert asked_beside.weights == asked_alone.weights


@pytest.mark.parametrize("speaker", ["Jean-Luc", "O'Neill", "Dr. Smith", "Mary Ann"])
async def test_a_name_of_several_words_is_no_further_topic(trivet: Trivet, speaker: str) -> None:
    june, may = (datetime(2024, month, 3, 12, tzinfo=UTC) for month in (6, 5))
    said = [turn("I said what I had to say.", speaker, may, id="may"),
            *(turn(text, speaker, june, id=f"june-{at}") for at, text in enumerate(SAID)),
            *(turn(f"Well. {text}", "Ann", june, id=f"ann-{at}") for at, text in enumerate(SAID))]  # fmt: skip
    await add(trivet, said)
    response = await asked(trivet, f"What did {speaker} say in June?", query_timestamp=AUTUMN)
    assert {*ids(response)[: len(SAID)]} == {f"june-{at}" for at in range(len(SAID))}


async def test_a_turn_shows_the_terms_that_it_has_itself(trivet: Trivet) -> None:
    """Not those of the turns around it, by which alone it may match."""
    said = [
        turn("Which colours may Ida mix for the boat?", "Maya", AUTUMN, id="question"),
        turn("Blue and white.", "Bo", AUTUMN + timedelta(minutes=1), id="reply"),
    ]
    await add(trivet, said)
    response = await asked(trivet, "may Ida mix it?", mode=Mode.BM25)
    assert details(response, "bm25")["terms"] == {"may": 1, "ida": 1, "mix": 1}
    assert {each.id: each.legs["bm25"].terms for each in response.results} == {
        "question": ["may", "ida", "mix"],
        "reply": [],
    }


async def test_a_month_of_little_weight_only_rises(trivet: Trivet) -> None:
    """Nor is it said to come first."""
    await add(trivet, months(prefixed=False))
    await trivet.profiles.put("timely", ProfileInput(period_weight=0.01))
    response = await asked(trivet, "What did Maria say in June?", profile="timely@1", query_timestamp=AUTUMN)
    in_june = ["-6-" in each for each in ids(response)]
    assert in_june != sorted(in_june, reverse=True)
    assert response.explanation
    assert response.explanation.time == "the query asks for a time alone, so the memories of that time rank higher"


async def test_a_month_without_weight_is_like_any_other_word(trivet: Trivet) -> None:
    """The profile's `period_weight` of 0 turns all of it off."""
    await add(trivet, months(prefixed=False))
    await trivet.profiles.put("timeless", ProfileInput(period_weight=0.0))
    response = await asked(trivet, "What did Maria say in June?", profile="timeless@1", query_timestamp=AUTUMN)
    assert not all("-6-" in each for each in ids(response))
    assert response.explanation
    assert response.explanation.time is None


async def test_the_third_session_is_counted_by_time(trivet: Trivet) -> None:
    await add(trivet, months(prefixed=False)[::-1])
    response = await asked(trivet, "What did we talk about in our third session?", query_timestamp=AUTUMN)
    assert set(ids(response)[:3]) == {f"{speaker}-3-2" for speaker in ("Maria", "Tom", "Olga")}
    last = await asked(trivet, "What was said in our last conversation?", query_timestamp=AUTUMN)
    assert set(ids(last)[:3]) == {f"{speaker}-9-3" for speaker in ("Maria", "Tom", "Olga")}
    assert ids(await asked(trivet, "What did we talk about in our 29th session?", query_timestamp=AUTUMN))


async def test_what_was_told_later_is_still_found(trivet: Trivet) -> None:
    """A trip in May mentioned in June is among the first, beside memories of May."""
    told = turn("In May we went to Lisbon by night train.", "Tom", datetime(2024, 6, 20, tzinfo=UTC), id="told")
    await add(trivet, [*months(prefixed=False), told])
    response = await asked(trivet, "Which city did we take the night train to in May?", query_timestamp=AUTUMN)
    assert "told" in ids(response)[:5]


async def test_a_prefix_of_the_speaker_changes_no_score(trivet: Trivet) -> None:
    """It appears once, whether the caller wrote it into the text or not."""
    await add(trivet, months(prefixed=False), "without")
    await add(trivet, months(prefixed=True), "with")
    one, other = [
        await asked(trivet, "What did Maria say in June?", name, mode=Mode.BM25, query_timestamp=AUTUMN)
        for name in ("without", "with")
    ]
    assert [(r.id, r.legs["bm25"].score) for r in one.results] == [(r.id, r.legs["bm25"].score) for r in other.results]


def cooked(now: datetime) -> list[MemoryInput]:
    """Meals cooked in the calendar week before `now` and in the weeks around it."""
    monday = now.replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=now.weekday())
    dishes = ("risotto", "lentil soup", "dumplings", "ratatouille", "pancakes", "goulash")
    return [
        MemoryInput(
            id=f"{weeks}-weeks-ago", text=f"I cooked {dish}.", created_at=monday - timedelta(days=7 * weeks - 3)
        )
        for weeks, dish in enumerate(dishes, 1)
    ]


@pytest.mark.parametrize("by", ["query_timestamp", "as_of", None])
async def test_last_week_counts_from_when_the_query_was_asked(trivet: Trivet, by: str | None) -> None:
    """It is preferred, but memories outside it still follow."""
    now = datetime.now(UTC) if by is None else AUTUMN
    await add(trivet, cooked(now))
    asked_at: dict[str, Any] = {} if by is None else {by: now}
    response = await asked(trivet, "What did I cook last week?", **asked_at)
    assert ids(response)[0] == "1-weeks-ago"
    assert sorted(ids(response)) == [f"{weeks}-weeks-ago" for weeks in range(1, 7)]
    monday = (now - timedelta(days=now.weekday() + 7)).date()
    assert details(response, "bm25")["periods"] == [f"{monday}T00:00+00:00/{monday + timedelta(7)}T00:00+00:00"]


async def test_the_time_of_the_query_goes_before_as_of(trivet: Trivet) -> None:
    await add(trivet, cooked(AUTUMN))
    earlier = AUTUMN - timedelta(days=14)
    response = await asked(trivet, "What did I cook last week?", query_timestamp=earlier, as_of=AUTUMN)
    assert ids(response)[0] == "3-weeks-ago"
    assert len(response.results) == 6


@pytest.mark.parametrize(
    ("time", "weeks"),
    [
        ("twenty-seven days ago", 4),
        ("last September 12", 3),
        ("the day before last Friday", 1),
        ("between Wednesday and Friday last week", 1),
        ("before Friday, August 23", 6),
    ],
)
async def test_memories_of_a_composed_time_come_first(trivet: Trivet, time: str, weeks: int) -> None:
    await add(trivet, cooked(AUTUMN))
    response = await asked(trivet, f"What did I cook {time}?", query_timestamp=AUTUMN)
    assert ids(response)[0] == f"{weeks}-weeks-ago"


async def test_a_query_without_a_time_shows_no_period(trivet: Trivet) -> None:
    await add(trivet, cooked(AUTUMN))
    assert "periods" not in details(await asked(trivet, "What may I cook?"), "bm25")


@pytest.mark.parametrize("texts", [("👍", "❤️", "!!!"), ("!!!", "...", "?")])
async def test_reactions_alone_do_not_break_a_query_for_a_day(trivet: Trivet, texts: tuple[str, ...]) -> None:
    """Turns without words still have a date."""
    turns = [MemoryInput(id=f"r{at}", text=text, session_id="s", created_at=AUTUMN) for at, text in enumerate(texts)]
    await add(trivet, turns)
    response = await asked(trivet, "What happened today?", query_timestamp=AUTUMN)
    assert set(ids(response)) == {"r0", "r1", "r2"}


QUESTION = "Which instrument do you practise these days?"
ASKED = "Which instrument does she practise?"


def chat() -> list[MemoryInput]:
    lines = [
        ("q", "Ana", QUESTION),
        ("a", "Bo", "The cello, mostly at night."),
        ("b", "Ana", "Lovely! My tomatoes are ripe."),
        ("c", "Bo", "Mine have blight, sadly."),
        ("d", "Ana", "Try copper, or pull them out."),
        ("e", "Bo", "Thanks, I will."),
        ("f", "Ana", "The train was late again."),
        ("g", "Bo", "As ever on that line."),
    ]
    said = [
        turn(text, speaker, AUTUMN + timedelta(minutes=at), id=id_, position=at)
        for at, (id_, speaker, text) in enumerate(lines)
    ]
    notes = [MemoryInput(id=f"n{at}", text=f"Invoice {at} was paid by bank transfer.") for at in range(30)]
    return [*said, *notes]


async def found_by_words(trivet: Trivet, **options: Any) -> set[str]:
    """The turns that BM25 found."""
    response = await asked(trivet, ASKED, **options)
    return {result.id for result in response.results if "bm25" in result.legs} - {f"n{at}" for at in range(30)}


@pytest.mark.parametrize("order", ["as said", "backwards", "question last", "one by one"])
async def test_an_answer_is_found_through_its_question(trivet: Trivet, order: str) -> None:
    """In whichever order they arrive."""
    memories = chat()
    if order == "backwards":
        memories.reverse()
    if order in ("question last", "one by one"):
        memories = [*memories[1:], memories[0]]
    if order == "one by one":
        for memory in memories:
            await add(trivet, [memory])
    else:
        await add(trivet, memories)
    assert ids(await asked(trivet, ASKED, mode=Mode.BM25))[:3] == ["q", "a", "b"]
    assert set(ids(await asked(trivet, ASKED))[:2]) == {"q", "a"}


async def test_an_answer_is_lost_with_its_question(trivet: Trivet) -> None:
    """Whether the question is edited, sent again, moved or deleted; and found again when it is back."""
    await add(trivet, chat())
    question = chat()[0]
    assert {"q", "a"} <= await found_by_words(trivet)
    await trivet.patch(NS, "q", MemoryPatch(text="How are you?"))
    assert await found_by_words(trivet) == set()
    await add(trivet, [question])
    assert {"q", "a"} <= await found_by_words(trivet)
    await trivet.patch(NS, "q", MemoryPatch(session_id="elsewhere"))
    assert await found_by_words(trivet) == {"q"}
    await trivet.patch(NS, "q", MemoryPatch(session_id="s", position=0))
    assert {"q", "a"} <= await found_by_words(trivet)
    await trivet.delete(NS, "q")
    assert await found_by_words(trivet) == set()


async def test_an_answer_is_found_through_a_question_that_a_filter_leaves_out(trivet: Trivet) -> None:
    """When asked what one of them said, the other's question still gives the topic."""
    await add(trivet, chat())
    assert await found_by_words(trivet, filters=Filters(speaker=["Bo"])) == {"a"}


async def test_a_word_that_is_also_somebodys_name_is_not_that_name(trivet: Trivet) -> None:
    """In a query with capitals, "will" in lower case is not a name."""
    await add(trivet, [MemoryInput(id="a", text="The ferry to Oslo leaves at noon.", speaker="Ana"),
                       MemoryInput(id="b", text="The ferry to Oslo leaves at noon.", speaker="Will"),
                       *(memory for memory in chat() if not memory.speaker)])  # fmt: skip
    scores = {
        query: {result.id: result.legs["bm25"].score for result in response.results if "bm25" in result.legs}
        for query in ("When will the ferry to Oslo leave?", "When did Will take the ferry to Oslo?")
        for response in [await asked(trivet, query, mode=Mode.BM25)]
    }
    will, named = scores.values()
    assert named["b"] > named["a"]
    assert will["b"] < 1.1 * will["a"]


async def test_an_answer_is_not_found_through_a_question_that_expired(trivet: Trivet) -> None:
    """A hidden turn does not contribute to others either."""
    question, *rest = chat()
    expired = MemoryInput(
        **{name: getattr(question, name) for name in question.__struct_fields__} | {"expires_at": AUTUMN}
    )
    await add(trivet, [expired, *rest])
    assert await found_by_words(trivet) == set()
    await add(trivet, [MemoryInput(id="own", text="An instrument to practise.")])
    assert await found_by_words(trivet) == {"own"}


async def test_what_expired_adds_nothing_to_its_neighbours(trivet: Trivet) -> None:
    """A turn beside a hidden one scores as if that did not exist."""
    gone = MemoryInput(id="q", text=QUESTION, session_id="s", position=0, expires_at=AUTUMN)
    beside = MemoryInput(id="a", text="We practise at night.", session_id="s", position=1)
    alone = MemoryInput(id="b", text="We practise at noon.", session_id="t", position=0)
    await add(trivet, [gone, beside, alone, *(memory for memory in chat() if memory.session_id is None)])
    response = await asked(trivet, ASKED, mode=Mode.BM25)
    scores = {result.id: result.legs["bm25"].score for result in response.results}
    assert scores["a"] == pytest.approx(scores["b"])


COLOURS = ("red", "green", "blue", "white", "black", "grey", "brown", "pink", "teal", "gold",
           "amber", "ivory", "olive", "plum", "rust", "sand", "wine", "coral")  # fmt: skip
TOWNS = ("Bergen", "Oslo", "Rome", "Porto", "Lyon", "Ghent", "Graz", "Turku", "Malmo", "Leeds",
         "Riga", "Split", "Cadiz", "Delft", "Basel", "Brno", "Kiel", "Nice")  # fmt: skip
BOATS = "Which boats did Ida paint in the harbour?"


def paintings() -> list[MemoryInput]:
    """54 memories that match less and less."""
    rows = list(zip(COLOURS, TOWNS, strict=True))
    return [
        *(MemoryInput(id=f"p{at}", text=f"Ida painted a {c} boat in the harbour of {t}.") for at, (c, t) in
          enumerate(rows)),
        *(MemoryInput(id=f"h{at}", text=f"The harbour of {t} was closed for {at + 2} days.") for at, (_, t) in
          enumerate(rows)),
        *(MemoryInput(id=f"b{at}", text=f"Bread number {at} needs {at + 2} spoons of {c} flour.") for at, (c, _) in
          enumerate(rows)),
    ]  # fmt: skip


async def test_as_many_results_as_were_asked_for(trivet: Trivet, subtests: pytest.Subtests) -> None:
    """In every mode that has that many; the vector leg finds all memories."""
    await add(trivet, paintings())
    for query in (BOATS, "Ida", "harbour of Riga", "bread", "What do we know?"):
        for top_k in (1, 10, 50):
            for mode in (Mode.ADAPTIVE, Mode.HYBRID, Mode.VECTOR):
                with subtests.test(query=query, top_k=top_k, mode=mode):
                    assert len((await asked(trivet, query, top_k=top_k, mode=mode)).results) == top_k


async def test_copies_of_all_that_is_above_the_noise_leave_an_answer_full(trivet: Trivet) -> None:
    """Memories cut as noise fill the places of duplicates, rather than leaving them empty."""
    same = [MemoryInput(id=f"copy{at:02}", text="Ida painted boats in the harbour.") for at in range(12)]
    await add(trivet, [*same, *(memory for memory in paintings() if memory.id and memory.id[0] == "b")])
    for mode in (Mode.VECTOR, Mode.ADAPTIVE, Mode.HYBRID):
        assert len((await asked(trivet, BOATS, mode=mode)).results) == 10, mode


@pytest.mark.parametrize("copies", [9, 10, 20, 30])
async def test_copies_of_the_best_leave_an_answer_full(trivet: Trivet, copies: int) -> None:
    """Others fill the places of duplicates, even if they match less."""
    same = [MemoryInput(id=f"copy{at:02}", text="Ida painted boats in the harbour.") for at in range(copies)]
    await add(trivet, [*same, *paintings()])
    for mode in (Mode.ADAPTIVE, Mode.HYBRID):
        response = await asked(trivet, BOATS, mode=mode)
        assert len(response.results) == 10
        assert len({result.text for result in response.results}) == 10


def fused_sum(response: SearchResponse, result: SearchResult) -> float:
    assert response.explanation
    rrf_k = response.explanation.rrf_k
    return fsum(response.weights[leg] / (rrf_k + evidence.rank) for leg, evidence in result.legs.items())


@pytest.mark.parametrize("mode", [Mode.ADAPTIVE, Mode.HYBRID])
async def test_scores_are_the_sums_of_the_legs_shown(trivet: Trivet, mode: Mode) -> None:
    """Up to the four digits of the weights shown; best first, ranks of each leg by its scores."""
    await add(trivet, [*chat(), *paintings()])
    for query in (BOATS, ASKED, "What did Bo say of Rome last week?", "Ida"):
        every: tuple[dict[str, Any], ...] = ({}, {"rrf_k": 60}, {"top_k": 40})
        for options in every:
            response = await asked(trivet, query, mode=mode, rescore=False, **options)
            assert sum(response.weights.values()) == pytest.approx(1, abs=2e-4)
            scores = [result.score for result in response.results]
            assert scores == sorted(scores, reverse=True)
            for result in response.results:
                assert result.legs
                assert result.fused.score == pytest.approx(fused_sum(response, result), abs=5e-5)
                assert response.explanation
                if response.explanation.time is None:
                    assert result.score == result.fused.score
            for leg in ("vector", "bm25", "graph"):
                ranked = sorted((r.legs[leg].rank, -r.legs[leg].score) for r in response.results if leg in r.legs)
                assert [score for _, score in ranked] == sorted(score for _, score in ranked)


def rankings(response: SearchResponse) -> list[Any]:
    """Everything except timings."""
    return [response.results, response.intent, response.weights, response.explanation, response.degraded]


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A server with four sessions of six turns about boats and a document, some memories of no source."""
    sessions = [
        {"id": f"s{session}-{at}", "text": f"Ida painted a {COLOURS[at]} boat {place}.", "session_id": f"s{session}"}
        for session, place in enumerate(("in the harbour", "at Rome", "near Oslo", "by Turku"))
        for at in range(6)
    ]
    chunks = [
        {"id": f"d-{at}", "text": f"A {colour} boat in the harbour.", "document_id": "d", "kind": "chunk"}
        for at, colour in enumerate(COLOURS[6:12])
    ]
    async with served(database_url) as opened:
        added = await opened.post(f"{URL}/memories", json={"memories": [*sessions, *chunks]})
        assert added.status_code == 201, added.text
        yield opened


async def test_the_last_session_is_the_last_that_may_be_found(trivet: Trivet) -> None:
    """The running one is stored already, and left out. Other sessions are counted from the first that is visible."""
    said = [
        turn(f"Topic {number} {at} of gardens and boats.", "Ann", AUTUMN + timedelta(days=number, minutes=at),
             id=f"s{number}-{at}", session=f"s{number}") for number in range(4) for at in range(4)
    ]  # fmt: skip
    expired = turn("Gardens.", "Ann", AUTUMN - timedelta(days=1), id="e", session="e")
    await add(trivet, [structs.replace(expired, expires_at=AUTUMN), *said])
    query = "What did we talk about in our last session?"
    found = await asked(trivet, query, exclude=Exclude(session_id=["s3"]), top_k=4)
    assert {source(id_) for id_ in ids(found)} == {"s2"}
    assert {source(id_) for id_ in ids(await asked(trivet, query, top_k=4))} == {"s3"}
    query = "What did we talk about in our third session?"
    found = await asked(trivet, query, exclude=Exclude(session_id=["s1"]), top_k=4)
    assert {source(id_) for id_ in ids(found)} == {"s2"}


async def test_what_is_found_of_a_named_time_has_its_path(trivet: Trivet) -> None:
    """Too many others mention the entity for it to be found without the time."""
    caroline, later = [EntityInput(name="Caroline", type="person")], datetime(2024, 5, 1, tzinfo=UTC)
    said = [MemoryInput(id="old", text="Caroline bought the green kayak.", created_at=datetime(2024, 3, 1, tzinfo=UTC))]
    said += [MemoryInput(id=f"m{at}", text=f"Caroline saw number {at}.", created_at=later) for at in range(150)]
    said = [structs.replace(each, entities=caroline, speaker="Caroline") for each in said]
    said += [MemoryInput(id=f"w{at}", text=f"The weather of {at} was fine.", created_at=later) for at in range(50)]
    await add(trivet, said)
    for mode in (Mode.GRAPH, Mode.ADAPTIVE):
        answer = await asked(trivet, "What did Caroline do on 1 March 2024?", mode=mode)
        [found] = [each for each in answer.results if each.id == "old"]
        assert found.legs["graph"].path


def source(id_: str) -> str:
    return id_.partition("-")[0]


@pytest.mark.parametrize("cap", [1, 2, 3])
async def test_a_search_takes_no_more_than_the_cap_of_a_source(client: httpx.AsyncClient, cap: int) -> None:
    """If others match: five sources have five memories within any cap."""
    for top_k in (3, 5):
        answer = await client.post(f"{URL}/search", json={"query": BOATS, "top_k": top_k, "source_cap": cap})
        found = [source(result["id"]) for result in answer.json()["results"]]
        assert len(found) == top_k
        assert max(found.count(one) for one in found) <= cap


async def test_the_cap_lets_in_what_matches_less(trivet: Trivet) -> None:
    """Even memories that would be cut as noise can take the source's place."""
    session = [
        MemoryInput(id=f"s-{at}", text=f"Ida painted a {colour} boat in the harbour.", session_id="s")
        for at, colour in enumerate(COLOURS[:8])
    ]
    others = [MemoryInput(id=f"b{at}", text=f"Use {at} spoons of flour.") for at in range(2, 20)]
    await add(trivet, [*session, *others])
    for mode in (Mode.VECTOR, Mode.ADAPTIVE, Mode.HYBRID):
        found = [source(id_) for id_ in ids(await asked(trivet, BOATS, mode=mode, top_k=5, source_cap=2))]
        assert len(found) == 5
        assert found.count("s") == 2, mode


async def test_the_cap_reads_on_past_many_of_one_source(trivet: Trivet, subtests: pytest.Subtests) -> None:
    """Which are more than an answer is usually chosen from."""
    manual = [
        MemoryInput(id=f"m-{at}", text=f"The blue boat of captain {'abcdefghij'[at % 10] * 5}{at} sails.",
                    document_id="manual", kind="chunk") for at in range(30)
    ]  # fmt: skip
    others = [
        MemoryInput(id=f"o-{at}", text="Somebody once saw a boat near the harbour, on a long day with "
                    f"{at} people around who ate bread.", document_id=f"o{at}", kind="chunk") for at in range(8)
    ]  # fmt: skip
    await add(trivet, [*manual, *others])
    for mode in Mode:
        with subtests.test(mode=mode):
            answer = await asked(trivet, "blue boat sails", mode=mode, top_k=5, source_cap=2)
            found = [source(id_) for id_ in ids(answer)]
            assert (len(found), found.count("m")) == (5, 2)


async def test_a_context_says_what_the_cap_left_out(client: httpx.AsyncClient) -> None:
    answer = await client.post(f"{URL}/context", json={"query": BOATS, "source_cap": 2})
    pack = answer.json()
    kept = [source(item["id"]) for item in pack["items"]]
    assert kept
    assert max(kept.count(one) for one in kept) <= 2
    dropped = [item["id"] for item in pack["dropped"] if item["reason"] == "source_cap"]
    assert dropped
    assert not set(dropped) & {item["id"] for item in pack["items"]}
    free = (await client.post(f"{URL}/context", json={"query": BOATS})).json()
    assert not [item for item in free["dropped"] if item["reason"] == "source_cap"]
    assert len(free["items"]) == len(kept) + len(dropped)
    few = {"query": BOATS, "source_cap": 2, "top_k": 2, "explain": True}
    pack = (await client.post(f"{URL}/context", json=few)).json()
    considered = {each["id"] for each in (*pack["items"], *pack["dropped"])}
    assert pack["results"]
    assert considered.issuperset(each["id"] for each in pack["results"])


async def test_a_profiles_cap_leaves_a_context_full(client: httpx.AsyncClient) -> None:
    profile = (await client.put("/v1/profiles/capped", json={"source_cap": 1})).json()["profile"]
    asked = {"query": BOATS, "top_k": 5, "min_relevance": 0, "profile": f"capped@{profile['version']}"}
    pack = (await client.post(f"{URL}/context", json=asked)).json()
    assert len({source(item["id"]) for item in pack["items"]}) == len(pack["items"]) == 5


async def test_diversity_keeps_the_best_and_the_number(client: httpx.AsyncClient) -> None:
    orders = []
    for diversity in (None, 0, 0.5, 1):
        answer = await client.post(f"{URL}/search", json={"query": BOATS, "top_k": 6, "diversity": diversity})
        orders.append([result["id"] for result in answer.json()["results"]])
    assert orders[0] == orders[1]
    assert {order[0] for order in orders} == {orders[0][0]}
    assert {len(set(order)) for order in orders} == {6}
    assert orders[3] != orders[0]


async def test_a_bad_value_is_named(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for field, value in (
        ("source_cap", 0),
        ("source_cap", 201),
        ("source_cap", -1),
        ("source_cap", 1.5),
        ("source_cap", "2"),
        ("source_cap", True),
        ("diversity", -0.1),
        ("diversity", 1.01),
        ("diversity", "0.5"),
        ("query_timestamp", "yesterday"),
        ("query_timestamp", "2024-06-01T12:00:00"),
        ("query_timestamp", 1717243200),
    ):
        for endpoint in ("search", "context"):
            with subtests.test(endpoint=endpoint, field=field, value=value):
                answer = await client.post(f"{URL}/{endpoint}", json={"query": BOATS, field: value})
                assert [error["loc"] for error in problem_of(answer, 422)["errors"]] == [[field]]  # type: ignore[attr-defined]
