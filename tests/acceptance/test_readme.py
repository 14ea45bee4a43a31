"""The commands of README.md and docs/guide.md: imports, requests of a server, tools of an assistant."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
from pathlib import Path

import httpx
from mcp import Client, StdioServerParameters

from tests.processes import ROOT, ended, environment, serving

PAGES = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/guide.md"))
TRIVET = f'trivet() {{ {shlex.quote(sys.executable)} -m retrieval.cli "$@"; }}\nset -e\n'


def blocks(language: str, word: str) -> list[str]:
    """The blocks of a language in which a word occurs."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGES, re.MULTILINE | re.DOTALL)
    return [block for block in found if word in block]


def test_an_import_and_an_export(data_dir: Path, tmp_path: Path) -> None:
    [block] = blocks("sh", "trivet import")
    done = ended("bash", "-c", TRIVET + block, cwd=tmp_path, TRIVET_DATA_DIR=str(data_dir))
    assert done.stdout.count("1 created") == 2
    assert "[1] 20 May 2025, Ana: My sister Ines grows seeds." in done.stdout


def test_requests_of_a_server(data_dir: Path) -> None:
    """Of the demo's namespace too, which is empty here."""
    commands = [
        shlex.split(command) for block in blocks("sh", "curl") for command in re.split(r"^(?=curl)", block, flags=re.M)
    ]
    with serving(TRIVET_DATA_DIR=str(data_dir)) as server:
        answers = []
        for command in filter(None, commands):
            url = next(word for word in command if word.startswith("http")).replace("http://127.0.0.1:8321", server.url)
            body = command[command.index("-d") + 1]
            answers.append(httpx.post(url, content=body, headers={"content-type": "application/json"}, timeout=60))
    assert [answer.status_code for answer in answers] == [404, 201, 200]
    assert "Casa Verde" in answers[-1].json()["context"]


def test_the_tools_of_an_assistant(data_dir: Path) -> None:
    [block] = blocks("json", "mcpServers")
    entry = json.loads(block)["mcpServers"]["memory"]
    assert entry["command"] == "trivet"

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
