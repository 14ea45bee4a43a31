"""A query with an exact identifier ranks the memories that contain it before all others."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from msgspec import structs

from retrieval.engine import Trivet
from retrieval.legs.query_terms import RARE
from retrieval.types.memory import MemoryInput
from retrieval.types.search import ContextRequest, Filters, Mode, SearchRequest, SearchResponse

NS = "notes"
PEOPLE = ("Marta", "Olek", "Priya", "Jonas", "Aiko", "Ruben")
THINGS = ("boiler", "delivery van", "printer", "greenhouse roof", "contract", "water pump")
SAID = (
    "{who} repaired the {thing} before the weekend.",
    "The {thing} was late again, and {who} called the supplier about it.",
    "{who} paid for the {thing} and wants a second opinion.",
    "Nobody knows where the {thing} went, not even {who}.",
)
WRITTEN = ("{id}: {said}", "See ticket {id} for this: {said}", "{said} ({id})")
FIRST = "memories that hold the query's identifier come first"


def notes(rng: random.Random) -> tuple[list[MemoryInput], Mapping[str, str]]:
    """Ninety lines of prose, every third with an identifier; and the identifiers by memory."""
    memories, identifiers = [], {}
    for number in range(90):
        said = rng.choice(SAID).format(who=rng.choice(PEOPLE), thing=rng.choice(THINGS))
        if number % 3 == 0:
            digits = rng.randrange(100_000, 999_999)
            identifier = identifiers[f"m{number}"] = rng.choice(
                [f"INV-{digits}", f"ERR_{digits % 9_000}", f"0x8f{digits % 100:02}", f"{digits % 9_000 + 1_000}-B"]
            )
            said = rng.choice(WRITTEN).format(id=identifier, said=said)
        memories.append(MemoryInput(id=f"m{number}", text=said))
    return memories, identifiers


async def asked(trivet: Trivet, query: str, **options: object) -> SearchResponse:
    return await trivet.search(NS, structs.replace(SearchRequest(query=query, explain=True), **options))


def says_so(answer: SearchResponse) -> bool:
    assert answer.explanation
    return FIRST in (answer.explanation.rescoring or "")


@pytest.mark.parametrize(
    "question", ["{id}", "What was {id} about?", "Can you remind me what happened with {id}, and who took care of it?"]
)
async def test_the_memory_that_holds_an_identifier_comes_first(trivet: Trivet, question: str) -> None:
    memories, identifiers = notes(random.Random(7))
    await trivet.add(NS, memories)
    first = {}
    for memory_id, identifier in identifiers.items():
        answer = await asked(trivet, question.format(id=identifier))
        first[memory_id] = answer.results[0].id
        assert says_so(answer)
        assert [each.score for each in answer.results] == sorted((each.score for each in answer.results), reverse=True)
    assert first == {memory_id: memory_id for memory_id in identifiers}


async def test_all_that_hold_it_come_first_also_where_the_question_asks_for_now(trivet: Trivet) -> None:
    memories, _ = notes(random.Random(7))
    holders = [
        MemoryInput(id=f"h{number}", text=f"{said} (PO-77120)", created_at=datetime(2020, 1, 1, tzinfo=UTC))
        for number, said in enumerate(("Ruben asked for it twice.", "It rained.", "The roof leaks."))
    ]
    await trivet.add(NS, [*memories, *holders])
    for question in ("Who looks after the printer and the boiler of po-77120?", "What is the state of PO-77120 now?"):
        answer = await asked(trivet, question)
        assert {each.id for each in answer.results[:3]} == {each.id for each in holders}


async def test_an_identifier_may_be_written_with_an_elided_article(trivet: Trivet) -> None:
    memories, _ = notes(random.Random(7))
    elided = MemoryInput(id="fr", text="Le printer de Marta, c'était l'INV-2048.")
    plain = MemoryInput(id="it", text="Ruben ha pagato INV-2049.")
    await trivet.add(NS, [*memories, elided, plain])
    for question, holder in (("What was INV-2048 about?", "fr"), ("Chi ha pagato l’INV-2049 al printer?", "it")):
        answer = await asked(trivet, question)
        assert says_so(answer)
        assert answer.results[0].id == holder


async def test_identifiers_may_be_listed_without_a_space(trivet: Trivet) -> None:
    memories, identifiers = notes(random.Random(7))
    listed = MemoryInput(id="both", text="Marta paid PO-77120/PO-77121, and the printer is late.")
    await trivet.add(NS, [*memories, listed])
    for one, other in pairwise(identifiers):
        both = f"{identifiers[one]}/{identifiers[other]}"
        answer = await asked(trivet, f"Who took care of {both} and the printer or the water pump?")
        assert says_so(answer)
        assert {each.id for each in answer.results[:2]} == {one, other}
    assert (await asked(trivet, "What was PO-77121 about?")).results[0].id == "both"


@pytest.mark.parametrize("messages", [1, 5])
async def test_it_counts_beside_whole_messages_that_the_query_quotes(trivet: Trivet, messages: int) -> None:
    """To BM25 one word of thirty is noise, however rare, and one of 150 scores less than any forty others."""
    rng = random.Random(7)
    memories, identifiers = notes(rng)
    words = [f"{start}{middle}{end}" for start in "bdfgklmnprst" for middle in "aeiou" for end in ("lam", "rin", "sto")]
    letters = [MemoryInput(id=f"l{number}", text=" ".join(rng.sample(words, 30))) for number in range(60)]
    await trivet.add(NS, [*memories, *letters])
    for first, (memory_id, identifier) in enumerate(identifiers.items()):
        quoted = ". ".join(letter.text for letter in letters[first : first + messages])
        answer = await asked(trivet, f"What about {identifier}? I was told: {quoted}.")
        assert answer.results[0].id == memory_id


async def test_a_number_with_its_sign_is_an_identifier(trivet: Trivet) -> None:
    memories, identifiers = notes(random.Random(7))
    numbers = {identifier: f"#{number}" for number, identifier in enumerate(identifiers.values(), 4_000)}
    for identifier, number in numbers.items():
        memories = [structs.replace(each, text=each.text.replace(identifier, number)) for each in memories]
    await trivet.add(NS, memories)
    for memory_id, identifier in identifiers.items():
        question = f"Can you remind me what happened with {numbers[identifier]}, and who took care of it?"
        assert (await asked(trivet, question)).results[0].id == memory_id


async def test_what_holds_it_is_shown_however_little_relevant(trivet: Trivet) -> None:
    memories, identifiers = notes(random.Random(7))
    await trivet.add(NS, memories)
    for memory_id, identifier in identifiers.items():
        question = f"What was {identifier} about?"
        answer = await asked(trivet, question, min_relevance=1.0)
        assert [each.id for each in answer.results] == [memory_id]
        assert answer.results[0].relevance is not None
        assert answer.results[0].relevance < 1
        pack = await trivet.context(NS, ContextRequest(query=question, min_relevance=1.0))
        assert [each.id for each in pack.items] == [memory_id]


async def test_what_was_superseded_does_not_make_an_identifier_common(trivet: Trivet) -> None:
    memories, _ = notes(random.Random(7))
    versions = [
        MemoryInput(
            id=f"v{number}", text=f"Shelf {number} has PO-77120.", supersedes=f"v{number - 1}" if number else None
        )
        for number in range(RARE + 2)
    ]
    await trivet.add(NS, [*memories, *versions])
    answer = await asked(trivet, "Is the printer with the boiler of PO-77120?")
    assert says_so(answer)
    assert answer.results[0].id == versions[-1].id


async def test_other_questions_and_rankings_are_left_alone(trivet: Trivet) -> None:
    memories, identifiers = notes(random.Random(7))
    shared = [
        MemoryInput(id=f"s{number}", text=f"Note {number} of PROJ-85.", tags=["shared"]) for number in range(RARE + 1)
    ]
    await trivet.add(NS, [*memories, *shared])
    identifier = identifiers["m0"]
    assert not says_so(await asked(trivet, "Who repaired the printer on the 2nd?"))
    assert not says_so(await asked(trivet, "What is PROJ-85 about?")), "it is not rare"
    assert not says_so(await asked(trivet, "What was ZZ-99999 about?")), "no memory holds it"
    assert not says_so(await asked(trivet, identifier, mode=Mode.VECTOR))
    plain = await asked(trivet, identifier, rescore=False)
    assert not says_so(plain)
    assert [each.score for each in plain.results] == [each.fused.score for each in plain.results]
    assert not says_so(await asked(trivet, identifier, filters=Filters(tags_any=["shared"]))), "it may not be found"
