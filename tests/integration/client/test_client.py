"""The Python clients against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_message_function_tool_call import Function

import trivet
from retrieval.types.memory import UpdateReceipt
from tests.serving import on_a_port, settings_for
from trivet import calls

MAY = datetime(2025, 5, 20, 18, tzinfo=UTC)


@pytest.fixture
def url(database_url: str) -> Iterator[str]:
    """The address of a server with its own database."""
    with on_a_port(settings_for(database_url)) as address:
        yield address


@pytest.fixture
def ana(url: str) -> Iterator[trivet.Client]:
    with trivet.Client(url, namespace="ana") as client:
        yield client


def test_what_is_added_in_any_form_is_found(ana: trivet.Client) -> None:
    memory = trivet.Memory(id="m1", text="My sister Ines moved to Porto.", speaker="Ana", created_at=MAY, tags=["home"])
    results = ana.add([memory, {"id": "m2", "text": "The kettle is copper."}, "Slugs ate the lettuce."])
    assert [result.status for result in results] == ["created"] * 3
    answer = ana.search("Who moved to Porto?", top_k=1, explain=True)
    [found] = answer.results
    assert (found.id, found.speaker, found.created_at, found.tags) == ("m1", "Ana", MAY, ["home"])
    assert answer.search_id
    pack = ana.context("Who moved to Porto?", max_tokens=200)
    assert pack.items[0].id == "m1"
    assert "Porto" in pack.context
    talk = [{"role": "user", "content": "Who moved to Porto?"}]
    assert ana.context(messages=talk, max_tokens=200).items[0].id == "m1"
    assert ana.classify("Who moved to Porto?").weights.keys() == {"vector", "bm25", "graph"}
    ana.put_namespace(profile="research")
    profiles = [ana.classify("Who moved to Porto?", namespace=name).profile for name in ("ana", None)]
    assert [profile.partition("@")[0] for profile in profiles] == ["research", "default"]


def test_namespaces_are_set_up_listed_and_deleted(ana: trivet.Client) -> None:
    assert ana.put_namespace(language="german").settings.language == "german"
    ana.add("Die Katzen schliefen.")
    ana.add("The kettle is copper.", namespace="ben")
    with pytest.raises(trivet.Conflict, match="german"):
        ana.put_namespace(language="english")
    assert [(one.name, one.memories) for one in ana.namespaces()] == [("ana", 1), ("ben", 1)]
    assert ana.delete_namespace("ben").deleted["memories"] == 1
    assert [one.name for one in ana.namespaces()] == ["ana"]
    with pytest.raises(trivet.NotFound):
        ana.delete_namespace("ben")


def test_messages_may_be_those_that_openai_s_library_returns(ana: trivet.Client) -> None:
    ana.add(
        [{"id": "m1", "text": "My sister Ines moved to Porto."}, {"id": "m2", "text": "Porto is far away, said Ines."}]
    )
    recall = ChatCompletionMessageFunctionToolCall(
        id="c1", type="function", function=Function(name="recall", arguments='{"query": "Ines"}')
    )
    talk = [
        {"role": "user", "content": "Who moved to Porto?"},
        ChatCompletionMessage(role="assistant", content=None, tool_calls=[recall]),
        {"role": "tool", "tool_call_id": "c1", "content": "My sister Ines moved to Porto."},
    ]
    pack = ana.context(messages=talk, min_relevance=0)
    assert [item.id for item in pack.items] == ["m2"]
    assert ("m1", "in_messages") in [(dropped.id, dropped.reason) for dropped in pack.dropped]
    with pytest.raises(TypeError, match="Thread is not JSON"):
        ana.context(messages=[Thread()])


def test_a_memory_is_read_changed_and_added_elsewhere(ana: trivet.Client) -> None:
    ana.add({"id": "a/b ?", "text": "The kettle is copper.", "title": "Kitchen"})
    assert ana.update("a/b ?", text="The kettle is steel.", title=None).title is None
    stored = ana.get("a/b ?")
    assert (stored.text, stored.title) == ("The kettle is steel.", None)
    [result] = ana.add(stored, namespace="ben")
    assert (result.id, result.status) == ("a/b ?", "created")
    [found] = ana.search("kettle").results
    with pytest.raises(trivet.InvalidInput, match=r"or a trivet\.Memory, not SearchResult\("):
        ana.add(found)  # type: ignore[arg-type]
    ana.delete("a/b ?")
    with pytest.raises(trivet.NotFound):
        ana.get("a/b ?")
    assert ana.get("a/b ?", namespace="ben").text == "The kettle is steel."


def test_all_pages_are_read(ana: trivet.Client) -> None:
    ana.add({"id": f"m{number:03}", "text": f"note {number}", "tags": ["odd"] * (number % 2)} for number in range(401))
    assert [memory.id for memory in ana.get_all()] == [f"m{number:03}" for number in range(401)]
    assert len(list(ana.get_all(tags_all=["odd"]))) == 200
    assert ana.delete_all(tags_all=["odd"]) == 200
    assert len(list(ana.get_all())) == 201
    with pytest.raises(trivet.InvalidInput):
        ana.delete_all()
    assert ana.delete_all(ids=(id for id in ("m000", "none", "m002"))) == 2
    assert [memory.id for memory in ana.get_all()][:2] == ["m004", "m006"]
    refused: list[dict[str, Any]] = [{"ids": ["m004"], "tags_all": ["odd"]}, {"ids": "m004"}, {"ids": []}]
    for which in refused:
        with pytest.raises(trivet.InvalidInput):
            ana.delete_all(**which)
    assert len(list(ana.get_all())) == 199


def test_a_loop_may_change_the_memories_that_it_gets(ana: trivet.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change takes a memory to the end of the list."""
    monkeypatch.setattr(calls, "PAGE", 2)
    ana.add({"id": f"m{number}", "text": "note", "metadata": {"read": 0}} for number in range(5))
    changed = [
        ana.update(each.id, metadata={"read": each.metadata["read"] + 1}).id for each in islice(ana.get_all(), 20)
    ]
    assert changed == [f"m{number}" for number in range(5)]
    assert [each.metadata for each in ana.get_all()] == [{"read": 1}] * 5


