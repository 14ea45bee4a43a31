"""`trivet list`, `get`, `delete` and `namespaces`."""

from __future__ import annotations

import json
import re

import pytest

from tests.command import Cli


@pytest.fixture
def cli(cli: Cli) -> Cli:
    """The command line on a database with five memories in the namespace `ana`."""
    lines = [
        {
            "id": f"m{number}",
            "text": f"note {number}\n\x1b[2J\u202e\u2066",
            "speaker": ("Ana", "Ben")[number % 2],
            "session_id": "s",
        }
        for number in range(5)
    ]
    cli("import", "-n", "ana", "-", stdin="\n".join(map(json.dumps, lines)))
    return cli


def _ids(cli: Cli, *arguments: str) -> list[str]:
    return [each["id"] for each in json.loads(cli("list", "-n", "ana", "--json", *arguments).output)["memories"]]


def test_memories_are_listed_by_filters_and_pages(cli: Cli) -> None:
    assert _ids(cli) == ["m0", "m1", "m2", "m3", "m4"]
    assert _ids(cli, "--speaker", "Ben") == ["m1", "m3"]
    page = cli("list", "-n", "ana", "--limit", "3").output
    assert "m2" in page
    assert "m3" not in page
    assert "\x1b[2J" not in page
    cursor = page.split("--cursor ")[1].split()[0]
    assert _ids(cli, "--cursor", cursor) == ["m3", "m4"]
    assert "there are more" not in cli("list", "-n", "ana", "--cursor", cursor).output
    assert cli("list", status=1).output == "Error: there is no namespace 'default'; choose one by -n: ana\n"


def test_one_memory_is_shown_with_what_it_has(cli: Cli) -> None:
    shown = cli("get", "-n", "ana", "m1").output
    assert "note 1" in shown
    assert "speaker: Ben" in shown
    assert "title" not in shown
    assert not re.search("[\x1b\u202e\u2066]", shown + cli("search", "note", "-n", "ana").output)  # or it is reordered
    assert json.loads(cli("get", "-n", "ana", "m1", "--json").output)["speaker"] == "Ben"
    assert "no memory 'm9'" in cli("get", "-n", "ana", "m9", status=1).output


def test_what_is_stored_begins_no_line_of_its_own(cli: Cli) -> None:
    """It could imitate other memories."""
    names = "Ana\n2. m9  2024-01-01"
    memory = {"id": f"1 {names}", "text": "A boat.", "speaker": names, "title": names, "session_id": names}
    cli("import", "-n", "boats", "-", stdin=json.dumps(memory))
    for command in (["list"], ["search", "boat"], ["get", memory["id"]], ["history", memory["id"]]):
        shown = cli(*command, "-n", "boats").stdout
        assert [line for line in shown.splitlines() if line.startswith("2.")] == []


def test_memories_are_deleted_by_ids_or_filters(cli: Cli) -> None:
    assert cli("delete", "-n", "ana", "m0", "m1").output == "2 deleted\n"
    assert "no memory 'm0'" in cli("delete", "-n", "ana", "m0", status=1).output
    cli("delete", "-n", "ana", "--speaker", "Ben", stdin="n\n", status=1)
    assert "--yes goes on without" in cli("delete", "-n", "ana", "--all", stdin="", status=2).stderr
    assert _ids(cli) == ["m2", "m3", "m4"]
    cli("delete", "-n", "ana", "--speaker", "Ben", stdin="y\n")
    assert _ids(cli) == ["m2", "m4"]
    done = cli("delete", "-n", "ana", "--session", "s", "--yes", "--json")
    assert json.loads(done.output) == {"deleted": 2}
    done = cli("delete", "-n", "nobody", "m1", "m2", status=1)
    assert done.output == "0 deleted\nError: there is no namespace 'nobody'\n"
    for arguments in ((), ("m1", "--speaker", "Ben"), ("m1", "--all")):
        assert "Give ids, or filters" in cli("delete", "-n", "ana", *arguments, status=2).output


def test_ids_that_there_are_not_keep_no_other_memory(cli: Cli) -> None:
    """All of them are reported, and the deleted ones counted."""
    done = cli("delete", "-n", "ana", "m0", "nope", "m1", "gone", status=1)
    assert done.stdout == "2 deleted\n"
    assert "'nope'" in done.stderr
    assert "'gone'" in done.stderr
    assert _ids(cli) == ["m2", "m3", "m4"]


def test_what_superseded_a_memory_is_shown(cli: Cli) -> None:
    cli("add", "-n", "ana", "The boat is blue.", "--id", "m9", "--supersedes", "m0", "--supersedes", "m1")
    shown = cli("history", "-n", "ana", "m0").output
    assert "supersedes m0, m1" in shown
    history = json.loads(cli("history", "-n", "ana", "m9", "--json").output)
    assert {memory["id"] for memory in history["memories"]} == {"m0", "m1", "m9"}
    assert "no memory 'm7'" in cli("history", "-n", "ana", "m7", status=1).output


def test_a_speaker_is_forgotten_after_a_question(cli: Cli) -> None:
    cli("forget", "-n", "ana", status=2)
    assert "would be deleted" in cli("forget", "-n", "ana", "--speaker", "Ben", "--dry-run").output
    cli("forget", "-n", "ana", "--speaker", "Ben", stdin="n\n", status=1)
    assert "--yes goes on without" in cli("forget", "-n", "ana", "--speaker", "Ben", stdin="", status=2).stderr
    before = _ids(cli)
    receipt = json.loads(cli("forget", "-n", "ana", "--speaker", "Ben", "--yes", "--json").output)
    assert receipt["deleted"]
    assert sorted([*_ids(cli), *receipt["deleted"]]) == sorted(before)


def test_namespaces_are_listed_and_deleted(cli: Cli) -> None:
    cli("add", "-n", "ben", "The kettle is copper.")
    assert [each["name"] for each in json.loads(cli("namespaces", "--json").output)["namespaces"]] == ["ana", "ben"]
    table = cli("namespaces").output.splitlines()
    assert [row.split()[:2] for row in table[1:]] == [["ana", "5"], ["ben", "1"]]
    cli("delete", "-n", "ana", "--all", "--yes")
    longest = "n" * 128  # is not cut without a terminal
    cli("add", "-n", longest, "The kettle is copper.")
    assert [row.split()[0] for row in cli("namespaces").output.splitlines()[1:]] == ["ben", longest]
