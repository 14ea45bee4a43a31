"""The tools of the Model Context Protocol, called by its own client."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from subprocess import PIPE
from typing import Any, Literal
from urllib.parse import quote

import httpx
import pytest
from mcp import Client, StdioServerParameters

import trivet
import trivet.mcp
from retrieval.errors import NO_SUCH_PATH
from tests.command import NOWHERE
from tests.command import trivet as run
from tests.processes import PATIENCE_S, ROOT, environment, new_data_dir, postgres_in, python, serving
from tests.serving import on_a_port, problem_of, served, settings_for

TOOLS = ["remember", "recall", "get_context", "forget", "search", "fetch"]
Era = Literal["auto", "legacy"]
eras = pytest.mark.parametrize("era", ["auto", "legacy"])


@asynccontextmanager
async def in_process(database_url: str, era: Era) -> AsyncIterator[Client]:
    async with (
        trivet.aopen(database_url=database_url) as client,
        Client(trivet.mcp.server(client, lambda _: "ana"), mode=era) as assistant,
    ):
        yield assistant


@asynccontextmanager
async def over_stdio(database_url: str, era: Era, *options: str) -> AsyncIterator[Client]:
    """A separate process: `trivet mcp`."""
    settings = environment(TRIVET_DATABASE_URL=database_url)
    command = ["-m", "trivet", "mcp", "-n", "ana", *options]
    async with Client(
        StdioServerParameters(command=sys.executable, args=command, env=settings, cwd=str(ROOT)), mode=era
    ) as assistant:
        yield assistant


@asynccontextmanager
async def over_http(database_url: str, era: Era) -> AsyncIterator[Client]:
    """A server, at the path of the namespace."""
    with on_a_port(settings_for(database_url)) as url:
        async with Client(f"{url}/mcp/ana", mode=era) as assistant:
            yield assistant


async def ask(assistant: Client, tool: str, **arguments: Any) -> str:
    answer = await assistant.call_tool(tool, arguments)
    text: str = answer.content[0].text  # type: ignore[union-attr]
    assert not answer.is_error, text
    return text


@eras
@pytest.mark.parametrize("connection", [in_process, over_stdio, over_http])
async def test_an_assistant_remembers_and_forgets(database_url: str, connection: Any, era: Era) -> None:
    async with connection(database_url, era) as assistant:
        assert [tool.name for tool in (await assistant.list_tools()).tools] == TOOLS
        assert json.loads(await ask(assistant, "recall", query="Where is Ines?")) == []
        assert await ask(assistant, "get_context", query="Where is Ines?") == ""
        memory_id = await ask(assistant, "remember", text="My sister Ines moved to Porto.", speaker="Ana")
        [recalled] = json.loads(await ask(assistant, "recall", query="Where is Ines?"))
        assert (recalled["id"], recalled["text"]) == (memory_id, "My sister Ines moved to Porto.")
        assert "Porto" in await ask(assistant, "get_context", query="Where is Ines?", max_tokens=100)
        [result] = json.loads(await ask(assistant, "search", query="Ines"))["results"]
        assert result.keys() == {"id", "title", "url"}
        fetched = json.loads(await ask(assistant, "fetch", id=result["id"]))
        assert fetched.keys() == {"id", "title", "text", "url", "metadata"}
        assert fetched["metadata"]["speaker"] == "Ana"
        await ask(assistant, "forget", id=memory_id)
        failed = await assistant.call_tool("fetch", {"id": memory_id})
        assert failed.is_error
        assert "there is no memory" in str(failed.content)


async def test_an_assistant_sees_no_password_of_the_server(database_url: str) -> None:
    with on_a_port(settings_for(database_url)) as url:
        address = url.replace("http://", "http://ana:pw@")
        async with over_stdio(database_url, "auto", "--url", address) as assistant:
            memory_id = await ask(assistant, "remember", text="My sister Ines moved to Porto.")
            [result] = json.loads(await ask(assistant, "search", query="Ines"))["results"]
    assert result["url"] == f"{url}/v1/namespaces/ana/memories/{memory_id}"


async def test_tools_say_whether_they_change_anything(database_url: str) -> None:
    async with in_process(database_url, "auto") as assistant:
        hints = {tool.name: tool.annotations for tool in (await assistant.list_tools()).tools}
    assert {name for name, each in hints.items() if each and each.read_only_hint} == {*TOOLS} - {"remember", "forget"}
    assert [name for name, each in hints.items() if each and each.destructive_hint] == ["forget"]


@pytest.mark.filterwarnings("ignore:open_binary is deprecated")
async def test_they_cost_an_assistant_few_tokens_and_none_chooses_the_namespace(database_url: str) -> None:
    async with in_process(database_url, "auto") as assistant:
        tools = [tool.model_dump(by_alias=True, exclude_none=True) for tool in (await assistant.list_tools()).tools]
    tokens = import_module("bpe_openai").get_encoding("o200k_base").encode(json.dumps({"tools": tools}))
    assert len(tokens) <= 800
    assert {name for tool in tools for name in tool["inputSchema"]["properties"]} == {
        *("text", "speaker", "query", "limit", "max_tokens", "id")
    }


async def test_a_bad_argument_is_a_tools_error(database_url: str) -> None:
    async with in_process(database_url, "auto") as assistant:
        failed = await assistant.call_tool("recall", {"query": " "})
        misspelt = await assistant.call_tool("recall", {"query": "kettle", "topk": 3})
    assert failed.is_error
    assert "must not be blank" in str(failed.content)
    assert misspelt.is_error
    assert "recall has no argument topk, only query, limit" in str(misspelt.content)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("forget", {}, "forget takes id; id: Field required"),
        (
            "recall",
            {"limit": "many"},
            "recall takes query, limit; query: Field required; "
            "limit: Input should be a valid integer, unable to parse string as an integer",
        ),
        ("remember", {"text": ""}, "Error executing tool remember: text: must be text of 1 to 1,000,000 characters"),
    ],
)
async def test_a_missing_or_wrong_argument_is_named_with_what_to_give(
    database_url: str, tool: str, arguments: dict[str, Any], told: str
) -> None:
    async with in_process(database_url, "auto") as assistant:
        failed = await assistant.call_tool(tool, arguments)
    assert (failed.is_error, failed.content[0].text) == (True, told)  # type: ignore[union-attr]


RECALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "recall", "arguments": {"query": "x"}},
}
"""A call in the older protocol."""

ACCEPTED = {"Accept": "application/json, text/event-stream"}


def call(url: str, path: str = "/mcp", **headers: str) -> httpx.Response:
    """Ask for the recall of nothing."""
    return httpx.post(f"{url}{path}", json=RECALL, headers=ACCEPTED | headers, timeout=60)


async def test_a_server_may_listen_on_an_ipv6_address(database_url: str) -> None:
    async with served(database_url, host="::1", port=8321) as client:
        assert (await client.post("/mcp/ana", json=RECALL, headers=ACCEPTED)).status_code == 200
        assert (await client.get("/docs/openapi.json")).json()["servers"] == [{"url": "http://[::1]:8321"}]


def test_the_namespace_of_a_request_is_its_path_or_a_header(database_url: str) -> None:
    with on_a_port(settings_for(database_url)) as url:
        with trivet.Client(url) as client:
            client.add("Of Ana", namespace="ana@home")
            client.add("Of Ben", namespace="ben")
        header = {"X-Trivet-Namespace": "ben"}
        assert "Of Ana" in call(url, "/mcp/ana%40home").text
        assert "Of Ben" in call(url, **header).text
        assert "Of Ana" in call(url, "/mcp/ana@home", **header).text
        assert "Of Ben" not in call(url, "/mcp/ana@home", **header).text
        assert "name a namespace" in call(url).text
        assert "must be 1 to 128 letters" in call(url, "/mcp/ana/ben").text
        assert "Of Ana" in call(url, "//mcp/ana@home").text
        assert call(url, "/mcpana@home").status_code == 404


async def asked_in(client: httpx.AsyncClient, header: bytes) -> httpx.Response:
    """The recall of nothing in the namespace that a header names."""
    headers = {b"accept": ACCEPTED["Accept"].encode(), b"x-trivet-namespace": header}
    return await client.post("/mcp", json=RECALL, headers=headers)


async def test_a_namespace_in_a_header_may_have_letters_of_any_script(database_url: str) -> None:
    async with served(database_url) as client:
        for ns in ("jürgen", "大阪"):
            await client.post(f"/v1/namespaces/{ns}/memories", json={"memories": [{"text": f"Of {ns}"}]})
            for sent in (ns.encode(), quote(ns).encode()):
                assert f"Of {ns}" in (await asked_in(client, sent)).text
        refused = await asked_in(client, "jürgen".encode("latin-1"))
        assert problem_of(refused, 422)["detail"] == "namespace: is not percent-encoded UTF-8"


async def test_the_log_names_no_memory_that_a_tool_asks_for(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    fetch = {**RECALL, "params": {"name": "fetch", "arguments": {"id": "diary-of-ana"}}}
    async with served(database_url) as client:
        with caplog.at_level(logging.INFO):
            answer = await client.post("/mcp/ana", json=fetch, headers=ACCEPTED)
    assert "there is no" in answer.text
    assert "diary" not in caplog.text


async def test_addresses_begin_as_the_request_or_else_as_the_setting_says(database_url: str) -> None:
    """Not with the address that the server listens on, which may be all of them."""
    async with served(database_url, host="0.0.0.0", port=8321, allowed_hosts="*") as client:
        await client.post("/v1/namespaces/ana/memories", json={"memories": [{"id": "m1", "text": "The kettle."}]})
        asked = {**RECALL, "params": {"name": "fetch", "arguments": {"id": "m1"}}}
        answer = await client.post("/mcp/ana", json=asked, headers={**ACCEPTED, "Host": "memory.example:80"})
    assert "http://memory.example:80/v1/namespaces/ana/memories/m1" in answer.text
    async with trivet.aopen(database_url=database_url) as local:
        made = trivet.mcp.server(local, lambda _: "ana", base_url="http://memory.example/")
        async with Client(made) as assistant:
            url = json.loads(await ask(assistant, "fetch", id="m1"))["url"]
    assert url == "http://memory.example/v1/namespaces/ana/memories/m1"


async def test_metadata_hide_no_field_of_a_memory(database_url: str) -> None:
    fields = {"speaker": "Ana", "created_at": "2025-05-20T18:00:00Z"}
    metadata = {"speaker": "Ben", "created_at": "yesterday", "mood": "glad"}
    memory: dict[str, Any] = {"id": "m1", "text": "The kettle.", "metadata": metadata, **fields}
    async with trivet.aopen(database_url=database_url, namespace="ana") as client:
        await client.add(memory)
        async with Client(trivet.mcp.server(client, lambda _: "ana")) as assistant:
            assert json.loads(await ask(assistant, "fetch", id="m1"))["metadata"] == {**fields, "mood": "glad"}


@contextmanager
def greeted(*command: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """A program of tools that has answered its first request, and whose input stays open."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with subprocess.Popen(
        (sys.executable, *command),
        env=environment(**settings), cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            tell(process, "initialize", hello, id=0)
            assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "trivet"
            tell(process, "notifications/initialized", {})
            yield process
        finally:
            process.kill()