def test_entities_their_neighbours_and_paths(ana: trivet.Client) -> None:
    names = [f"Person {number:03}" for number in range(250)]
    chain = [
        {"id": one, "text": "They met.", "created_at": MAY, "entities": [{"name": one}, {"name": other}]}
        for one, other in pairwise(names)
    ]
    ana.add(chain)
    listed = list(ana.entities(q="person"))
    assert sorted(entity.name for entity in listed if entity.name in names) == names
    assert [entity.mentions for entity in listed] == sorted([entity.mentions for entity in listed], reverse=True)
    assert list(ana.entities(type=["planet"])) == []
    assert list(ana.entities(as_of=datetime(2020, 1, 1, tzinfo=UTC))) == []
    ids = {entity.name: entity.id for entity in listed}
    page = ana.entity(ids[names[7]], limit=1, filters={"created_after": "2020-01-01T00:00:00Z"})
    assert (page.name, page.mentions, len(page.memories)) == (names[7], 2, 1)
    near = ana.neighbors(ids[names[7]], hops=2, words=False)
    assert sorted(each.name for each in near.neighbors if each.hops == 1) == [names[6], names[8]]
    [path] = ana.paths(ids[names[0]], ids[names[4]], max_hops=4).paths
    assert [each.name for each in path.entities] == names[:5]
    with pytest.raises(trivet.NotFound):
        ana.entity("0" * 16)
    with pytest.raises(trivet.InvalidInput, match="target"):
        ana.paths(ids[names[0]], ids[names[0]])


