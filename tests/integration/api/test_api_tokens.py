"""What tokens give access to, and what they do not."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any

import httpx
import jwt
import pytest

from retrieval.api.tokens import LEEWAY_S, TokenClaims, signed
from tests.serving import problem_of, served

KEY = "the-key-of-this-server-has-40-characters"
READS = TokenClaims(namespaces=["ana"], access="read")
WRITES = TokenClaims(namespaces=["ana", "team:ünï"], access="write")
QUERY = {"query": "Where is the key?"}
NAMES = {"memory_id": "m", "document_id": "d", "entity_id": "e", "merge_id": "x", "name": "default"}

OPEN_TO_ALL = {"/", "/version", "/health/live", "/health/ready"}
OPEN_TO_TOKENS = {("POST", "/v1/classify"), ("GET", "/v1/namespaces"), ("GET", "/docs"), ("GET", "/openapi.json")}
READING_POSTS = {"/v1/namespaces/{ns}/search", "/v1/namespaces/{ns}/context"}


def bearer(token: TokenClaims | str) -> dict[str, str]:
    return {"authorization": f"Bearer {token if isinstance(token, str) else signed(token, KEY)}"}


def claims(**changes: Any) -> dict[str, Any]:
    return {"namespaces": ["ana"], "access": "read", **changes}


def answer_to(client: httpx.AsyncClient, method: str, path: str, **headers: str) -> Any:
    return client.request(method, path, headers={"content-type": "application/json", **headers}, content=b"{}")


async def routes_of(client: httpx.AsyncClient) -> list[tuple[str, str]]:
    """All methods and paths that the server has."""
    document = (await client.get("/openapi.json", headers=bearer(KEY))).json()
    paths = [(method.upper(), path) for path, item in document["paths"].items() for method in item]
    return [*((method, path) for method, path in paths if path not in OPEN_TO_ALL), ("GET", "/openapi.json")]


async def statuses(
    client: httpx.AsyncClient, routes: Iterable[tuple[str, str]], ns: str, token: TokenClaims
) -> set[int]:
    headers = bearer(token)
    return {
        (await answer_to(client, method, path.format(ns=ns, **NAMES), **headers)).status_code for method, path in routes
    }


async def test_every_route_is_for_the_namespaces_of_a_token_and_what_it_may_do_there(database_url: str) -> None:
    async with served(database_url, api_key=KEY) as client:
        routes = await routes_of(client)
        inside = {route for route in routes if "{ns}" in route[1]}
        reading = {(method, path) for method, path in inside if method == "GET" or path in READING_POSTS}
        assert len(inside) > 30
        assert len(reading) > 15
        assert await statuses(client, inside, "ben", WRITES) == {403}
        assert await statuses(client, inside, "ana%20", WRITES) == {403}
        assert await statuses(client, {*routes} - inside - OPEN_TO_TOKENS, "", WRITES) == {403}
        assert not await statuses(client, OPEN_TO_TOKENS, "", READS) & {401, 403}
        assert await statuses(client, inside - reading, "ana", READS) == {403}
        for token, opened, ns in ((READS, reading, "ana"), (WRITES, inside, "%61na"), (WRITES, inside, "team:ünï")):
            assert not await statuses(client, opened, ns, token) & {401, 403, 500}


async def test_a_token_for_the_metrics_opens_no_namespace(database_url: str) -> None:
    metrics = TokenClaims(access="metrics")
    async with served(database_url, api_key=KEY) as client:
        routes = await routes_of(client)
        assert await statuses(client, [("GET", "/metrics")], "", metrics) == {200}
        assert await statuses(client, {*routes} - OPEN_TO_TOKENS - {("GET", "/metrics")}, "ana", metrics) == {403}
        assert (await client.get("/v1/namespaces", headers=bearer(metrics))).json() == {"namespaces": []}
        assert (await client.post("/mcp/ana", json={}, headers=bearer(metrics))).status_code == 403


async def test_a_token_in_use(database_url: str) -> None:
    async with served(database_url, api_key=KEY) as client:
        for ns in ("ana", "ben"):
            body = {"memories": [{"id": "m", "text": f"The key of {ns} is under the mat"}]}
            await client.post(f"/v1/namespaces/{ns}/memories", json=body, headers=bearer(KEY))
        found = (await client.post("/v1/namespaces/ana/search", json=QUERY, headers=bearer(READS))).json()
        assert [one["text"] for one in found["results"]] == ["The key of ana is under the mat"]
        problem = problem_of(await client.post("/v1/namespaces/ben/search", json=QUERY, headers=bearer(READS)), 403)
        assert problem["detail"] == "The token does not open this namespace"
        for ns, status in (("ana", 200), ("ben", 403), ("none", 403)):
            asked = {**QUERY, "namespace": ns}
            assert (await client.post("/v1/classify", json=asked, headers=bearer(READS))).status_code == status
        begun = await client.post("/v1/namespaces/ana/reembed", json={}, headers=bearer(WRITES))
        listed = (await client.get("/v1/jobs?namespace=ana", headers=bearer(READS))).json()["jobs"]
        assert [one["id"] for one in listed] == [begun.json()["id"]]
        for query in ("?namespace=ben", ""):
            problem_of(await client.get(f"/v1/jobs{query}", headers=bearer(WRITES)), 403)
        problem = problem_of(await client.delete("/v1/namespaces/ana/memories/m", headers=bearer(READS)), 403)
        assert problem["detail"] == "The token only reads"
        listed = (await client.get("/v1/namespaces", headers=bearer(WRITES))).json()["namespaces"]
        assert [one["name"] for one in listed] == ["ana"]
        assert (await client.delete("/v1/namespaces/ana/memories/m", headers=bearer(WRITES))).status_code == 204


async def test_a_token_does_not_learn_which_profiles_there_are(database_url: str) -> None:
    """Their names may be those of other tenants, and `/v1/profiles` is closed to it."""
    asked = {**QUERY, "profile": "none"}
    async with served(database_url, api_key=KEY) as client:
        await client.put("/v1/namespaces/ana", json={}, headers=bearer(KEY))
        for path in ("/v1/namespaces/ana/search", "/v1/classify"):
            told = problem_of(await client.post(path, json=asked, headers=bearer(READS)), 422)
            assert told["detail"] == "profile: there is no profile 'none'"
            told = problem_of(await client.post(path, json=asked, headers=bearer(KEY)), 422)
            assert told["detail"] == "profile: there is no profile 'none'; there are: default, research"
        told = problem_of(await client.put("/v1/namespaces/ana", json={"profile": "none"}, headers=bearer(WRITES)), 422)
        assert told["errors"] == [{"loc": ["profile"], "msg": "there is no profile 'none'"}]


NOW = int(time.time())
REFUSED = {
    "another key": (jwt.encode(claims(), KEY[::-1], "HS256"), "Signature verification failed"),
    "another algorithm": (jwt.encode(claims(), KEY * 2, "HS512"), "alg"),
    "no algorithm": (jwt.encode(claims(), "", "none"), "alg"),
    "expired": (jwt.encode(claims(exp=NOW - LEEWAY_S - 60), KEY, "HS256"), "expired"),
    "not yet": (jwt.encode(claims(nbf=NOW + 86_400), KEY, "HS256"), "not yet valid"),
    "for others": (jwt.encode(claims(aud="others"), KEY, "HS256"), "audience"),
    "no namespaces": (jwt.encode({"access": "read"}, KEY, "HS256"), "`namespaces`"),
    "none of them": (jwt.encode(claims(namespaces=[]), KEY, "HS256"), "namespaces"),
    "one that is no list": (jwt.encode(claims(namespaces="ana"), KEY, "HS256"), "namespaces"),
    "metrics of one": (jwt.encode(claims(access="metrics"), KEY, "HS256"), "takes none"),
    "no access": (jwt.encode({"namespaces": ["ana"]}, KEY, "HS256"), "`access`"),
    "unknown access": (jwt.encode(claims(access="admin"), KEY, "HS256"), "admin"),
    "no token": ("a.b.c", "refused"),
    "no key": ("another-one", "not the server's key"),
}


async def test_what_is_refused_says_why_and_is_not_repeated(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(database_url, api_key=KEY) as client:
        with caplog.at_level(logging.DEBUG, logger="retrieval"):
            for name, (token, said) in REFUSED.items():
                refused = await client.post("/v1/namespaces/ana/search", json=QUERY, headers=bearer(token))
                detail = str(problem_of(refused, 401)["detail"])
                assert said in detail, name
                assert "invalid_token" in refused.headers["www-authenticate"], name
                assert token not in detail + caplog.text, name
        ends = bearer(signed(READS, KEY, expires_in_s=3_600))
        assert (await client.get("/v1/namespaces", headers=ends)).status_code == 200


async def test_a_short_key_signs_nothing(database_url: str) -> None:
    """A token's holder could find it out."""
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = jwt.encode(claims(), "secret", "HS256")
    async with served(database_url, api_key="secret") as client:
        refused = problem_of(await client.get("/v1/namespaces/ana", headers=bearer(token)), 401)
    assert "at least 32 bytes" in str(refused["detail"])


