"""Commands against a real database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from retrieval.cli.group import COMMANDS
from retrieval.index import registry, small_namespaces
from retrieval.installation import installed_version
from retrieval.types.search import ContextRequest, SearchRequest
from tests.command import NOWHERE, Cli
from tests.command import trivet as run
from tests.processes import ROOT, ended, environment, python, until


def test_the_list_of_commands_imports_none_of_them() -> None:
    """`trivet --help` stays quick: no numpy, rich, database driver or web framework."""
    code = (
        "import sys; from retrieval.cli import main; main(['--help'], standalone_mode=False); "
        "print(sorted({'numpy', 'rich', 'psycopg', 'litestar', 'onnxruntime', 'msgspec'} & set(sys.modules)))"
    )
    done = python("-c", code)
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)
    assert done.stdout.rstrip().endswith("[]")


def test_version_is_the_installed_one() -> None:
    assert python("-m", "retrieval.cli", "--version").stdout == f"trivet {installed_version()}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    """And the example calls the command by its name."""
    assert f"Example:\n    trivet {name} " in run(NOWHERE, name, "--help").output


def test_help_tells_the_default_number_of_results() -> None:
    told = f"default: {SearchRequest(query='a').top_k}, in `trivet context` {ContextRequest(query='a').top_k}"
    for name in ("search", "context"):
        assert told in " ".join(run(NOWHERE, name, "--help").output.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "No such command 'frobnicate'.\n"),
        (["serch"], "No such command 'serch'. Did you mean 'search'?"),
        (["search"], "Missing argument"),
        (["search", "x", "--top-k", "0"], "--top-k"),
        (["search", "x", "--mode", "keyword"], "--mode"),
        (["search", "x", "--weights", "1,2"], "VECTOR,BM25,GRAPH"),
        (["search", "x", "--weights", "-1,0,0"], "weights.vector"),
        (["search", "x", "--weights", "0,0,0"], "at least one weight must be above 0"),
        (["search", "x", "--as-of", "2024-01-01T00:00:00"], "as_of"),
        (["search", ""], "query"),
        (["list", "--after", "yesterday"], "created_after"),
        (["delete", "--metadata", "[1]"], "metadata"),
        (["add", "x", "--created-at", "2024-01-01T00:00:00"], "created_at"),
        (["add", "x", "--metadata", "[1]"], "metadata"),
        (["add", "x", "--metadata", "[1]"], "metadata: expected a JSON object, not a list"),
        (["add", "x", "--metadata", '{"a": [1e999]}'], "metadata.a.0: must be a finite number"),
        (["add", "x", "--metadata", os.fsdecode(b'{"a": "\xff"}')], "metadata: not UTF-8"),
        (["add", ""], "text"),
        (["add", os.fsdecode(b"\xff")], "text"),
        (["context", "x", "--max-tokens", "0"], "--max-tokens"),
        (["import", "/nowhere.jsonl"], "/nowhere.jsonl"),
        (["eval", "/nowhere"], "/nowhere"),
        (["eval", "/tmp", "--modes", "keyword"], "'keyword' is no mode"),
        (["serve", "--port", "70000"], "--port"),
    ],
)
def test_bad_usage_is_status_two(arguments: list[str], message: str) -> None:
    """With the option or argument named."""
    assert message in run(NOWHERE, *arguments, status=2).output


@pytest.mark.parametrize(
    ("call", "status", "message"),
    [
        ("import - <&-", 2, "standard input is closed"),
        ("profile put p - <&-", 2, "standard input is closed"),
        ("add - <&-", 2, "Give TEXT, or pipe it in."),
        ("delete --all <&-", 2, "Standard input cannot be asked for confirmation: --yes goes on without."),
        ("--help >/dev/full", 1, "No space left on device"),
        ("--version >/dev/full", 1, "No space left on device"),
    ],
)
def test_streams_that_cannot_be_used_are_told_in_a_line(call: str, status: int, message: str) -> None:
    command = f"{sys.executable} -m retrieval.cli {call}"
    done = ended("bash", "-c", command, status=status, TRIVET_DATABASE_URL=NOWHERE, PYTHONUNBUFFERED="")
    assert done.stderr.splitlines()[-1].endswith(message)
    assert "Traceback" not in done.stderr


def test_an_interrupt_of_a_question_is_no_end_of_its_input() -> None:
    asking = subprocess.Popen(
        (sys.executable, "-m", "retrieval.cli", "delete", "--all"),
        env=environment(TRIVET_DATABASE_URL=NOWHERE),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert asking.stderr is not None
    assert asking.stderr.read(len(question := b"Delete namespace 'default'? [y/N]: ")) == question
    until(lambda: psutil.Process(asking.pid).status() == psutil.STATUS_SLEEPING)  # it waits for the answer
    asking.send_signal(signal.SIGINT)
    assert asking.communicate()[1].strip() == b"Aborted!"
    assert asking.returncode == 1


def test_characters_that_the_terminal_lacks_are_shown_by_their_numbers(cli: Cli, database_url: str) -> None:
    cli("add", "Zoë lives in 東京.")
    settings = environment(TRIVET_DATABASE_URL=database_url, PYTHONIOENCODING="latin-1")
    command = (sys.executable, "-m", "retrieval.cli", "list")
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, check=True)
    assert "Zoë lives in \\u6771\\u4eac." in done.stdout.decode("latin-1")


def test_a_data_folder_beside_a_database_url_is_refused(cli: Cli) -> None:
    """One of the two would silently be ignored."""
    assert "--data-dir" in cli("classify", "x", "--data-dir", "/tmp/x", status=2).stderr


def test_add_then_search(cli: Cli) -> None:
    """An added memory is found with its fields; adding it again changes nothing."""
    fields = ["--id", "m1", "--kind", "message", "--speaker", "Caroline", "--session", "s1", "--position", "3"]
    more = ["--created-at", "2023-05-08T13:56:00Z", "--tag", "chat", "--metadata", '{"channel": "web"}']
    text = "I went to the support group yesterday."
    assert cli("add", text, *fields, *more, "--entity", "Caroline:person").stdout == "m1 created\n"
    for piped in (f"{text}\n", f"\ufeff{text}\r\n"):
        done = cli("add", "-", *fields, *more, "--entity", "Caroline:person", stdin=piped)
        assert done.stdout == "m1 unchanged\n"
    found = json.loads(cli("search", "support group", "--tag", "chat", "--explain", "--json").stdout)
    (result,) = found["results"]
    assert (result["id"], result["text"], result["speaker"]) == ("m1", text, "Caroline")
    assert (result["session_id"], result["metadata"], result["tags"]) == ("s1", {"channel": "web"}, ["chat"])
    assert result["legs"]["bm25"]["rank"] == 1
    shown = cli("search", "support group", "-k", "3").stdout
    assert "m1" in shown
    assert "bm25 #1" in shown
    assert json.loads(cli("search", "support group", "--tag", "none", "--json").stdout)["results"] == []
    timed = json.loads(cli("search", "support group in May 2023", "--explain", "--json").stdout)["explanation"]
    explained = " ".join(cli("search", "support group in May 2023", "--explain").stdout.split())
    assert timed["time"] in explained
    assert "searched for" not in explained
    assert "searched for: the support group" in cli("search", "the suppport group", "--explain").stdout
    cli("profile", "put", "plain", "-", stdin='{"models": {"rescorer": null}}')
    for command, stream in (("search", "stdout"), ("context", "stderr")):
        told = getattr(cli(command, "support group", "--profile", "plain@1", "--rescore"), stream)
        assert told.endswith("the rescorer did not answer: the profile has none\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "x", "-n", "nobody"], "nobody"),
        (["search", "x", "-n", "a/b"], "namespace"),
        (["add", "x", "--id", "a", "--supersedes", "a"], "supersedes"),
    ],
)
def test_what_cannot_be_done_is_status_one(cli: Cli, arguments: list[str], message: str) -> None:
    """A message on standard error that names the field, nothing on standard output."""
    done = cli(*arguments, status=1)
    assert done.stderr.startswith("Error: ")
    assert message in done.stderr
    assert done.stdout == ""


def test_an_unreachable_database_is_status_one() -> None:
    """And never replaced by the embedded one."""
    assert "Error: " in run(NOWHERE, "search", "x", status=1).stderr


def test_import_names_bad_lines_and_takes_up_where_it_was(cli: Cli, tmp_path: Path) -> None:
    """Valid lines are stored whatever the others contain; a second run finds them unchanged."""
    file = tmp_path / "memories.jsonl"
    lines = ['{"id": "a", "text": "one"}', "", '{"id": "b"}', "{", '{"id": "c", "text": "two", "colour": 1}']
    file.write_text("\n".join([*lines, '{"id": "d", "text": "three"}']))
    done = cli("import", str(file), "-n", "mine", status=1)
    assert "5 lines: 2 created, 3 rejected" in done.stdout
    assert [line.split(":")[0] for line in done.stderr.splitlines()[:3]] == ["line 3", "line 4", "line 5"]
    assert "colour" in done.stderr
    assert "3 of 5 lines rejected" in done.stderr
    again = json.loads(cli("import", str(file), "-n", "mine", "--json", status=1).stdout)
    assert again["counts"] == {"unchanged": 2, "rejected": 3}
    assert [rejected["line"] for rejected in again["rejected"]] == [3, 4, 5]


def test_import_tells_what_supersedes_nothing(cli: Cli, tmp_path: Path) -> None:
    """Neither memories later in the file, however far, nor stored ones."""
    first = {"id": "first", "text": "tea", "supersedes": "last"}
    lost = {"id": "lost", "text": "coffee", "supersedes": "nobody"}
    between = [{"id": f"m{number}", "text": "water"} for number in range(260)]
    lines = [first, lost, *between, {"id": "last", "text": "milk"}]
    file = tmp_path / "backwards.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    done = cli("import", str(file))
    assert "263 created" in done.stdout
    told = [line for line in done.stderr.splitlines() if "supersedes" in line]
    assert told == ["line 2: supersedes: there is no memory 'nobody' so far"]
    assert "'nobody'" in cli("add", "espresso", "--id", "lost", "--supersedes", "nobody").stderr


def test_import_of_an_evaluation_corpus_keeps_its_namespaces(cli: Cli) -> None:
    """Rows state their namespace, unless the caller does."""
    rows = [
        {"id": str(n), "namespace": f"ns{n % 2}", "text": f"text {n}", "metadata": {"session": 1}} for n in range(6)
    ]
    text = "\n".join(json.dumps(row) for row in rows)
    assert "6 created" in cli("import", "-", stdin=text).stdout
    found = json.loads(cli("search", "text", "-n", "ns1", "--json").stdout)["results"]
    assert {result["id"] for result in found} == {"1", "3", "5"}
    assert {result["kind"] for result in found} == {"message"}
    assert "6 created" in cli("import", "-", "-n", "all", stdin=text).stdout


def test_context_prints_the_pack_alone(cli: Cli) -> None:
    """The pack can be piped; messages about it go to standard error."""
    cli("add", "Caroline went to the support group.", "--id", "m1")
    done = cli("context", "Where did Caroline go?", "--max-tokens", "200")
    pack = json.loads(cli("context", "Where did Caroline go?", "--max-tokens", "200", "--json").stdout)
    assert done.stdout == pack["context"] + "\n"
    assert "Caroline went to the support group." in done.stdout
    assert f"{pack['tokens_used']} of 200 tokens, 1 memory" in done.stderr


def test_context_says_why_a_pack_is_empty(cli: Cli) -> None:
    """A missing namespace has no weights to show; without relevant results, the search's weights are shown."""
    absent = cli("context", "Where did Caroline go?", "-n", "absent")
    assert (absent.stdout, absent.stderr) == ("\n", "an empty pack: there is no namespace 'absent'\n")
    cli("add", "Caroline went to the support group.")
    figures, reason = cli("context", "the price of copper", "--min-relevance", "0.99").stderr.splitlines()
    assert "0 memories, fact_lookup, weights vector" in figures
    assert reason == "an empty pack: nothing that was found is relevant"