def test_an_entity_is_given_aliases_and_loses_them(ana: trivet.Client) -> None:
    ana.add({"id": "m1", "text": "They met.", "entities": [{"name": "Robert Quill"}, {"name": "Nora Vane"}]})
    ids = {entity.name: entity.id for entity in ana.entities()}
    robert = ids["Robert Quill"]
    given = ana.change_aliases(robert, add=["Bertie", "The Captain"])
    assert (given.id, sorted(given.aliases)) == (robert, ["Bertie", "The Captain"])
    assert [entity.id for entity in ana.entities(q="captain")] == [robert]
    assert ana.change_aliases(robert, remove=["The Captain"]).aliases == ["Bertie"]
    assert ana.entity(robert).aliases == ["Bertie"]
    with pytest.raises(trivet.Conflict, match="Nora Vane"):
        ana.change_aliases(robert, add=["Nora Vane"])
    with pytest.raises(trivet.InvalidInput, match="aliases"):
        ana.change_aliases(robert)
    with pytest.raises(trivet.InvalidInput):
        ana.change_aliases(robert, add="Bert")
    with pytest.raises(trivet.NotFound):
        ana.change_aliases("0" * 16, add=["Nobody"])


def test_entities_are_merged_and_told_apart_again(ana: trivet.Client) -> None:
    ana.add(
        [
            {"id": "m1", "text": "A boat was built.", "entities": [{"name": "Robert Quill"}]},
            {"id": "m2", "text": "A boat was sold.", "entities": [{"name": "Bertie Quill"}]},
        ]
    )
    ids = {entity.name: entity.id for entity in ana.entities()}
    robert, bertie = ids["Robert Quill"], ids["Bertie Quill"]
    receipt = ana.merge_entity(bertie, into=robert)
    assert (receipt.entity.id, receipt.entity.name, receipt.entity.mentions) == (robert, "Robert Quill", 2)
    page = ana.entity(bertie)
    assert (page.id, sorted(memory.id for memory in page.memories)) == (robert, ["m1", "m2"])
    assert [(merge.merge_id, merge.id, merge.name) for merge in page.merged] == [
        (receipt.merge_id, bertie, "Bertie Quill")
    ]
    with pytest.raises(trivet.Conflict):
        ana.merge_entity(bertie, into=robert)
    ana.undo_merge(receipt.merge_id)
    assert [memory.id for memory in ana.entity(bertie).memories] == ["m2"]
    assert ana.entity(robert).merged == []
    with pytest.raises(trivet.NotFound):
        ana.undo_merge(receipt.merge_id)
    with pytest.raises(trivet.NotFound):
        ana.merge_entity(bertie, into=robert, namespace="ben")


def test_what_a_speaker_said_is_forgotten(ana: trivet.Client) -> None:
    ana.add([{"id": "m1", "text": "I moved.", "speaker": "Ines"}, {"id": "m2", "text": "Ines likes tea."}])
    receipt = ana.forget(speaker="Ines", dry_run=True)
    assert (receipt.deleted, receipt.mentioned_by) == (["m1"], ["m2"])
    assert ana.forget(speaker="Ines") == receipt
    assert [memory.id for memory in ana.get_all()] == ["m2"]
    with pytest.raises(trivet.InvalidInput, match="either"):
        ana.forget()


def test_many_memories_are_changed_at_once(ana: trivet.Client) -> None:
    ana.add([{"id": "m1", "text": "I moved.", "speaker": "Ines"}, {"id": "m2", "text": "Ines likes tea."}])
    assert ana.update_all({"tags": ["x"]}, speaker=["Ines"]).updated == 1
    assert ana.update_all({"tags": ["x"]}, ids=["m1", "m2"]) == UpdateReceipt(matched=2, updated=1)
    with pytest.raises(trivet.InvalidInput, match="not text") as raised:
        ana.update_all({"tags": ["y"]}, ids="m1")  # a string is not taken as a list of letters, which might be ids
    assert raised.value.loc == ("ids",)
    assert [memory.tags for memory in ana.get_all()] == [["x"], ["x"]]


def test_the_history_of_a_memory(ana: trivet.Client) -> None:
    ana.add([{"id": "old/one", "text": "The kettle is copper."}, {"id": "new", "text": "The kettle is steel."}])
    assert [memory.id for memory in ana.history("new")] == ["new"]
    ana.update("new", supersedes="old/one")
    assert [memory.id for memory in ana.history("old/one")] == ["old/one", "new"]
    with pytest.raises(trivet.NotFound, match="'gone'"):
        ana.history("gone")


