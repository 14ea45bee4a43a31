"""Facts of mem0, Zep and Hindsight in all their containers."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests import exports
from tests.exports import as_json
from tests.importing import Imported


def lines(rows: list[Any]) -> bytes:
    """An object per line."""
    return "\n".join(map(json.dumps, rows)).encode()


def under(name: str) -> Callable[[list[Any]], bytes]:
    """A document with the list under a name."""
    return lambda rows: as_json({"count": len(rows), name: rows})


@pytest.mark.parametrize(
    ("name", "key", "containers"),
    [
        ("mem0", "results", [as_json, lines, under("memories"), under("results")]),
        ("zep", "edges", [as_json, lines, under("edges"), under("facts")]),
        ("hindsight", "items", [as_json, lines, under("results"), under("memories"), under("facts")]),
    ],
)
def test_facts_are_found_in_documents_lists_and_lines(
    name: str, key: str, containers: list[Callable[[list[Any]], bytes]]
) -> None:
    rows = json.loads(exports.EXPORTS[name]())[key]
    for contain in containers:
        read = Imported(contain(rows))
        assert read.format == name
        assert len(read.memories) == 220
        assert read.errors == {}


def test_the_ends_of_a_fact_are_named_wherever_the_nodes_stand() -> None:
    graph = json.loads(exports.zep())
    before = Imported(as_json({"nodes": graph["nodes"], "edges": graph["edges"]}))
    after = Imported(as_json({"edges": graph["edges"], "nodes": graph["nodes"]}))
    assert {memory.id: memory for memory in before.memories} == {memory.id: memory for memory in after.memories}
    alone = Imported(as_json(graph["edges"]))
    assert all(memory.relations == [] for memory in alone.memories)
    edge = graph["edges"][0] | {"source_node_name": "Nora", "target_node_name": "choir"}
    (named,) = Imported(as_json([edge])).memories
    assert [(relation.source, relation.type, relation.target) for relation in named.relations] == [
        ("Nora", "TALKED_OF", "choir")
    ]


def test_a_fact_that_was_superseded_without_a_date_ends_when_that_was_found() -> None:
    edge = json.loads(exports.zep())["edges"][1] | {"invalid_at": None, "expired_at": "2024-06-01T00:00:00Z"}
    (memory,) = Imported(as_json([edge])).memories
    assert memory.expires_at is not None
    assert memory.expires_at.isoformat() == "2024-06-01T00:00:00+00:00"


def test_a_fact_that_was_over_when_it_was_told_is_kept() -> None:
    """Graphiti's "I left Acme in March", said in May, has no `valid_at`."""
    times = {"valid_at": None, "reference_time": "2024-05-02T00:00:00Z", "invalid_at": "2024-03-01T00:00:00Z"}
    (memory,) = Imported(as_json([json.loads(exports.zep())["edges"][1] | times])).memories
    assert memory.created_at == memory.expires_at == datetime(2024, 3, 1, tzinfo=UTC)


def test_episodes_are_ordered_by_their_times_not_by_the_file() -> None:
    """Zep lists the latest first."""
    episodes = Imported(as_json({"episodes": json.loads(exports.zep())["episodes"]})).memories
    for session in ("zep:thread-0", "zep:thread-1"):
        turns = sorted((m for m in episodes if m.session_id == session), key=lambda memory: memory.position or 0)
        times = [turn.created_at for turn in turns if turn.created_at is not None]
        assert len(times) == 110
        assert times == sorted(times)


def test_episodes_of_other_zones_and_precisions_are_in_order() -> None:
    times = ["2024-01-30T10:00:00.123Z", "2024-01-30T10:00:00.12Z", "2024-01-30T11:30:00+02:00", None]
    rows = [{"uuid": f"{n}", "content": f"{n}", "source_description": "", "valid_at": at} for n, at in enumerate(times)]
    episodes = Imported(as_json({"episodes": rows})).memories
    assert [memory.text for memory in sorted(episodes, key=lambda each: each.position or 0)] == ["3", "2", "1", "0"]


def test_an_episode_of_several_turns_is_divided_at_its_speakers() -> None:
    """Names that begin an episode or lines in several, or are roles; other lines continue a turn."""
    said = [
        "Ana: I bought:\nEggs: twelve\nMilk: two\nBen: Eggs? What for?\nAna: A cake.",
        "Ana: It rained.\nand rained\nBen: See https://rain.pt: today.",
        "user: Hello.\nassistant: Hello! Who is it?",
    ]
    rows = [
        {
            "uuid": f"e{n}",
            "content": text,
            "source": "message",
            "source_description": "chat",
            "valid_at": f"2024-01-0{n + 1}",
        }
        for n, text in enumerate(said)
    ]
    turns = Imported(as_json({"episodes": rows[::-1]})).memories
    assert [(each.id, each.speaker, each.text) for each in sorted(turns, key=lambda turn: turn.position or 0)] == [
        ("e0", "Ana", "I bought:\nEggs: twelve\nMilk: two"),
        ("e0#1", "Ben", "Eggs? What for?"),
        ("e0#2", "Ana", "A cake."),
        ("e1", "Ana", "It rained.\nand rained"),
        ("e1#1", "Ben", "See https://rain.pt: today."),
        ("e2", "user", "Hello."),
        ("e2#1", "assistant", "Hello! Who is it?"),
    ]


