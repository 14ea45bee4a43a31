"""Whatever the fault of a request, the answer is a problem that names the field, and nothing is stored."""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import AsyncIterator
from datetime import datetime

import httpx
import pytest

from tests.contract.test_http_abuse import rows_of
from tests.serving import problem_of, served

JSON = {"content-type": "application/json"}
SEARCH = "/v1/namespaces/a/search"
MEMORIES = "/v1/namespaces/a/memories"
DOCUMENTS = "/v1/namespaces/a/documents"

DEEP = b"[" * 100 + b"]" * 100
"""One level of nesting too many for a place in an object."""

BAD_SEARCHES: list[tuple[bytes, list[object]]] = [
    (b"", []),
    (b"  \n", []),
    (b"{", []),
    (b"[]", []),
    (b"null", []),
    (b"\xff\xfe", []),
    (b'{"query": "a"} x', []),
    (b"{}", ["query"]),
    (b'{"query": ""}', ["query"]),
    (b'{"query": " \\n\\u3000"}', ["query"]),
    (b'{"query": 1}', ["query"]),
    (b'{"query": null}', ["query"]),
    (b'{"query": "a\\u0000"}', ["query"]),
    (b'{"query": "a\\ud800"}', ["query"]),
    (b'{"query": "\\udc00 a"}', ["query"]),
    (b'{"query": "a", "topk": 3}', ["topk"]),
    (b'{"query": "a", "how many?": 3}', ["how many?"]),
    (b'{"query": "a", "filters": {"a b": 3}}', ["filters", "a b"]),
    (b'{"query": "a", "top_k": 0}', ["top_k"]),
    (b'{"query": "a", "top_k": 10000}', ["top_k"]),
    (b'{"query": "a", "top_k": "3"}', ["top_k"]),
    (b'{"query": "a", "top_k": true}', ["top_k"]),
    (b'{"query": "a", "max_hops": 5}', ["max_hops"]),
    (b'{"query": "a", "ef_search": 0}', ["ef_search"]),
    (b'{"query": "a", "rrf_k": 0}', ["rrf_k"]),
    (b'{"query": "a", "mode": "magic"}', ["mode"]),
    (b'{"query": "a", "intent": "magic"}', ["intent"]),
    (b'{"query": "a", "weights": {"vector": -1}}', ["weights", "vector"]),
    (b'{"query": "a", "weights": {"vector": NaN}}', []),
    (b'{"query": "a", "weights": {"vector": Infinity}}', []),
    (b'{"query": "a", "weights": {"vector": 1e999}}', ["weights", "vector"]),
    (b'{"query": "a", "weights": {"vector": 0, "bm25": 0, "graph": 0}}', ["weights"]),
    (b'{"query": "a", "weights": {}}', ["weights"]),
    (b'{"query": "a", "weights": {"lexical": 1}}', ["weights", "lexical"]),
    (b'{"query": "a", "min_similarity": 1.5}', ["min_similarity"]),
    (b'{"query": "a", "as_of": "2023-05-08T13:56:00"}', ["as_of"]),
    (b'{"query": "a", "as_of": 1700000000}', ["as_of"]),
    (b'{"query": "a", "as_of": "0001-01-01T00:00:00+23:00"}', ["as_of"]),
    (b'{"query": "a", "as_of": "9999-12-31T23:59:59-23:00"}', ["as_of"]),
    (b'{"query": "a", "filters": {"kind": ["note"]}}', ["filters", "kind", 0]),
    (b'{"query": "a", "filters": {"created_after": "2023-05-08"}}', ["filters", "created_after"]),
    (b'{"query": "a", "filters": {"metadata": {"a": "\\u0000"}}}', ["filters", "metadata", "a"]),
    (b'{"query": "a", "filters": {"metadata": {"a": -1e999}}}', ["filters", "metadata", "a"]),
    (b'{"query": "a", "filters": {"metadata": {"a": 1e999}, "kind": x}}', ["filters", "metadata", "*"]),
    (b'{"query": "a", "filters": {"created_after": "9999-01-01T00:00:00Z"}}', ["filters", "created_after"]),
    (b'{"query": "a", "filters": {"created_before": "0001-12-31T00:00:00Z"}}', ["filters", "created_before"]),
    (b'{"query": "a", "filters": {"metadata": {"a": ' + DEEP + b"}}}", ["filters", "metadata"]),
    (b'{"query": "a", "filters": {"metadata": {"a": [' + b"1," * 1_000 + b"1]}}}", ["filters", "metadata"]),
    (b'{"query": "a", "filters": {"metadata": {"a": "' + b"x" * 70_000 + b'"}}}', ["filters", "metadata"]),
    (b'{"query": "a", "filters": {"session_id": ["' + b"x" * 300_000 + b'"]}}', ["filters"]),
    (b'{"query": "a", "profile": "unheard-of"}', ["profile"]),
]