def test_an_export_comes_line_by_line(ana: trivet.Client) -> None:
    """Whatever other line separators it contains."""
    texts = [f"note {number}\u2028\x85 of {'many ' * 500}" for number in range(40)]
    ana.add(texts)
    header, *lines = map(msgspec.json.decode, ana.export())
    assert header["memories"] == 40
    assert [line["text"] for line in lines] == texts
    with pytest.raises(trivet.NotFound, match="'nobody'"):
        next(ana.export(namespace="nobody"))


def test_feedback_on_a_search(ana: trivet.Client) -> None:
    ana.add({"id": "m1", "text": "The kettle is copper."})
    answer = ana.search("kettle")
    shown = [result.id for result in answer.results]
    receipt = ana.feedback(query="kettle", shown=shown, relevant=["m1"])
    assert receipt.id


def test_what_is_wrong_is_said_in_the_words_of_the_server(ana: trivet.Client) -> None:
    with pytest.raises(trivet.NotFound, match="'ana'"):
        ana.search("anything")
    with pytest.raises(trivet.InvalidInput, match="there is no such field") as raised:
        ana.search("anything", top=3)  # type: ignore[call-arg]
    assert raised.value.loc == ("top",)
    results = ana.add([{"id": "good", "text": "x"}, {"id": "bad", "text": ""}])
    assert [result.status for result in results] == ["created", "rejected"]
    with pytest.raises(trivet.InvalidInput):
        ana.add({"text": ""})


def test_another_path_than_the_servers_is_no_empty_namespace(url: str) -> None:
    with (
        trivet.Client(f"{url}/v1", namespace="ana") as lost,
        pytest.raises(trivet.ServerError, match=f"at {url}/v1/v1"),
    ):
        lost.search("anything")


def test_a_key_is_asked_for(database_url: str) -> None:
    with on_a_port(settings_for(database_url, api_key="correct-key")) as url:
        with trivet.Client(url, "correct-key", "ana") as client:
            assert client.add("x")[0].status == "created"
        with trivet.Client(url, "another-key", "ana") as client, pytest.raises(trivet.Unauthorized):
            client.add("x")
        with trivet.Client(url, namespace="ana") as client, pytest.raises(trivet.Unauthorized, match="`api_key=`"):
            client.add("x")


def test_the_asynchronous_client_does_the_same(url: str) -> None:
    async def use() -> list[str]:
        async with trivet.AsyncClient(url, namespace="ana") as client:
            await client.add(["The kettle is copper.", "Slugs ate the lettuce."])
            found, _ = await asyncio.gather(client.search("kettle"), client.context("kettle", max_tokens=100))
            assert "kettle" in found.results[0].text
            return sorted([memory.text async for memory in client.get_all()])

    assert asyncio.run(use()) == ["Slugs ate the lettuce.", "The kettle is copper."]


async def test_an_error_within_the_block_leaves_it_as_it_was_raised(database_url: str) -> None:
    with pytest.raises(KeyError, match="mine"), trivet.open(database_url=database_url):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        async with trivet.aopen(database_url=database_url):
            raise KeyError("mine")


def test_documents_are_added_read_listed_and_deleted(ana: trivet.Client, tmp_path: Path) -> None:
    """Of a text, and of a file, which replaces itself."""
    file = tmp_path / "kettles.md"
    file.write_text("# Kettles\n\nThe copper one whistles.\n", encoding="utf-8")
    first = ana.add_document(path=file, tags=["kitchen"])
    file.write_text("# Kettles\n\nThe steel one is silent.\n", encoding="utf-8")
    assert (first.status, first.chunks) == ("created", 1)
    assert ana.add_document(path=str(file)).status == "updated"
    assert ana.add_document("Slugs ate the lettuce.", id="a/b", title="Garden").document_id == "a/b"
    document = ana.get_document(first.document_id)
    assert (document.title, document.text) == ("Kettles", "# Kettles\n\nThe steel one is silent.\n")
    assert document.metadata == {"file": "kettles.md"}
    assert {each.id: each.title for each in ana.documents()} == {"a/b": "Garden", first.document_id: "Kettles"}
    assert ana.search("Which kettle is silent?").results[0].document_id == first.document_id
    ana.delete_document("a/b")
    with pytest.raises(trivet.NotFound):
        ana.get_document("a/b")


