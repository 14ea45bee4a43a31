"""Which hosts a server answers for, and which origins it allows."""

from __future__ import annotations

import socket

import httpx
import pytest

from tests.processes import PATIENCE_S
from tests.serving import on_a_port, problem_of, served, settings_for

NAMESPACES = "/v1/namespaces"
LOOPBACK = ["localhost", "LocalHost:8321", "localhost.", "127.0.0.1:1", "127.8.9.10", "[::1]:8321"]
OTHERS = [
    *("evil.example", "evil.example:8321", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.2"),
    *("[::2]", "0.0.0.0", "x@localhost", "[::1", "localhost:80:80", "::1", " "),
]


async def status(client: httpx.AsyncClient, host: str, path: str = NAMESPACES, **headers: str) -> int:
    return (await client.get(path, headers={"host": host, **headers})).status_code


async def test_without_a_key_only_loopback_is_answered(client: httpx.AsyncClient) -> None:
    """No page can read its visitor's memories under a name that resolves to loopback (DNS rebinding)."""
    assert {host: await status(client, host) for host in LOOPBACK} == dict.fromkeys(LOOPBACK, 200)
    for path in (NAMESPACES, "/", "/console/app.js", "/docs", "/health/live", "/metrics", "/mcp/a", "/nothing"):
        assert {host: await status(client, host, path) for host in OTHERS} == dict.fromkeys(OTHERS, 421), path
    refused = problem_of(await client.get(NAMESPACES, headers={"host": "evil.example"}), 421)
    assert "TRIVET_ALLOWED_HOSTS" in str(refused["detail"])


async def test_the_address_that_it_listens_on_is_answered(database_url: str) -> None:
    async with served(database_url, host="trivet.local") as client:
        assert await status(client, "Trivet.local:8321") == 200
        assert await status(client, "other.local") == 421


async def test_further_hosts_are_a_setting(database_url: str) -> None:
    async with served(database_url, allowed_hosts="Trivet.example, *.example.org,[fd00::1]") as client:
        allowed = ["trivet.example", "trivet.example:443", "a.b.example.org", "[fd00::1]:8321", *LOOPBACK]
        assert {host: await status(client, host) for host in allowed} == dict.fromkeys(allowed, 200)
        others = ["example.org", "evilexample.org", "a.trivet.example", *OTHERS]
        assert {host: await status(client, host) for host in others} == dict.fromkeys(others, 421)
    async with served(database_url, allowed_hosts="2001:db8::1,*.example.org:8321") as client:
        allowed = ["[2001:db8::1]:8321", "[2001:db8::1]", "a.example.org"]
        assert {host: await status(client, host) for host in allowed} == dict.fromkeys(allowed, 200)
    async with served(database_url, allowed_hosts="*.") as client:
        assert await status(client, "evil.example") == 421
    for everything in ("*", "*:8321"):
        async with served(database_url, allowed_hosts=everything) as client:
            assert await status(client, "evil.example") == 200


async def test_a_key_answers_for_all_hosts_unless_some_are_set(database_url: str) -> None:
    key = {"authorization": "Bearer k"}
    async with served(database_url, api_key="k") as client:
        assert await status(client, "trivet.example", **key) == 200
        assert await status(client, "trivet.example") == 401
    async with served(database_url, api_key="k", allowed_hosts="trivet.example") as client:
        assert await status(client, "trivet.example", **key) == 200
        assert await status(client, "localhost", **key) == 200
        assert await status(client, "evil.example", **key) == 421


async def test_without_a_key_no_page_of_another_origin_is_let_in(database_url: str) -> None:
    """A page can make its browser send a POST anywhere, except with a JSON body."""
    rollback = "/v1/profiles/default/rollback"
    own = {"host": "localhost:8321"}
    async with served(database_url) as client:
        for origin in ("https://evil.example", "http://localhost:3000", "http://127.0.0.1:8321", "null"):
            problem_of(await client.post(rollback, headers={**own, "origin": origin}), 403)
            problem_of(await client.get(NAMESPACES, headers={**own, "origin": origin}), 403)
        for origin in ("http://localhost:8321", "https://LOCALHOST:8321"):  # a proxy may speak TLS
            assert (await client.get(NAMESPACES, headers={**own, "origin": origin})).status_code == 200
        # What a page embeds has no origin, yet tells the page whether it is there.
        for site, answer in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
            assert await status(client, own["host"], **{"sec-fetch-site": site}) == answer
            link = {"sec-fetch-site": site, "sec-fetch-dest": "document"}
            assert await status(client, own["host"], **link) == 200
        text = {**own, "content-type": "text/plain"}
        for path in ("/v1/namespaces/a/memories", "/v1/namespaces/a/memories/bulk"):
            problem_of(await client.post(path, content=b'{"memories": [{"text": "x"}]}', headers=text), 415)
    async with served(database_url, api_key="k") as client:
        headers = {**own, "origin": "https://app.example", "authorization": "Bearer k"}
        assert (await client.get(NAMESPACES, headers={**headers, "sec-fetch-site": "cross-site"})).status_code == 200


@pytest.mark.parametrize(("head", "status"), [("", 200), ("Host: localhost\r\nHost: evil.example\r\n", 421)])
def test_a_probe_without_a_host_is_answered_and_of_several_all_are_checked(
    database_url: str, head: str, status: int
) -> None:
    with on_a_port(settings_for(database_url)) as url:
        target = httpx.URL(url)
        with socket.create_connection((target.host, target.port or 0), timeout=PATIENCE_S) as wire:
            wire.sendall(f"GET /health/live HTTP/1.0\r\n{head}\r\n".encode())
            assert wire.recv(65_536).startswith(f"HTTP/1.1 {status}".encode())
