"""How the console's files are served, and the state that it shows."""

from __future__ import annotations

import gzip

import httpx

from tests.serving import served


async def test_the_page_needs_no_key_but_what_it_asks_does(database_url: str) -> None:
    async with served(database_url, api_key="open sesame") as client:
        page = await client.get("/")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert (await client.get("/console/app.js")).status_code == 200
        assert (await client.get("/v1/state")).status_code == 401
        assert (await client.get("/v1/namespaces")).status_code == 401


async def test_files_are_compressed_and_not_sent_twice(client: httpx.AsyncClient) -> None:
    plain = await client.get("/console/app.js", headers={"accept-encoding": "identity"})
    async with client.stream("GET", "/console/app.js", headers={"accept-encoding": "gzip"}) as response:
        packed = b"".join([part async for part in response.aiter_raw()])
    assert gzip.decompress(packed) == plain.content
    assert len(packed) < len(plain.content) / 2
    again = await client.get("/console/app.js", headers={"if-none-match": plain.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_nothing_else_is_served(client: httpx.AsyncClient) -> None:
    for path in ("/console/", "/console/app.ts", "/console/..%2Fsettings.py", "/console/%2e%2e/settings.py"):
        assert (await client.get(path)).status_code in (404, 422), path


async def test_it_can_be_switched_off(database_url: str) -> None:
    async with served(database_url, console=False) as client:
        assert (await client.get("/")).status_code == 404
        assert (await client.get("/console/app.js")).status_code == 404
        assert (await client.get("/v1/namespaces")).status_code == 200


async def test_the_state_tells_checks_indexes_and_what_waits(database_url: str) -> None:
    async with served(database_url) as client:
        memories = [{"id": f"m{i}", "text": f"Note {i} about the boiler."} for i in range(5)]
        await client.post("/v1/namespaces/home/memories", json={"memories": memories})
        await client.post("/v1/namespaces/home/search", json={"query": "boiler"})
        state = (await client.get("/v1/state")).json()
    assert all(finding["ok"] for finding in state["findings"]), state["findings"]
    assert {"pgvector", "migrations", "clock"} <= {finding["name"] for finding in state["findings"]}
    [index] = state["indexes"]
    assert (index["namespace"], index["memories"]) == ("home", 5)
    assert 0 < index["bytes"] < state["max_index_bytes"]
    assert state["unpacked"] == {"home": 5}