BAD_MEMORIES: list[tuple[bytes, list[object]]] = [
    (b'{"id": "b"}', ["text"]),
    (b'{"id": "b", "text": ""}', ["text"]),
    (b'{"id": "b", "text": " \\n"}', ["text"]),
    (b'{"id": "b", "text": "\\u0000"}', ["text"]),
    (b'{"id": "b", "text": "\\ud800"}', ["text"]),
    (b'{"id": "b", "text": "x", "colour": 1}', ["colour"]),
    (b'{"id": "b", "text": "x", "the colour": 1}', ["the colour"]),
    (b'{"id": "b", "text": "x", "entities": [{"name": "n", "the type": 1}]}', ["entities", 0, "the type"]),
    (b'{"id": "b", "text": ["x"]}', ["text"]),
    (b'{"id": "", "text": "x"}', ["id"]),
    (b'{"id": "b", "text": "x", "kind": "note"}', ["kind"]),
    (b'{"id": "b", "text": "x", "created_at": "2023-05-08T13:56:00"}', ["created_at"]),
    (b'{"id": "b", "text": "x", "created_at": "0001-01-01T00:00:00+23:00"}', ["created_at"]),
    (b'{"id": "b", "text": "x", "expires_at": "9999-12-31T23:59:59-23:00"}', ["expires_at"]),
    (b'{"id": "b", "text": "x", "expires_at": "9998-12-31T23:59:59-05:00"}', ["expires_at"]),
    (
        b'{"id": "b", "text": "x", "created_at": "2024-05-02T00:00:00+02:00", "expires_at": "2024-05-01T21:59:59Z"}',
        ["expires_at"],
    ),
    (b'{"id": "b", "text": "x", "supersedes": "b"}', ["supersedes"]),
    (b'{"id": "b", "text": "x", "position": -1}', ["position"]),
    (b'{"id": "b", "text": "x", "entities": [{"name": ""}]}', ["entities", 0, "name"]),
    (b'{"id": "b", "text": "x", "entities": [{"name": "n"}, {"name": " "}]}', ["entities", 1, "name"]),
    (b'{"id": "b", "text": "x", "entities": [{"name": "n", "aliases": [" "]}]}', ["entities", 0, "aliases", 0]),
    (b'{"id": "b", "text": "x", "entities": [{"name": "n", "type": " "}]}', ["entities", 0, "type"]),
    (b'{"id": "b", "text": "x", "relations": [{"source": "m", "type": " ", "target": "n"}]}', ["relations", 0, "type"]),
    (
        b'{"id": "b", "text": "x", "relations": [{"source": "\\u200b", "type": "r", "target": "n"}]}',
        ["relations", 0, "source"],
    ),
    (
        b'{"id": "b", "text": "x", "relations": [{"source": "n", "type": "r", "target": "\\t"}]}',
        ["relations", 0, "target"],
    ),
    (b'{"id": "b", "text": "x", "metadata": []}', ["metadata"]),
    (b'{"id": "b", "text": "x", "metadata": {"a": {"b": "\\u0000"}}}', ["metadata", "a", "b"]),
    (b'{"id": "b", "text": "x", "metadata": {"a": {"b": [1, 1e999]}}}', ["metadata", "a", "b", 1]),
    (b'{"id": "b", "text": "x", "metadata": {"a": ' + DEEP + b"}}", ["metadata"]),
    (b'{"id": "b", "text": "x", "metadata": {"a": [18446744073709551616]}}', ["metadata", "a", 0]),
    (b'{"id": "b", "text": "x", "metadata": {"a": "' + b"x" * 65_536 + b'"}}', ["metadata"]),
    (b'{"id": "b", "text": "x", "metadata": {"a": [' + b"1," * 500_000 + b"1]}}", ["metadata"]),
    (b'{"id": ".", "text": "x"}', ["id"]),
    (b'{"id": "..", "text": "x"}', ["id"]),
    (b'{"id": "b", "text": "x", "session_id": ".."}', ["session_id"]),
    (b'{"id": "b", "text": "x", "session_id": "\\u001fguide"}', ["session_id"]),
    (b'{"id": "b", "text": "x", "document_id": "."}', ["document_id"]),
    (b'{"id": "b", "text": "' + b"x" * 1_000_001 + b'"}', ["text"]),
]

