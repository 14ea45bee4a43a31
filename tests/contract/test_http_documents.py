"""The OpenAPI document and the API pages match the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
from litestar.routes import HTTPRoute

from retrieval.api.app import create_app
from retrieval.api.openapi_page import EXAMPLE_NAMES, EXAMPLE_QUERIES
from retrieval.profiles.registry import ProfileRegistry
from retrieval.profiles.schema import ProfileInput
from retrieval.settings import Settings
from tests.gates import report_on
from tests.serving import client_of, settings_for

PAGES = {("GET", "/"), ("GET", "/console/{name}")}
"""The console's files, which are not part of the API."""

FREE_FIELDS = {"metadata", "timings_ms", "terms", "ndcg", "measures"}
"""Fields of answers whose keys are the caller's, or depend on what was done: examples show some of them."""

PROMISED = {
    ("GET", "/health/live"), ("GET", "/health/ready"), ("GET", "/version"), ("GET", "/metrics"), ("GET", "/docs"),
    ("GET", "/v1/state"),
    ("GET", "/openapi.json"), ("GET", "/v1/namespaces"), ("PUT", "/v1/namespaces/{ns}"),
    ("POST", "/v1/namespaces/{ns}/forget"), ("GET", "/v1/namespaces/{ns}/export"),
    ("GET", "/v1/namespaces/{ns}/memories/{memory_id}/history"),
    ("GET", "/v1/namespaces/{ns}"), ("DELETE", "/v1/namespaces/{ns}"), ("POST", "/v1/namespaces/{ns}/memories"),
    ("GET", "/v1/namespaces/{ns}/memories"), ("POST", "/v1/namespaces/{ns}/memories/bulk"),
    ("POST", "/v1/namespaces/{ns}/memories/delete"),
    ("POST", "/v1/namespaces/{ns}/memories/update"), ("GET", "/v1/namespaces/{ns}/memories/{memory_id}"),
    ("PATCH", "/v1/namespaces/{ns}/memories/{memory_id}"), ("DELETE", "/v1/namespaces/{ns}/memories/{memory_id}"),
    ("POST", "/v1/namespaces/{ns}/search"), ("POST", "/v1/namespaces/{ns}/context"), ("POST", "/v1/classify"),
    ("POST", "/v1/namespaces/{ns}/documents"), ("GET", "/v1/namespaces/{ns}/documents"),
    ("GET", "/v1/namespaces/{ns}/documents/{document_id}"), ("DELETE", "/v1/namespaces/{ns}/documents/{document_id}"),
    ("POST", "/v1/namespaces/{ns}/feedback"), ("GET", "/v1/namespaces/{ns}/feedback"),
    ("DELETE", "/v1/namespaces/{ns}/feedback"), ("GET", "/v1/namespaces/{ns}/queries"),
    ("DELETE", "/v1/namespaces/{ns}/queries"), ("POST", "/v1/namespaces/{ns}/evaluations"),
    ("GET", "/v1/jobs"), ("POST", "/v1/namespaces/{ns}/reembed"),
    ("GET", "/v1/namespaces/{ns}/entities"), ("GET", "/v1/namespaces/{ns}/entities/{entity_id}"),
    ("GET", "/v1/namespaces/{ns}/entities/{entity_id}/neighbors"),
    ("POST", "/v1/namespaces/{ns}/entities/{entity_id}/aliases"),
    ("POST", "/v1/namespaces/{ns}/entities/{entity_id}/merge"), ("DELETE", "/v1/namespaces/{ns}/merges/{merge_id}"),
    ("GET", "/v1/namespaces/{ns}/paths"), ("GET", "/v1/namespaces/{ns}/graph"),
    ("GET", "/v1/profiles"), ("GET", "/v1/profiles/{name}"), ("PUT", "/v1/profiles/{name}"),
    ("POST", "/v1/profiles/{name}/promote"), ("POST", "/v1/profiles/{name}/rollback"),
    ("GET", "/v1/profiles/{name}/shadow"), ("PUT", "/v1/profiles/{name}/shadow"),
    ("DELETE", "/v1/profiles/{name}/shadow"),
}  # fmt: skip


async def _document(database_url: str, api_key: str | None = None) -> dict[str, Any]:
    async with client_of(create_app(settings_for(database_url, api_key=api_key))) as client:
        answer = await client.get("/openapi.json", headers={"authorization": f"Bearer {api_key}"})
        assert answer.headers["content-type"] == "application/json"
        document: dict[str, Any] = answer.json()
        return document


def _operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