def tell(process: subprocess.Popen[str], method: str, params: dict[str, Any], **more: int) -> None:
    print(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}), file=process.stdin, flush=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_them_while_their_input_stays_open(number: signal.Signals) -> None:
    """Ctrl-C in a terminal, or an assistant that ends its tools: no running call fails, and the database is closed."""
    with (
        new_data_dir() as data_dir,
        greeted("-m", "trivet", "mcp", "-n", "ana", TRIVET_DATA_DIR=str(data_dir)) as process,
    ):
        for call in range(1, 21):
            arguments = {"text": f"Boat {call} is blue."}
            tell(process, "tools/call", {"name": "remember", "arguments": arguments}, id=call)
        assert process.stdout is not None
        first = process.stdout.readline()  # the others are under way
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 128 + number
        answers, errors = process.communicate()
        assert '"isError":true' not in first + answers
        assert errors == ""
        assert postgres_in(data_dir) == []


def test_an_assistant_that_does_not_wait_for_an_answer_is_no_error() -> None:
    with greeted("-m", "trivet", "mcp", "-n", "ana", "--url", "http://127.0.0.1:1") as process:
        assert process.stdout is not None
        process.stdout.close()
        tell(process, "ping", {}, id=1)
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")


def test_a_signal_ends_them_even_if_the_database_cannot_be_closed() -> None:
    code = """
import contextlib, trivet, trivet.in_process
from retrieval.cli import main

@contextlib.asynccontextmanager
async def opened(settings):
    async with trivet.AsyncClient("http://127.0.0.1:1") as client:
        yield client
    raise OSError("the folder is gone")

trivet.in_process.opened = opened
main(["mcp", "-n", "ana"])
"""
    with greeted("-c", code) as process:
        process.terminate()
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM


def test_a_namespace_that_cannot_be_is_refused_at_once() -> None:
    assert "1 to 128 letters" in run(NOWHERE, "mcp", "-n", "a b", status=1).stderr


_SERVER = """
import sys
import httpx
from tests.serving import on_a_port, settings_for
with on_a_port(settings_for(sys.argv[1])) as url:
    before = "mcp" in sys.modules
    status = httpx.post(url + "/mcp/ana", json={}, timeout=60).status_code
    print(before, "mcp" in sys.modules, status)
"""


def test_a_server_loads_what_they_need_when_it_is_first_asked(database_url: str) -> None:
    assert python("-c", _SERVER, database_url).stdout.split() == ["False", "True", "400"]


def test_tools_want_the_key_and_no_page_of_another_origin_reaches_them(database_url: str) -> None:
    with on_a_port(settings_for(database_url, api_key="correct-key")) as url:
        assert call(url, "/mcp/a").status_code == 401
        assert call(url, "/mcp/a", Authorization="Bearer correct-key").status_code == 200
    with on_a_port(settings_for(database_url)) as url:
        assert call(url, "/mcp/a", Origin="https://evil.example").status_code == 403
        assert call(url, "/mcp/a", Host="evil.example").status_code == 421


async def test_what_a_tool_asks_for_is_no_request_of_an_address(database_url: str) -> None:
    async with served(database_url, rate_limit=1) as client:
        answer = await client.post("/mcp/ana", json=RECALL, headers=ACCEPTED)
        assert answer.json()["result"]["isError"] is False, answer.text
        problem_of(await client.post("/mcp/ana", json=RECALL, headers=ACCEPTED), 429)


async def test_a_server_without_the_package_says_what_to_install(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.api.mcp.find_spec", lambda _: None)
    async with served(database_url) as client:
        assert "pip install 'trivet[mcp]'" in str(problem_of(await client.post("/mcp/ana", json={}), 404)["detail"])
        assert problem_of(await client.post("/mcpx", json={}), 404)["detail"] == NO_SUCH_PATH


def test_an_assistants_open_stream_ends_with_the_server(database_url: str) -> None:
    """Completely, so that neither its client nor the server's log sees a failure."""
    accepted = {"accept": "text/event-stream"}
    with (
        serving(TRIVET_DATABASE_URL=database_url) as server,
        httpx.stream("GET", f"{server.url}/mcp/ana", headers=accepted, timeout=PATIENCE_S) as stream,
    ):
        assert stream.status_code == 200
        server.process.terminate()
        stream.read()
        assert server.process.wait(PATIENCE_S) == 0
        assert "ERROR" not in server.said()