def episode(uuid: str | None, content: str) -> dict[str, str | None]:
    return {
        "uuid": uuid,
        "content": content,
        "source": "message",
        "source_description": "chat",
        "valid_at": "2024-01-01",
    }


def test_who_takes_turns_in_an_only_episode_is_a_speaker() -> None:
    said = "Ana: Why?\nPros: cheap\nCons: far\nBen: True.\nCy: No.\nAna: So?\nBen: Go!\nPS: Now."
    turns = Imported(as_json({"episodes": [episode("e", said)]})).memories
    assert [(each.speaker, each.text) for each in turns] == [
        ("Ana", "Why?\nPros: cheap\nCons: far"),
        ("Ben", "True.\nCy: No."),
        ("Ana", "So?"),
        ("Ben", "Go!\nPS: Now."),
    ]


def test_turns_that_say_the_same_are_all_kept_without_an_id_of_their_episode() -> None:
    turns = Imported(
        as_json({"episodes": [episode("e", "user: Hm."), episode(None, "user: Hello.\nai: Hello.")]})
    ).memories
    assert [(each.speaker, each.text) for each in turns] == [("user", "Hm."), ("user", "Hello."), ("ai", "Hello.")]


def test_messages_of_zeps_threads_have_their_speakers() -> None:
    message = {
        "uuid": "m",
        "role": "user",
        "name": "Nora",
        "content": "Note: tea",
        "created_at": "2024-01-30T00:00:00Z",
    }
    (memory,) = Imported(as_json({"episodes": [message | {"thread_id": "t", "source": "message"}]}), "zep").memories
    assert (memory.speaker, memory.text, memory.session_id) == ("Nora", "Note: tea", "zep:t")


def test_zeps_api_of_version_4_is_read_page_by_page() -> None:
    """Its pages have `items`; the time of an episode is its `reference_time`, the speaker its `role_name`."""
    times = {"created_at": "2026-10-20T10:00:00Z", "reference_time": "2024-01-01T09:00:00Z"}
    sent = {"uuid": "e", "role": "user", "role_name": "Nora", "thread_uuid": "t", "graph_uuid": "g", **times}
    (turn,) = Imported(as_json({"items": [sent | {"content": "Note: tea", "metadata": {"channel": "web"}}]})).memories
    assert (turn.id, turn.text, turn.speaker, turn.session_id) == ("e", "Note: tea", "Nora", "zep:t")
    assert str(turn.created_at) == "2024-01-01 09:00:00+00:00"
    assert turn.metadata == {"channel": "web", "graph_uuid": "g"}
    ends = {
        "source_node_uuid": "n1",
        "source_node_name": "Nora",
        "source_node_labels": ["Entity", "Person"],
        "target_node_uuid": "n2",
        "target_node_name": "choir",
    }
    edge = {"uuid": "f", "name": "SINGS_IN", "fact": "Nora sings in the choir.", "episode_uuids": ["e"], **ends}
    (fact,) = Imported(as_json({"items": [edge], "next_cursor": "c"})).memories
    assert [(entity.name, entity.type) for entity in fact.entities] == [("Nora", "person"), ("choir", "thing")]
    assert fact.metadata == {"episode_uuids": ["e"]}


def test_a_memory_of_mem0_is_there_through_the_day_of_its_expiration() -> None:
    row = {"id": "m", "memory": "The trial ends.", "hash": "h", "user_id": "ana"}
    ends = ["2030-01-31", "9999-12-31", "2030-01-31T12:00:00Z", None]
    read = Imported(as_json([row | {"id": f"{n}", "expiration_date": end} for n, end in enumerate(ends)]))
    assert [memory.expires_at and memory.expires_at.isoformat() for memory in read.memories] == [
        "2030-01-31T23:59:59.999999+00:00",
        "9999-12-31T23:59:59.999999+00:00",
        "2030-01-31T12:00:00+00:00",
        None,
    ]


def test_a_graph_of_mcps_memory_server_is_read_as_its_file_and_as_its_tool_returns_it() -> None:
    ana = {"name": "Ana", "entityType": "Person", "observations": ["Lives in Porto", "Ana has a boat", "", 7]}
    relation = {"from": "Ana", "to": "Casa Verde", "relationType": "works_for"}
    empty = {"name": "Casa Verde", "entityType": "company", "observations": []}
    file = lines([{"type": "entity", **ana}, {"type": "entity", **empty}, {"type": "relation", **relation}])
    for data in (file, as_json({"entities": [ana, empty], "relations": [relation]})):
        read = Imported(data)
        assert (read.format, read.errors) == ("mcp", {})
        assert read.texts == ["Ana: Lives in Porto", "Ana has a boat", "Ana works for Casa Verde"]
        assert [[(entity.name, entity.type) for entity in memory.entities] for memory in read.memories[:2]] == [
            [("Ana", "person")],
            [("Ana", "person")],
        ]
        (stated,) = read.memories[2].relations
        assert (stated.source, stated.type, stated.target) == ("Ana", "works_for", "Casa Verde")
        assert [*read.skips.values()] == ["entity without observations"]


def test_hindsights_times_and_entities() -> None:
    (first, second, *_) = Imported(exports.hindsight()).memories
    assert [entity.name for entity in first.entities] == ["Nora", "choir"]
    assert [entity.name for entity in second.entities] == ["Ivo", "choir"]
    assert first.created_at == exports.talk()[0].time
    assert first.tags == ["allotment", "experience"]