async def test_it_documents_the_contract(database_url: str) -> None:
    """Every route of the contract, with an answer for each status that it may have."""
    document = await _document(database_url)
    assert document["openapi"].startswith("3.1")
    operations = _operations(document)
    assert set(operations) == PROMISED
    for (_, path), operation in operations.items():
        statuses = operation["responses"]
        assert "500" in statuses
        assert ("422" in statuses) == path.startswith("/v1/"), path
        for status, response in statuses.items():
            if int(status) >= 400:
                assert next(iter(response["content"])) == "application/problem+json"
    stored = operations["POST", "/v1/namespaces/{ns}/memories"]["responses"]["201"]
    assert stored["description"] == "Stored"  # and not that a URL follows


def test_no_route_is_left_out() -> None:
    """Every handler is in the document, except those that show the document."""
    app = create_app(Settings())
    routes = {
        (str(method), route.path_format)
        for route in app.routes
        if isinstance(route, HTTPRoute) and not route.path_format.startswith("/docs")
        for method in route.methods
    }
    assert routes - {("OPTIONS", path) for _, path in routes} == PROMISED - {("GET", "/docs")} | PAGES


async def test_every_field_is_described(database_url: str) -> None:
    """In the schemas, and each parameter."""
    document = await _document(database_url)
    for name, schema in document["components"]["schemas"].items():
        for field, about in schema.get("properties", {}).items():
            assert any("description" in part for part in (about, *about.get("anyOf", ()))), f"{name}.{field}"
    for operation in _operations(document).values():
        assert all(parameter["description"] for parameter in operation.get("parameters", ()))


async def test_every_time_is_called_a_time(database_url: str) -> None:
    """In requests and in answers, so that generated clients read it as one."""
    schemas = (await _document(database_url))["components"]["schemas"]
    times = {
        f"{name}.{field}": about
        for name, schema in schemas.items()
        for field, about in schema.get("properties", {}).items()
        if re.fullmatch(r"at|.*_at|as_of|query_timestamp|created_(after|before)", field)
    }
    assert {"Memory.expires_at", "Job.finished_at", "SearchRequest.as_of"} <= times.keys()
    for field, about in times.items():
        assert {"type": "string", "format": "date-time"}.items() <= about.get("anyOf", [about])[0].items(), field


async def test_generators_of_clients_can_read_it(database_url: str) -> None:
    """Every JSON body is a named type, lists and objects say what they may hold, and no parameter is malformed.

    Types are in one order, so that clients generated again differ only where the API does.
    """
    document = await _document(database_url)
    for operation in _operations(document).values():
        for media_type, body in operation.get("requestBody", {}).get("content", {}).items():
            assert media_type != "application/json" or "$ref" in str(body["schema"]), operation["operationId"]
        # `allowReserved` belongs to a `schema`
        assert not any({"content", "allowReserved"} <= each.keys() for each in operation.get("parameters", ()))
    schemas = document["components"]["schemas"]
    assert list(schemas) == sorted(schemas)
    assert schemas["MemoryInput"]["properties"]["metadata"]["additionalProperties"] is True
    lists = [each for each in _objects_in(schemas) if each.get("type") == "array"]
    assert len(lists) > 100
    assert all(isinstance(each.get("items"), dict) for each in lists)  # not even false, which some cannot read
    open_objects = [each for each in _objects_in(schemas) if each.get("type") == "object" and "properties" not in each]
    assert all("additionalProperties" in each for each in open_objects)


def _objects_in(part: Any) -> Iterator[dict[str, Any]]:
    """The JSON objects in a part of the document."""
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _objects_in(inner)


async def test_its_examples_are_valid(database_url: str) -> None:
    """Each part of a path and each body of JSON or of its lines has an example, which fits its schema."""
    document = await _document(database_url)
    checked = 0
    for key, operation in _operations(document).items():
        parameters = operation.get("parameters", ())
        for parameter in (each for each in parameters if each["in"] == "path"):
            jsonschema_rs.validator_for(parameter["schema"]).validate(parameter["example"])
        with_content = (*parameters, *operation["responses"].values(), operation.get("requestBody", {}))
        for content in (part.get("content", {}) for part in with_content):
            for media_type, body in content.items():
                is_own_document = "additionalProperties" in body["schema"]
                assert ("example" in body) == ("json" in media_type and not is_own_document), key
                if "example" in body:
                    schema = {**body["schema"], "components": document["components"]}
                    jsonschema_rs.validator_for(schema).validate(body["example"])
                    checked += 1
    assert checked > 60