@pytest.mark.parametrize("command", ["search", "context"])
def test_a_large_namespace_is_loaded_before_a_command_asks_it(
    cli: Cli, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server answers partially meanwhile, without the graph leg; a command has no later query."""
    cli("add", "Caroline went to the support group.")
    for owner, limit in ((small_namespaces, "MOST_ORDINALS"), (registry, "LARGE_FROM"), (registry, "PATIENCE_S")):
        monkeypatch.setattr(owner, limit, 0)
    assert json.loads(cli(command, "Where did Caroline go?", "--json").stdout)["degraded"] == []


def test_classify_shows_intent_and_weights(cli: Cli) -> None:
    """Four probabilities that sum to 1, and the weights that follow."""
    found = json.loads(cli("classify", "When was the meeting?", "--json").stdout)
    assert sum(found["intent"]["probabilities"].values()) == pytest.approx(1, abs=0.01)
    assert set(found["weights"]) == {"vector", "bm25", "graph"}
    assert cli("classify", "When was the meeting?").stdout.splitlines()[0] == found["intent"]["label"]
    assert "there is no namespace 'nobody'" in cli("classify", "When was the meeting?", "-n", "nobody", status=1).stderr


def test_migrate_brings_an_empty_database_up_to_date(empty_database_url: str) -> None:
    """`--check` says so before and after, and changes nothing."""
    assert "0001" in run(empty_database_url, "migrate", "--check", status=1).stdout
    assert json.loads(run(empty_database_url, "migrate", "--json").stdout)["applied"][0] == 1
    assert run(empty_database_url, "migrate", "--check").stdout == "the schema is up to date\n"


def test_checking_makes_no_database(tmp_path: Path) -> None:
    done = run("embedded", "migrate", "--check", "--data-dir", tmp_path / "data", status=1)
    assert done.stdout.startswith("outstanding: 0001, ")
    assert list(tmp_path.iterdir()) == []


def test_doctor_finds_a_healthy_database(cli: Cli) -> None:
    """Every finding is fine, in both forms."""
    findings = json.loads(cli("doctor", "--json").stdout)
    assert findings
    assert all(finding["ok"] for finding in findings)
    assert all(line.startswith("ok ") for line in cli("doctor").stdout.splitlines() if line[:1].strip())


def test_doctor_compares_indexes_if_asked(cli: Cli) -> None:
    """If none are kept in files, it says so."""
    findings = json.loads(cli("doctor", "--indexes", "--json").stdout)
    assert findings[-1] == {"name": "indexes", "ok": True, "detail": "not kept in files"}


def test_doctor_reports_what_is_wrong() -> None:
    """Status 1, and what it is."""
    assert "FAIL" in run(NOWHERE, "doctor", status=1).stdout


def test_serve_refuses_a_public_address_without_a_key(cli: Cli) -> None:
    """Status 1 and what to do."""
    assert "TRIVET_API_KEY" in cli("serve", "--host", "0.0.0.0", status=1).stderr