async def test_tools_are_bound_to_the_token(database_url: str) -> None:
    remember = {"name": "remember", "arguments": {"text": "Ana likes tea"}}
    recall = {"name": "recall", "arguments": {"query": "tea"}}

    async def answer(path: str, token: TokenClaims | str, tool: dict[str, Any], **headers: str) -> httpx.Response:
        called = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
        accept = {"accept": "application/json, text/event-stream", **headers}
        return await client.post(path, json=called, headers={**bearer(token), **accept})

    async def call(path: str, token: TokenClaims | str, **headers: str) -> int:
        return (await answer(path, token, remember, **headers)).status_code

    async with served(database_url, api_key=KEY) as client:
        assert await call("/mcp/ana", WRITES) == 200
        assert await call("/mcp", WRITES, **{"x-trivet-namespace": "ana"}) == 200
        assert await call("/mcp/ben", KEY) == 200
        assert await call("/mcp/ben", WRITES) == 403
        assert await call("/mcp/ben", WRITES, **{"x-trivet-namespace": "ana"}) == 403
        assert await call("/mcp", WRITES, **{"x-trivet-namespace": "ben"}) == 403
        assert await call("/mcp", WRITES) == 403
        assert "Ana likes tea" in (await answer("/mcp/ana", READS, recall)).text
        for tool in (remember, {"name": "forget", "arguments": {"id": "m"}}):
            assert "writes, and the token only reads" in (await answer("/mcp/ana", READS, tool)).text
        assert (await answer("/mcp/ben", READS, recall)).status_code == 403
        listed = (await client.get("/v1/namespaces", headers=bearer(KEY))).json()["namespaces"]
    assert {one["name"]: one["memories"] for one in listed} == {"ana": 2, "ben": 1}