BAD_DOCUMENTS: list[tuple[bytes, list[object]]] = [
    (b"{}", ["text"]),
    (b'{"text": ""}', ["text"]),
    (b'{"text": " \\n"}', ["text"]),
    (b'{"text": "a\\u0000"}', ["text"]),
    (b'{"text": "a", "content_base64": "YQ=="}', ["text"]),
    (b'{"content_base64": "YQ=!"}', ["content_base64"]),
    (b'{"content_base64": "UEsDBHdvcmQ="}', ["content_base64"]),
    (b'{"content_base64": "/////w=="}', ["content_base64"]),
    (b'{"content_base64": "JVBERi0xLjcK"}', ["content_base64"]),
    (b'{"text": "a", "media_type": "application/pdf"}', ["media_type"]),
    (b'{"text": "a", "media_type": "image/png"}', ["media_type"]),
    (b'{"text": "a", "metadata": {"document": {}}}', ["metadata"]),
    (b'{"text": "a", "metadata": {"a": "' + b"x" * 65_536 + b'"}}', ["metadata"]),
    (b'{"text": "a", "id": ""}', ["id"]),
    (b'{"text": "a", "id": ".."}', ["id"]),
    (b'{"text": "a", "id": "' + b"x" * 241 + b'"}', ["id"]),
    (b'{"text": "a", "kind": "chunk"}', ["kind"]),
    (b'{"text": "a", "created_at": "2023-05-08"}', ["created_at"]),
]


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with served(database_url) as opened:
        added = await opened.post(MEMORIES, json={"memories": [{"id": "kept", "text": "A memory that stays."}]})
        assert added.status_code == 201, added.text
        yield opened


def _locs(problem: dict[str, object]) -> list[object]:
    errors = problem["errors"]
    assert isinstance(errors, list)
    return [error["loc"] for error in errors]


