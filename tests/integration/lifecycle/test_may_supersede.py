"""A write returns the older memories that it may make outdated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import UNSET, structs

from retrieval.engine import Trivet
from retrieval.errors import InvalidInput
from retrieval.types.memory import MAX_COMPARED, MemoryInput

DAY = datetime(2024, 3, 4, 9, tzinfo=UTC)

OLD = MemoryInput(
    id="old",
    text="Our bagpipe rehearsal is on Tuesday evenings at the Ravenscourt hall.",
    speaker="Ana",
    session_id="s1",
    created_at=DAY,
)
NEW = MemoryInput(
    id="new",
    text="The bagpipe rehearsal moved from the Ravenscourt hall to Thursday mornings.",
    speaker="Ana",
    session_id="s2",
    created_at=DAY + timedelta(days=30),
)

_SUBJECTS = [
    "kettle", "garden", "tram", "dentist", "novel", "bicycle", "soup", "carpet", "piano", "ferry", "lamp", "cousin",
    "invoice", "marathon", "cheese", "tent", "router", "violet", "scarf", "harbour", "museum", "oven", "pigeon", "desk",
]  # fmt: skip
OTHERS = [
    MemoryInput(
        id=f"other{number}",
        text=f"I thought about the {subject} again today and it was fine.",
        speaker="Ana",
        session_id=f"o{number}",
        created_at=DAY - timedelta(days=number + 1),
    )
    for number, subject in enumerate(_SUBJECTS)
]


async def _suggested(trivet: Trivet, *batch: MemoryInput, namespace: str = "own") -> list[Any]:
    results = await trivet.add(namespace, batch, may_supersede=True)
    return [result.may_supersede for result in results]


async def _after(
    trivet: Trivet, before: Sequence[MemoryInput], new: MemoryInput = NEW, namespace: str = "own"
) -> list[str]:
    """The suggestions for a memory among others."""
    await trivet.add(namespace, [*OTHERS, *before])
    [suggested] = await _suggested(trivet, new, namespace=namespace)
    assert isinstance(suggested, list)
    return suggested


async def test_an_older_statement_of_the_same_thing_is_named(trivet: Trivet) -> None:
    """Also after an update; only if requested, and not for unchanged or rejected memories."""
    assert await _after(trivet, [OLD]) == ["old"]
    bad = structs.replace(NEW, id="bad", supersedes="bad")
    assert await _suggested(trivet, NEW, structs.replace(OLD, id="odd"), bad) == [UNSET, [], UNSET]
    updated = structs.replace(NEW, text=f"{NEW.text} So be it.")
    assert await _suggested(trivet, updated) == [["old", "odd"]]
    results = await trivet.add("own", [NEW])
    assert [result.may_supersede for result in results] == [UNSET]


async def test_what_is_not_an_older_statement_is_not_named(trivet: Trivet, subtests: pytest.Subtests) -> None:
    """Another speaker's, same session or document, not older, deleted, repeated, a question, long, other, a chunk."""
    changes: list[dict[str, Any]] = [
        {"speaker": "Ben"},
        {"speaker": None},
        {"session_id": "s2"},
        {"created_at": NEW.created_at},
        {"created_at": DAY + timedelta(days=60)},
        {"expires_at": DAY + timedelta(days=1)},
        {"text": NEW.text},
        {"text": NEW.text.replace(".", "!")},
        {"text": "When is the bagpipe rehearsal at the Ravenscourt hall?"},
        {"text": f"{OLD.text} {' '.join(f'word{number}' for number in range(200))}"},
        {"text": "We had no time for anything else on Tuesday."},
        {"kind": "chunk", "document_id": "d"},
    ]
    for number, change in enumerate(changes):
        with subtests.test(change=change):
            assert await _after(trivet, [structs.replace(OLD, **change)], namespace=f"n{number}") == []


async def test_nothing_is_named_for_a_question_or_a_passage(trivet: Trivet) -> None:
    await trivet.add("own", [*OTHERS, OLD])
    question = structs.replace(NEW, id="q", text="Has the bagpipe rehearsal moved from the Ravenscourt hall?")
    passage = structs.replace(NEW, id="p", text=f"{NEW.text} {' '.join(f'word{number}' for number in range(200))}")
    assert await _suggested(trivet, question, passage) == [[], []]


async def test_what_has_no_speaker_is_compared_with_its_like(trivet: Trivet) -> None:
    """No session is needed; two chunks of one document do not outdate each other."""
    alone = structs.replace(OLD, speaker=None, session_id=None)
    assert await _after(trivet, [alone], structs.replace(NEW, speaker=None, session_id=None)) == ["old"]
    one = structs.replace(alone, id="c1", kind="chunk", document_id="d")
    other = structs.replace(NEW, id="c2", speaker=None, session_id=None, kind="chunk", document_id="d")
    await trivet.add("chunks", [*OTHERS, one])
    assert await _suggested(trivet, other, namespace="chunks") == [[]]


async def test_what_is_superseded_already_is_not_named(trivet: Trivet) -> None:
    """By the new one itself or by another."""
    assert await _after(trivet, [OLD], structs.replace(NEW, supersedes="old")) == []
    assert await _suggested(trivet, structs.replace(NEW, id="newer", session_id="s3", supersedes="new")) == [[]]


async def test_at_most_three_are_named_the_likest_first(trivet: Trivet) -> None:
    """And one batch may hold both the older and the newer."""
    places = ["hall", "hall on Tuesdays", "hall with the drums", "hall, which has mice", "barn"]
    older = [
        structs.replace(
            OLD,
            id=f"old{number}",
            text=f"The bagpipe rehearsal is at the Ravenscourt {place}.",
            session_id=f"t{number}",
        )
        for number, place in enumerate(places)
    ]
    [*_, suggested] = await _suggested(trivet, *OTHERS, *older, NEW)
    assert len(suggested) == 3
    assert suggested[0] == "old0"
    assert "old4" not in suggested


async def test_turns_are_compared_by_their_own_texts(trivet: Trivet) -> None:
    """A turn's vector has its predecessors in it, which are about something else here."""
    chat = [
        structs.replace(
            OLD, id=f"{session}{position}", text=text, session_id=session, position=position, kind="message"
        )
        for session, texts in {
            "a": ["The tulips froze.", "All of the tulips.", OLD.text],
            "b": ["Grandma sold her submarine.", "It leaked.", "Nobody wept."],
        }.items()
        for position, text in enumerate(texts)
    ]
    assert await _after(trivet, chat) == ["a2"]


async def test_another_namespace_is_not_looked_at(trivet: Trivet) -> None:
    """Its memories have the same ordinals."""
    await trivet.add("twin", [*OTHERS, OLD])
    assert await _after(trivet, [structs.replace(OTHERS[0], id="old", session_id="s1")]) == []


async def test_a_large_batch_is_refused_before_it_is_written(trivet: Trivet) -> None:
    batch = [MemoryInput(text=f"note {number}") for number in range(MAX_COMPARED + 1)]
    with pytest.raises(InvalidInput, match="100"):
        await trivet.add("own", batch, may_supersede=True)
    assert await trivet.list_namespaces() == []


async def test_all_bad_or_nothing_new_is_compared_with_nothing(trivet: Trivet) -> None:
    assert await _suggested(trivet) == []
    assert await _suggested(trivet, structs.replace(NEW, supersedes="new")) == [UNSET]
