"""Forgetting what a speaker said, with others' mentions reported; or everything that mentions an entity."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from graph.names import entity_id
from graph.store import Alias
from retrieval.engine import Trivet
from retrieval.entities.view import entity_code
from retrieval.errors import InvalidInput, NotFound
from retrieval.lifecycle.export import read_header
from retrieval.store import entities
from retrieval.types.entity import AliasChange
from retrieval.types.memory import EntityInput, ForgetRequest, MemoryInput
from retrieval.types.search import Filters

HOUSE = [
    MemoryInput(id="said1", text="I moved to Porto.", speaker="Lucía", kind="message", session_id="s"),
    MemoryInput(id="of1", text="Lucía lives near the river now.", speaker="Bruno", kind="message", session_id="s"),
    MemoryInput(id="said2", text="The kettle is mine.", speaker="Lucía", kind="message", session_id="s"),
    MemoryInput(id="of2", text="A friend came by.", entities=[EntityInput(name="Lucía", aliases=["Lu"])]),
    MemoryInput(id="else", text="Bruno has a bicycle.", speaker="Bruno"),
]


async def _ids(trivet: Trivet, namespace: str = "own") -> list[str]:
    return [memory.id for memory in (await trivet.list(namespace, Filters(), cursor=None, limit=100)).memories]


async def test_what_a_speaker_said_goes_and_what_others_said_of_them_is_named(trivet: Trivet) -> None:
    await trivet.add("own", HOUSE)
    await trivet.add("other", HOUSE)
    tried = await trivet.lifecycle.forget("own", ForgetRequest(speaker="Lucía", dry_run=True))
    assert (tried.deleted, tried.mentioned_by) == (["said1", "said2"], ["of1", "of2"])
    assert len(await _ids(trivet)) == 5
    assert await trivet.lifecycle.forget("own", ForgetRequest(speaker="Lucía")) == tried
    assert await _ids(trivet) == ["of1", "of2", "else"]
    assert len(await _ids(trivet, "other")) == 5
    again = await trivet.lifecycle.forget("own", ForgetRequest(speaker="Lucía"))
    assert (again.deleted, again.mentioned_by) == ([], ["of1", "of2"])


async def test_it_has_the_time_to_search_the_texts_of_a_large_namespace(trivet: Trivet, database_url: str) -> None:
    """A million chunks of documents take a minute; here they are shown only to statements that may take long."""
    await trivet.add("own", HOUSE)
    with psycopg.connect(database_url) as db:
        db.execute("alter table memory rename to stored")
        db.execute(
            "create view memory as select * from stored where current_setting('statement_timeout')::interval > '5 min'"
        )
    tried = await trivet.lifecycle.forget("own", ForgetRequest(speaker="Lucía", dry_run=True))
    assert (tried.deleted, tried.mentioned_by) == (["said1", "said2"], ["of1", "of2"])


@pytest.mark.parametrize("name", ["lucía", "Lu"])
async def test_all_that_mentions_an_entity_goes(trivet: Trivet, name: str) -> None:
    """By any spelling of its name, or by an alias; speakers are mentioned by what they say."""
    await trivet.add("own", HOUSE)
    receipt = await trivet.lifecycle.forget("own", ForgetRequest(entity=name))
    assert (receipt.deleted, receipt.mentioned_by) == (["said1", "of1", "said2", "of2"], [])
    assert await _ids(trivet) == ["else"]


async def test_what_merely_writes_a_name_goes(trivet: Trivet, subtests: pytest.Subtests) -> None:
    """Even if the graph does not treat it as a name, or has it in the singular."""
    texts = {
        "may": "May Chen leads it, and may stay.", "api": "We restarted the API  gateway.",
        "hans": "yesterday i met hans", "node": "node.js is new", "c": "see c++ (new) there",
        "chinese": "昨天李明和王芳去了青岛。", "thai": "วันนี้อำพลไปทะเล",
        "japanese": "田中太郎はジョン・レノンが好きです", "mixed": "我和Ann Lee去了青岛。", "longer": "Joann Lee",
    }  # fmt: skip
    given = MemoryInput(id="given", text="New.", entities=[EntityInput(name="May Chen", aliases=["MC"])])
    memories = [given, *(MemoryInput(id=id_, text=text) for id_, text in texts.items())]
    goes = [
        ("May Chen", ["given", "may"]), ("API-gateway", ["api"]), ("hans", ["hans"]), ("May", []),
        ("node.js", ["node"]), ("MC", ["given", "may"]), ("C++ (new)", ["c"]),
        ("李明", ["chinese"]), ("อำพล", ["thai"]), ("ジョン・レノン", ["japanese"]), ("田中 太郎", ["japanese"]),
        ("Ann Lee", ["mixed"]),
    ]  # fmt: skip
    for number, (name, deleted) in enumerate(goes):
        with subtests.test(name=name):
            await trivet.add(f"n{number}", memories)
            receipt = await trivet.lifecycle.forget(f"n{number}", ForgetRequest(entity=name))
            assert receipt.deleted == deleted


@pytest.mark.parametrize("name", ["Duarte Pinto", "Mr Pinto", "Pin"])
async def test_what_was_merged_is_one(trivet: Trivet, name: str) -> None:
    """Whichever of its names or aliases is given, and for what is said of a speaker, too."""
    said = [
        MemoryInput(id="m1", text="A boat was sold.", entities=[EntityInput(name="Duarte Pinto")]),
        MemoryInput(id="m2", text="He has a new workshop.", entities=[EntityInput(name="Mr Pinto", aliases=["Pin"])]),
        MemoryInput(id="m3", text="The kettle is new.", entities=[EntityInput(name="kettle")]),
    ]
    await trivet.add("own", said)
    one, other = (entity_code(entity_id(key)) for key in ("mr pinto", "duarte pinto"))
    await trivet.entities.merge("own", one, other)
    assert (await trivet.lifecycle.forget("own", ForgetRequest(speaker=name))).mentioned_by == ["m1", "m2"]
    assert (await trivet.lifecycle.forget("own", ForgetRequest(entity=name))).deleted == ["m1", "m2"]
    assert await _ids(trivet) == ["m3"]


@pytest.mark.parametrize("name", ["Lucía", "Lu", "Lucy", "Mrs Mendes"])
async def test_what_an_entity_was_called_by_hand_goes_with_it(trivet: Trivet, name: str) -> None:
    """Neither tables nor an export contain its name, whichever name was used to forget it."""
    called = MemoryInput(id="of3", text="She is late.", entities=[EntityInput(name="Mrs Mendes")])
    await trivet.add("own", [*HOUSE, called])
    lucia, mendes, bruno = (entity_code(entity_id(key)) for key in ("lucía", "mrs mendes", "bruno"))
    await trivet.entities.merge("own", mendes, lucia)
    await trivet.entities.change_aliases("own", lucia, AliasChange(add=["Lucy"]))
    await trivet.entities.change_aliases("own", bruno, AliasChange(add=["Bru"]))
    await trivet.lifecycle.forget("own", ForgetRequest(entity=name, dry_run=True))
    assert (await trivet.entities.page("own", mendes)).name == "Lucía"
    await trivet.lifecycle.forget("own", ForgetRequest(entity=name))
    for entity in (lucia, mendes):
        with pytest.raises(NotFound):
            await trivet.entities.page("own", entity)
    header = read_header(b"".join([piece async for piece in trivet.lifecycle.export("own")]).splitlines()[0])
    assert (header.aliases, header.merges) == ([("bruno", "Bru")], [])
    assert await _ids(trivet) == ["else"]


@pytest.mark.parametrize("merged", ["into it", "with all it is"])
async def test_what_is_written_while_an_entity_is_forgotten_does_not_mention_it(
    trivet: Trivet, database_url: str, monkeypatch: pytest.MonkeyPatch, merged: str
) -> None:
    """Between the deletion of its memories and that of its names given by hand."""
    rui, nuno = (MemoryInput(id=name, text="x", entities=[EntityInput(name=name)]) for name in ("Rui", "Nuno"))
    await trivet.add("own", [HOUSE[3], rui, nuno])
    lucia, rui_, nuno_ = (entity_code(entity_id(key)) for key in ("lucía", "rui", "nuno"))
    await trivet.entities.change_aliases("own", lucia, AliasChange(add=["Lucy"]))
    forget_by_hand = entities.forget_by_hand

    async def meanwhile(conn: AsyncConnection[Any], ns: int, family: Collection[int]) -> list[Alias]:
        await trivet.add("own", [MemoryInput(id="late", text="We met Lucy.")])
        await trivet.entities.merge("own", rui_, lucia)
        if merged == "with all it is":
            await trivet.entities.merge("own", lucia, nuno_)
        await trivet.delete("own", "Rui")
        return await forget_by_hand(conn, ns, family)

    monkeypatch.setattr(entities, "forget_by_hand", meanwhile)
    receipt = await trivet.lifecycle.forget("own", ForgetRequest(entity="Lucía"))
    assert receipt.deleted == ["of2"]
    with psycopg.connect(database_url) as db:
        named = "select key from entity where type <> 'text' order by key"
        assert db.execute(named).fetchall() == [("lucy",), ("nuno",)]
        assert db.execute("select count(*) from entity_merge").fetchone() == (0,)
    mentioning = (await trivet.entities.page("own", entity_code(entity_id("lucy")))).memories
    assert [memory.id for memory in mentioning] == ["late"]


async def test_a_name_within_a_longer_one_goes_and_a_dry_run_says_so(trivet: Trivet) -> None:
    """Its longer name may be the whole name of the same person."""
    texts = {"flight": "A flight to New York.", "paper": "The New York Times came.", "else": "New bread in York."}
    await trivet.add("own", [MemoryInput(id=id_, text=text) for id_, text in texts.items()])
    receipt = await trivet.lifecycle.forget("own", ForgetRequest(entity="New York", dry_run=True))
    assert receipt.deleted == ["flight", "paper"]


async def test_neither_or_both_are_refused(trivet: Trivet) -> None:
    for request in (ForgetRequest(), ForgetRequest(speaker="Lucía", entity="Lucía")):
        with pytest.raises(InvalidInput, match="either"):
            await trivet.lifecycle.forget("own", request)
    with pytest.raises(NotFound):
        await trivet.lifecycle.forget("own", ForgetRequest(speaker="Lucía"))


@pytest.mark.parametrize("name", [" ", "\u200b"])
async def test_a_blank_entity_is_refused(trivet: Trivet, name: str) -> None:
    await trivet.add("own", HOUSE)
    with pytest.raises(InvalidInput, match="visible") as refused:
        await trivet.lifecycle.forget("own", ForgetRequest(entity=name))
    assert refused.value.loc == ("entity",)