async def test_bad_searches(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """422, and `loc` is the path of the field."""
    for body, loc in BAD_SEARCHES:
        with subtests.test(body=body):
            answer = await client.post(SEARCH, content=body, headers=JSON)
            assert _locs(problem_of(answer, 422)) == [loc]


async def test_bad_documents(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """422 with the field; nothing is stored."""
    for document, loc in BAD_DOCUMENTS:
        with subtests.test(document=document[:80]):
            answer = await client.post(DOCUMENTS, content=document, headers=JSON)
            assert _locs(problem_of(answer, 422)) == [loc]
    assert (await client.get(DOCUMENTS)).json() == {"documents": [], "next_cursor": None}


async def test_a_bad_memory_alone_is_refused(
    client: httpx.AsyncClient, database_url: str, subtests: pytest.Subtests
) -> None:
    """422 with the memory's place and the field; nothing is stored."""
    before = rows_of(database_url)
    for memory, loc in BAD_MEMORIES:
        with subtests.test(memory=memory[:80]):
            answer = await client.post(MEMORIES, content=b'{"memories": [' + memory + b"]}", headers=JSON)
            assert _locs(problem_of(answer, 422)) == [["memories", 0, *loc]]
    assert rows_of(database_url) == before


async def test_a_bad_memory_rejects_only_itself(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """201 for a batch with one valid memory, with the places of the invalid ones; so for lines of a stream."""
    for number, (memory, loc) in enumerate(BAD_MEMORIES):
        with subtests.test(memory=memory[:80]):
            good = json.dumps({"id": f"good-{number}", "text": "Good."}).encode()
            answer = await client.post(MEMORIES, content=b'{"memories": [' + memory + b"," + good + b"]}", headers=JSON)
            assert answer.status_code == 201, answer.text
            rejected, created = answer.json()["results"]
            assert created == {"id": f"good-{number}", "status": "created", "error": None}
            assert rejected["status"] == "rejected"
            assert rejected["error"].startswith(f"{'.'.join(map(str, loc))}: ")
    lines = b"\n".join(memory for memory, _ in BAD_MEMORIES)
    bulk = await client.post(f"{MEMORIES}/bulk", content=lines, headers={"content-type": "application/x-ndjson"})
    for line, (memory, loc) in zip(bulk.text.splitlines(), BAD_MEMORIES, strict=True):
        assert json.loads(line)["status"] == "rejected", memory[:80]
        assert json.loads(line)["error"].startswith(f"{'.'.join(map(str, loc))}: ")


async def test_bad_batches(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """A fault of the whole batch is a 422."""
    too_many = json.dumps({"memories": [{"text": "x"}] * 1_001}).encode()
    for body, loc in (
        (b'{"memories": []}', ["memories"]),
        (b'{"memories": {}}', ["memories"]),
        (b"{}", ["memories"]),
        (b'{"memories": [{"text": "x"}], "more": 1}', ["more"]),
        (too_many, ["memories"]),
    ):
        with subtests.test(body=body[:40]):
            assert _locs(problem_of(await client.post(MEMORIES, content=body, headers=JSON), 422)) == [loc]


async def test_an_id_used_twice_in_a_batch(client: httpx.AsyncClient) -> None:
    """The first is kept and the second rejected by name."""
    twice = {"memories": [{"id": "t", "text": "first"}, {"id": "t", "text": "second"}]}
    answer = await client.post(MEMORIES, json=twice)
    created, rejected = answer.json()["results"]
    assert (created["status"], rejected["status"]) == ("created", "rejected")
    assert rejected["error"].startswith("id: ")
    listed = (await client.get(MEMORIES)).json()["memories"]
    assert [memory["text"] for memory in listed] == ["A memory that stays.", "first"]


async def test_bad_listings(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """422 that names the parameter."""
    for query, loc in (
        ("limit=0", ["limit"]),
        ("limit=1001", ["limit"]),
        ("limit=ten", ["limit"]),
        ("cursor=made-up", ["cursor"]),
        ("kind=note", ["kind", 0]),
        ("speaker=%00", ["speaker", 0]),
        ("speaker=%ff", ["query_string"]),
        ("created_after=2023-05-08T13:56:00", ["created_after"]),
        ("created_after=9999-12-31T23:59:59-23:00", ["created_after"]),
        ("filters={", ["filters"]),
        ('filters={"colour": 1}', ["filters", "colour"]),
        ('kind=chunk&filters={"kind": ["message"]}', ["kind"]),
        ("limit=1&limit=2", ["limit"]),
        ("sort=up", ["sort"]),
    ):
        with subtests.test(query=query):
            assert _locs(problem_of(await client.get(f"{MEMORIES}?{query}"), 422)) == [loc]


async def test_a_time_whose_plus_was_not_encoded(client: httpx.AsyncClient) -> None:
    for path in (f"{MEMORIES}?created_after=", "/v1/namespaces/a/entities?as_of="):
        told = problem_of(await client.get(f"{path}2023-05-08T13:56:00+02:00"), 422)
        assert str(told["detail"]).endswith("write + as %2B")
        assert (await client.get(f"{path}2023-05-08T13:56:00%2B02:00")).status_code == 200


async def test_parameters_that_there_are_not(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """The error says what was probably meant, or where it belongs."""
    for method, path, meant in (
        ("GET", f"{MEMORIES}?limt=3", "did you mean `limit`?"),
        ("POST", f"{SEARCH}?top_k=3", "fields are sent in the body"),
        ("GET", "/version?verbose=1", "this path takes none"),
    ):
        with subtests.test(path=path):
            told = problem_of(await client.request(method, path, json={"query": "a"}), 422)
            assert str(told["detail"]).endswith(f"there is no such parameter; {meant}")


async def test_a_namespace_has_no_profile_without_a_name(client: httpx.AsyncClient) -> None:
    assert _locs(problem_of(await client.put("/v1/namespaces/a", json={"profile": ""}), 422)) == [["profile"]]


async def test_bad_namespaces(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """An invalid name is a 422, on reads and writes."""
    for name in ("a" * 300, "a%2Fb", "a%20b", "a%00", "a%0A", "%F0%9F%98%80", "%ff", "u%CC%88"):
        with subtests.test(name=name):
            assert _locs(problem_of(await client.get(f"/v1/namespaces/{name}"), 422)) == [["namespace"]]
            body = {"memories": [{"text": "x"}]}
            problem_of(await client.post(f"/v1/namespaces/{name}/memories", json=body), 422)
    assert [found["name"] for found in (await client.get("/v1/namespaces")).json()["namespaces"]] == ["a"]


async def test_names_are_of_any_script(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for name in ("परिवार", "ครอบครัว", "குடும்பம்", "عَائِلَة", "家族の記録", "Müller"):
        with subtests.test(name=name):
            assert (await client.put(f"/v1/namespaces/{name}", json={})).json()["name"] == name
            stored = await client.put(f"/v1/profiles/{name}", json={})
            assert stored.is_success, stored.text


async def test_namespaces_that_a_path_loses_are_refused_on_writing(client: httpx.AsyncClient) -> None:
    """`.` and `..`, which clients and proxies treat as path steps; existing ones can still be read."""
    for name in ("%2E", "%2E%2E"):
        added = await client.post(f"/v1/namespaces/{name}/memories", json={"memories": [{"text": "x"}]})
        assert _locs(problem_of(added, 422)) == [["namespace"]]
        assert _locs(problem_of(await client.put(f"/v1/namespaces/{name}", json={}), 422)) == [["namespace"]]
        problem_of(await client.get(f"/v1/namespaces/{name}"), 404)


async def test_the_key_of_a_bad_value_is_told(client: httpx.AsyncClient) -> None:
    """However deep, and whatever the values of the other keys."""
    fit = {"vector": 0.2, "bm25": 0.7, "graph": 0.1}
    recipes = {
        "preference": {"weights": fit},
        "fact_lookup": {"weights": {**fit, "bm25": "many"}},
        "relationship": {"weights": {**fit, "vector": "more"}},
    }
    for method, path, body, loc in (
        ("POST", "/v1/namespaces/a/feedback", {"ratings": {"m1": 1, "m2": 2, "m3": 0}}, ["ratings", "m2"]),
        ("PUT", "/v1/profiles/p", {"fixed": {"weights": {**fit, "graph": -1}}}, ["fixed", "weights", "graph"]),
        ("PUT", "/v1/profiles/p", {"per_intent": recipes}, ["per_intent", "fact_lookup", "weights", "bm25"]),
    ):
        assert _locs(problem_of(await client.request(method, path, json=body), 422)) == [loc]
    twice = b'{"ratings": {"m1": 1, "m2": 2}, "ratings": 5}'
    answer = await client.post("/v1/namespaces/a/feedback", content=twice, headers={"content-type": "application/json"})
    assert _locs(problem_of(answer, 422)) == [["ratings", "*"]]


async def test_a_byte_order_mark_is_ignored(client: httpx.AsyncClient) -> None:
    mark = codecs.BOM_UTF8
    assert (await client.post(SEARCH, content=mark + b'{"query": "a"}', headers=JSON)).status_code == 200
    added = await client.post(MEMORIES, content=mark + b'{"memories": [{"text": "x"}]}', headers=JSON)
    assert added.status_code == 201
    lines = {"content-type": "application/x-ndjson"}
    bulk = await client.post(f"{MEMORIES}/bulk", content=mark + b'{"text": "x"}', headers=lines)
    assert bulk.json()["status"] == "created"


async def test_metadata_up_to_the_bound_come_back(client: httpx.AsyncClient) -> None:
    """However they are written: escapes and blanks do not count."""
    metadata = {"a": "\u00e9" * 32_764}
    body = json.dumps({"memories": [{"id": "large", "text": "x", "metadata": metadata}]}, indent=4)
    assert (await client.post(MEMORIES, content=body, headers=JSON)).status_code == 201
    assert (await client.get(f"{MEMORIES}/large")).json()["metadata"] == metadata
    answer = await client.patch(f"{MEMORIES}/large", json={"metadata": {"a": metadata["a"] + "x"}})
    assert _locs(problem_of(answer, 422)) == [["metadata"]]
    filters = {"filters": {"metadata": {"a": "x" * 70_000}}}
    problem_of(await client.post(f"{MEMORIES}/delete", json=filters), 422)


async def test_blank_queries_are_refused_wherever_one_is_asked(client: httpx.AsyncClient) -> None:
    blank = {"query": " \t\u3000"}
    for path in (SEARCH, "/v1/namespaces/a/context", "/v1/classify"):
        assert _locs(problem_of(await client.post(path, json=blank), 422)) == [["query"]]


async def test_media_types(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """415 for anything but JSON in UTF-8."""
    body = b'{"query": "a"}'
    for given in ("text/plain", "application/xml", "application/json; charset=latin-1", "application/x-ndjson"):
        with subtests.test(given=given):
            problem_of(await client.post(SEARCH, content=body, headers={"content-type": given}), 415)
    problem_of(await client.post(SEARCH, content=body), 415)
    for given in ("application/json", "Application/JSON; charset=UTF-8"):
        assert (await client.post(SEARCH, content=body, headers={"content-type": given})).status_code == 200


async def test_compressed_bodies(client: httpx.AsyncClient) -> None:
    """415 that says so, not an error about broken JSON."""
    body = gzip.compress(b'{"query": "a"}')
    for path, media_type in ((SEARCH, "application/json"), (f"{MEMORIES}/bulk", "application/x-ndjson")):
        headers = {"content-type": media_type, "content-encoding": "gzip"}
        refused = await client.post(path, content=body, headers=headers)
        assert "Content-Encoding" in str(problem_of(refused, 415)["detail"])
        assert refused.headers["accept-encoding"] == "identity"
    plain = {**JSON, "content-encoding": "identity"}
    assert (await client.post(SEARCH, content=b'{"query": "a"}', headers=plain)).status_code == 200


async def test_deeply_nested_bodies(client: httpx.AsyncClient) -> None:
    """A 422, not a crash, however deep; the deepest allowed value is stored and read."""
    for depth in (101, 400, 1_000, 5_000, 100_000):
        nested = b"[" * depth + b"]" * depth
        body = b'{"query": "a", "filters": {"metadata": {"a": ' + nested + b"}}}"
        problem_of(await client.post(SEARCH, content=body, headers=JSON), 422)
        memory = b'{"text": "deep", "metadata": {"a": ' + nested + b"}}"
        problem_of(await client.post(MEMORIES, content=b'{"memories": [' + memory + b"]}", headers=JSON), 422)
        problem_of(await client.patch(f"{MEMORIES}/kept", content=b'{"metadata":' + nested + b"}", headers=JSON), 422)
        bulk = await client.post(f"{MEMORIES}/bulk", content=memory, headers={"content-type": "application/x-ndjson"})
        assert json.loads(bulk.text)["status"] == "rejected"
    deepest = {"a": json.loads(b"[" * 99 + b"]" * 99)}
    memory_in = {"id": "deepest", "text": "deep", "metadata": deepest}
    assert (await client.post(MEMORIES, json={"memories": [memory_in]})).status_code == 201
    assert (await client.get(f"{MEMORIES}/deepest")).json()["metadata"] == deepest
    assert (await client.get(MEMORIES)).status_code == 200


async def test_the_first_and_the_last_time_come_back(client: httpx.AsyncClient) -> None:
    """In any zone; and they can be searched for."""
    first, last = "0002-01-01T23:59:00+23:59", "9998-12-31T00:00:59.999999-23:59"
    memory = {"id": "old", "text": "An old memory.", "created_at": first, "expires_at": last}
    assert (await client.post(MEMORIES, json={"memories": [memory]})).status_code == 201
    stored = (await client.get(f"{MEMORIES}/old")).json()
    for name, given in (("created_at", first), ("expires_at", last)):
        assert datetime.fromisoformat(stored[name]) == datetime.fromisoformat(given)
    in_utc = {name: stored[name] for name in ("id", "text", "created_at", "expires_at")}
    again = await client.post(MEMORIES, json={"memories": [in_utc]})
    assert again.json()["results"][0]["status"] == "unchanged"
    for as_of, filters, found in (
        (first, {"created_before": last}, ["old"]),
        (last, {"created_after": first}, ["kept"]),
    ):
        answer = await client.post(SEARCH, json={"query": "memory", "as_of": as_of, "filters": filters})
        assert [result["id"] for result in answer.json()["results"]] == found
    pack = await client.post("/v1/namespaces/a/context", json={"query": "memory", "order": "time"})
    assert "An old memory." in pack.json()["context"]


async def test_numbers_in_metadata_come_back(client: httpx.AsyncClient) -> None:
    """The largest and the smallest that can be sent."""
    numbers = [2**64 - 1, -(2**63), 1.7976931348623157e308, 5e-324, 0.1, -0.0, True]
    memory = {"id": "numbers", "text": "numbers", "metadata": {"all": numbers}}
    assert (await client.post(MEMORIES, json={"memories": [memory]})).status_code == 201
    assert (await client.get(f"{MEMORIES}/numbers")).json()["metadata"]["all"] == numbers


async def test_bodies_over_the_limit(database_url: str) -> None:
    """413, whether the length is declared or the body is streamed."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b"x" * 1_024

    async with served(database_url, max_body_bytes=16_384) as client:
        problem_of(await client.post(SEARCH, content=b"x" * 16_385, headers=JSON), 413)
        problem_of(await client.post(SEARCH, content=pieces(), headers=JSON), 413)
        problem_of(await client.post(MEMORIES, content=pieces(), headers=JSON), 413)