def test_a_document_that_cannot_be_read_says_why(ana: trivet.Client, tmp_path: Path) -> None:
    empty, archive = tmp_path / "empty.txt", tmp_path / "report.docx"
    empty.touch()
    archive.write_bytes(b"PK\x03\x04word")
    for file, reason in ((empty, "0 bytes"), (archive, "zip archive")):
        with pytest.raises(trivet.InvalidInput, match=reason):
            ana.add_document(path=file)
    for given in ({}, {"text": "a", "path": empty}):
        with pytest.raises(trivet.InvalidInput, match="a text or a path"):
            ana.add_document(**given)  # type: ignore[arg-type]
    note = tmp_path / "note.txt"
    note.write_text("Slugs ate the lettuce.")
    with pytest.raises(trivet.InvalidInput, match="metadata: must be a JSON object, not null"):
        ana.add_document(path=note, metadata=None)


def test_more_than_one_batch_may_supersede(ana: trivet.Client) -> None:
    """They are sent in batches as large as the server compares, and results only have it if requested."""
    notes = [{"text": f"note {number}", "created_at": MAY} for number in range(101)]
    old = {"id": "old", "text": "The bagpipe rehearsal is at the Ravenscourt hall on Tuesdays.", "created_at": MAY}
    results = ana.add([*notes, old], may_supersede=True)
    assert [result.may_supersede for result in results] == [[]] * 102
    new = {"id": "new", "text": "The bagpipe rehearsal left the Ravenscourt hall for the barn."}
    assert ana.add(new, may_supersede=True)[0].may_supersede == ["old"]
    assert ana.add({"text": "Slugs ate the lettuce."})[0].may_supersede is msgspec.UNSET


def test_each_memory_of_a_bad_batch_has_its_own_reason(ana: trivet.Client) -> None:
    """As in a batch of which some memories are stored."""
    bad: list[dict[str, object]] = [
        {"text": ""},
        {"text": "a", "color": "red"},
        {"text": "b", "metadata": {"n": 2**70}},
    ]
    mixed = ana.add([*bad, "good"])
    batch = [*bad * 67][:200]
    results = ana.add([*batch, "good"])
    assert [result.error for result in results[:200]] == [*[result.error for result in mixed[:3]] * 67][:200]
    with pytest.raises(trivet.InvalidInput) as raised:
        ana.add([*batch, {"text": 5}])
    assert raised.value.loc == ("memories", 0, "text")  # the first memory of all
    assert [loc for loc, _ in raised.value.errors][197:] == [
        ("memories", 197, "metadata", "n"),
        ("memories", 198, "text"),
        ("memories", 199, "color"),
    ]


def test_what_json_cannot_hold_is_refused_and_takes_nothing_along(ana: trivet.Client) -> None:
    good, bad = ana.add(["good", "a\udcffb"])
    assert (good.status, bad.status) == ("created", "rejected")
    assert "half a surrogate pair" in str(bad.error)
    with pytest.raises(trivet.InvalidInput, match="half a surrogate pair"):
        ana.add("a\udcffb")
    good, bad = ana.add([{"text": 'not "NaN"', "title": None}, {"text": "a", "metadata": {"n": [1, float("nan")]}}])
    assert (good.status, bad.status) == ("created", "rejected")
    assert "must be a finite number" in str(bad.error)
    assert ana.get(str(good.id)).text == 'not "NaN"'
    calls: dict[str, Callable[[], object]] = {
        "min_relevance": lambda: ana.search("a", min_relevance=-float("inf")),
        "query": lambda: ana.search("\ud800"),
        "id": lambda: ana.get("\ud800"),
        "namespace": lambda: next(ana.export(namespace="\ud800")),
        "filters": lambda: next(ana.get_all(session_id=["\ud800"])),
        "query_string": lambda: next(ana.entities(q="\ud800")),
    }
    for field, call in calls.items():
        with pytest.raises(trivet.InvalidInput) as raised:
            call()
        assert raised.value.loc[0] == field