async def test_the_key_is_documented_where_there_is_one(database_url: str) -> None:
    """A security requirement on everything that needs the key, and nowhere else."""
    assert "securitySchemes" not in (await _document(database_url))["components"]
    document = await _document(database_url, api_key="k")
    for (_, path), operation in _operations(document).items():
        is_open = path.startswith("/health/") or path == "/version"
        assert ("security" not in operation) == is_open
        assert ("401" in operation["responses"]) != is_open


async def test_the_pages_load_nothing_from_elsewhere(database_url: str) -> None:
    """They work without a network: no external script, image, style sheet, font or import."""
    async with client_of(create_app(settings_for(database_url))) as client:
        answer = await client.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.search(r'<script|<link(?! rel="icon" href="data:,")|<img|<iframe|@import|url\(|\ssrc=', answer.text)
    for path in ("/v1/namespaces/{ns}/search", "/v1/classify", "/health/live"):
        assert f"<code>{path}</code>" in answer.text
    assert answer.text.count("curl -s") == len(PROMISED)
    for bounds in ("At least 1, at most 2,147,483,647.", "At least 1, at most 1,000.", "At most 128 characters."):
        assert bounds in answer.text


async def test_the_pages_examples_work(database_url: str) -> None:
    """The documented requests, sent in the order of first use, are answered as documented."""
    app = create_app(settings_for(database_url))
    async with client_of(app) as client:
        await _promote_something(app.state.api.engine.profiles)
        operations = _operations((await client.get("/openapi.json")).json())
        first = [
            ("PUT", "/v1/namespaces/{ns}"),
            ("POST", "/v1/namespaces/{ns}/memories"),
            ("POST", "/v1/namespaces/{ns}/documents"),
            ("POST", "/v1/profiles/{name}/rollback"),
        ]
        last = [("POST", "/v1/namespaces/{ns}/evaluations"), ("POST", "/v1/namespaces/{ns}/entities/{entity_id}/merge")]
        never = [key for key in operations if key[0] == "DELETE" or key[1].endswith("/delete")]
        others = operations.keys() - {*first, *last, *never}
        for key in [*first, *others, *last]:
            if key == last[0]:
                await _judge_enough(client)
            answer = await _send_example(client, *key, operations[key])
            status, documented = next(iter(operations[key]["responses"].items()))
            assert str(answer.status_code) == status, (key, answer.text)
            example = documented.get("content", {}).get("application/json", {}).get("example")
            if example is not None and answer.headers["content-type"] == "application/json":
                assert not _not_shown(answer.json(), example), key


def _not_shown(answer: Any, example: Any, *path: str) -> set[tuple[str, ...]]:
    """The fields of an answer that its example lacks; null and empty values in the example match anything."""
    if isinstance(answer, list) and isinstance(example, list) and example:
        lacking = (set.intersection(*(_not_shown(each, one, *path) for one in example)) for each in answer)
        return set().union(*lacking)
    if not (isinstance(answer, dict) and isinstance(example, dict)) or (path and path[-1] in FREE_FIELDS):
        return set()
    below = (_not_shown(value, example[name], *path, name) for name, value in answer.items() if name in example)
    return {(*path, name) for name in answer.keys() - example.keys()}.union(*below)


async def _promote_something(profile_registry: ProfileRegistry) -> None:
    """So that there is something to roll back to, and another version for a shadow."""
    profile = await profile_registry.put("default", ProfileInput(shrink=0.5))
    await profile_registry.attach_report("default", profile.version, report_on(profile))
    await profile_registry.promote("default")


async def _judge_enough(client: httpx.AsyncClient) -> None:
    """So that there is something to evaluate."""
    url = "/v1/namespaces/{ns}".format_map(EXAMPLE_NAMES)
    [memory] = (await client.get(f"{url}/memories", params={"limit": 1})).json()["memories"]
    for number in range(10):
        judged = {"query": f"Question {number}", "shown": [memory["id"]], "relevant": [memory["id"]]}
        assert (await client.post(f"{url}/feedback", json=judged)).status_code == 201


async def _send_example(client: httpx.AsyncClient, method: str, path: str, operation: dict[str, Any]) -> httpx.Response:
    url = path.format_map(EXAMPLE_NAMES) + EXAMPLE_QUERIES.get(operation["operationId"], "")
    for media_type, body in operation.get("requestBody", {}).get("content", {}).items():
        if media_type == "application/json":
            return await client.request(method, url, json=body["example"])
        return await client.request(method, url, content=body["example"], headers={"content-type": media_type})
    return await client.request(method, url)


def test_data_folder_is_not_touched(tmp_path: Path) -> None:
    """Creating an application opens nothing: the engine starts with the application."""
    create_app(Settings(data_dir=tmp_path / "unused"))
    assert not (tmp_path / "unused").exists()
