"""The entity graph over HTTP."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import networkx as nx
import pytest

from tests.serving import problem_of, served

NAMESPACE = "/v1/namespaces/town"
ENTITIES = f"{NAMESPACE}/entities"

HOSTILE = [
    "]]></data><node id='x'>", 'quo"te\'s & <tags>', "bell\x07 form\x0c escape\x1b", "&#0;&lol;",
    "\ufffe\uffff nonchar", "line\r\nbreak\ttab", "Ünï‮cødé 🦊", "<![CDATA[", "-->",
]  # fmt: skip


BAD: list[tuple[str, str, Any, list[object]]] = [
    ("GET", "/entities?limit=0", None, ["limit"]),
    ("GET", "/entities?limit=1001", None, ["limit"]),
    ("GET", "/entities?q=%20", None, ["q"]),
    ("GET", "/entities?q=a%00", None, ["q"]),
    ("GET", "/entities?cursor=nonsense", None, ["cursor"]),
    ("GET", "/entities?words=perhaps", None, ["words"]),
    ("GET", "/entities?as_of=yesterday", None, ["as_of"]),
    ("GET", "/entities?as_of=2024-03-01T12:00:00", None, ["as_of"]),
    ("GET", "/entities?filters=%7B%22colour%22:1%7D", None, ["filters", "colour"]),
    ("GET", "/entities?name=Ana", None, ["name"]),
    ("GET", "/entities/{ana}?limit=201", None, ["limit"]),
    ("GET", "/entities/{ana}?cursor=1", None, ["cursor"]),
    ("GET", "/entities/{ana}/neighbors?hops=5", None, ["hops"]),
    ("GET", "/entities/{ana}/neighbors?hops=0", None, ["hops"]),
    ("GET", "/entities/{ana}/neighbors?limit=501", None, ["limit"]),
    ("GET", "/paths?source={ana}", None, ["target"]),
    ("GET", "/paths?source={ana}&target={ana}", None, ["target"]),
    ("GET", "/paths?source={ana}&target={bela}&max_hops=5", None, ["max_hops"]),
    ("GET", "/graph?format=dot", None, ["format"]),
    ("GET", "/graph?limit=501", None, ["limit"]),
    ("POST", "/entities/{ana}/aliases", {}, ["add"]),
    ("POST", "/entities/{ana}/aliases", {"add": [""]}, ["add", 0]),
    ("POST", "/entities/{ana}/aliases", {"add": ["x" * 257]}, ["add", 0]),
    ("POST", "/entities/{ana}/aliases", {"add": ["ok", "\u200b"]}, ["add", 1]),
    ("POST", "/entities/{ana}/aliases", {"add": ["x"] * 33}, ["add"]),
    ("POST", "/entities/{ana}/aliases", {"aliases": ["x"]}, ["aliases"]),
    ("POST", "/entities/{ana}/merge", {}, ["into"]),
]


def as_xml_has_it(text: str) -> str:
    """With a replacement character for each that XML 1.0 cannot hold."""
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", text)


def memory(id_: str, text: str, *names: str, **fields: Any) -> dict[str, Any]:
    return {"id": id_, "text": text, "entities": [{"name": name, "type": "person"} for name in names], **fields}


TOWN = [
    memory("m1", "Ana met Bela.", "Ana", "Bela", created_at="2024-03-01T12:00:00Z"),
    memory("m2", "Bela met Cleo.", "Bela", "Cleo", created_at="2024-03-02T12:00:00Z", tags=["walk"]),
    memory("m3", "Cleo left.", "Cleo", created_at="2024-03-03T12:00:00Z"),
]


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with served(database_url) as opened:
        assert (await opened.post(f"{NAMESPACE}/memories", json={"memories": TOWN})).status_code == 201
        yield opened


async def got(client: httpx.AsyncClient, path: str, **params: Any) -> dict[str, Any]:
    answer = await client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def ids(client: httpx.AsyncClient) -> dict[str, str]:
    return {entity["name"]: entity["id"] for entity in (await got(client, ENTITIES))["entities"]}


async def test_entities_are_listed_filtered_and_paged(client: httpx.AsyncClient) -> None:
    listed = await got(client, ENTITIES)
    assert {entity["name"]: entity["mentions"] for entity in listed["entities"]} == {"Ana": 1, "Bela": 2, "Cleo": 2}
    assert listed["next_cursor"] is None
    first = await got(client, ENTITIES, limit=2)
    second = await got(client, ENTITIES, limit=2, cursor=first["next_cursor"])
    assert first["entities"] + second["entities"] == listed["entities"]
    assert [entity["name"] for entity in (await got(client, ENTITIES, q="an"))["entities"]] == ["Ana"]
    assert (await got(client, ENTITIES, type="city"))["entities"] == []
    assert len((await got(client, ENTITIES, type=["city", "person"]))["entities"]) == 3
    walked = await got(client, ENTITIES, filters='{"tags_any": ["walk"]}')
    assert {entity["name"] for entity in walked["entities"]} == {"Bela", "Cleo"}
    then = await got(client, ENTITIES, as_of="2024-03-01T13:00:00Z", include_superseded="true")
    assert {entity["name"] for entity in then["entities"]} == {"Ana", "Bela"}


async def test_a_page_neighbours_and_paths(client: httpx.AsyncClient) -> None:
    known = await ids(client)
    page = await got(client, f"{ENTITIES}/{known['Cleo']}", limit=1)
    assert [memory["id"] for memory in page["memories"]] == ["m3"]
    assert page["last_mentioned_at"] == "2024-03-03T12:00:00Z"
    page = await got(client, f"{ENTITIES}/{known['Cleo']}", cursor=page["next_cursor"])
    assert ([memory["id"] for memory in page["memories"]], page["next_cursor"]) == (["m2"], None)
    near = await got(client, f"{ENTITIES}/{known['Ana']}/neighbors", hops=2)
    assert [(each["name"], each["hops"]) for each in near["neighbors"]] == [("Bela", 1), ("Cleo", 2)]
    found = await got(client, f"{NAMESPACE}/paths", source=known["Ana"], target=known["Cleo"])
    assert [each["name"] for each in found["paths"][0]["entities"]] == ["Ana", "Bela", "Cleo"]
    assert [edge["evidence"] for edge in found["paths"][0]["edges"]] == [["m1"], ["m2"]]


async def test_a_merge_over_http_and_back(client: httpx.AsyncClient) -> None:
    known = await ids(client)
    answer = await client.post(f"{ENTITIES}/{known['Ana']}/merge", json={"into": known["Cleo"]})
    assert answer.status_code == 201, answer.text
    assert answer.json()["entity"] == {"id": known["Cleo"], "name": "Cleo", "type": "person", "mentions": 3}
    undo = f"{NAMESPACE}/merges/{answer.json()['merge_id']}"
    again = await client.post(f"{ENTITIES}/{known['Ana']}/merge", json={"into": known["Cleo"]})
    problem_of(again, 409)
    assert "Ana" not in await ids(client)
    assert (await client.delete(undo)).status_code == 204
    assert await ids(client) == known
    problem_of(await client.delete(undo), 404)


async def test_aliases_over_http(client: httpx.AsyncClient) -> None:
    known = await ids(client)
    aliases = f"{ENTITIES}/{known['Ana']}/aliases"
    assert (await client.post(aliases, json={"add": ["Anita"]})).json() == {"id": known["Ana"], "aliases": ["Anita"]}
    search = {"query": "Anita", "mode": "graph", "max_hops": 0}
    found = (await client.post(f"{NAMESPACE}/search", json=search)).json()
    assert [result["id"] for result in found["results"]] == ["m1"]
    assert (await client.post(aliases, json={"remove": ["Anita"]})).json()["aliases"] == []
    assert problem_of(await client.post(aliases, json={"add": ["Bela"]}), 409)["detail"]
    problem_of(await client.post(aliases, json={"remove": ["Anita"]}), 404)


async def test_bad_requests_name_the_field(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    known = await ids(client)
    for method, path, body, loc in BAD:
        with subtests.test(path=path, body=body):
            url = NAMESPACE + path.format(ana=known["Ana"], bela=known["Bela"])
            answer = await client.request(method, url, **({} if body is None else {"json": body}))
            problem_of(answer, 422)
            assert answer.json()["errors"][0]["loc"] == loc
    assert await ids(client) == known


async def test_what_does_not_exist_is_not_found(client: httpx.AsyncClient) -> None:
    ana, nobody = (await ids(client))["Ana"], "0" * 16
    for path in (
        f"{ENTITIES}/{nobody}", f"{ENTITIES}/{nobody}/neighbors", f"{ENTITIES}/%F0%9F%A6%8A", f"{ENTITIES}/..%2F..",
        f"{NAMESPACE}/paths?source={ana}&target={nobody}", f"{NAMESPACE}/paths?source={nobody}&target={ana}",
        "/v1/namespaces/nowhere/entities", f"/v1/namespaces/nowhere/entities/{ana}", "/v1/namespaces/nowhere/graph",
    ):  # fmt: skip
        problem_of(await client.get(path), 404)
    problem_of(await client.post(f"{ENTITIES}/{nobody}/aliases", json={"add": ["x"]}), 404)
    problem_of(await client.post(f"{ENTITIES}/{ana}/merge", json={"into": nobody}), 404)
    problem_of(await client.post(f"{ENTITIES}/{nobody}/merge", json={"into": ana}), 404)
    problem_of(await client.delete(f"{NAMESPACE}/merges/{nobody}"), 404)
    named = await client.get(f"{NAMESPACE}/paths", params={"source": "Ana", "target": ana})  # a name in place of an id
    assert "no entity with id 'Ana'" in named.json()["detail"]
    named = await client.post(f"{ENTITIES}/{ana}/merge", json={"into": "Bela"})
    assert "no entity with id 'Bela'" in str(problem_of(named, 404)["detail"])


async def test_graphml_of_hostile_names_is_read_by_networkx(client: httpx.AsyncClient) -> None:
    hostile = [
        {
            **memory(f"h{number}", f"Number {number}.", name, "Ana"),
            "relations": [{"source": name, "type": name, "target": "Ana"}],
        }
        for number, name in enumerate(HOSTILE)
    ]
    assert (await client.post(f"{NAMESPACE}/memories", json={"memories": hostile})).status_code == 201
    whole = await got(client, f"{NAMESPACE}/graph", limit=500)
    answer = await client.get(f"{NAMESPACE}/graph", params={"format": "graphml", "limit": 500})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/graphml+xml"
    graph = nx.parse_graphml(answer.content, force_multigraph=True)
    assert graph.number_of_nodes() == len(whole["nodes"])
    assert graph.number_of_edges() == len(whole["edges"])
    named = {node["id"]: node for node in whole["nodes"]}
    for node, attributes in graph.nodes(data=True):
        assert {"name", "type", "mentions", "community", "centrality"} == attributes.keys()
        assert attributes["mentions"] == named[node]["mentions"]
        assert attributes["community"] == named[node]["community"]
    assert named.keys() == set(graph.nodes)
    names = {attributes["name"] for _, attributes in graph.nodes(data=True)}
    assert {name.replace("\r\n", "\n") for name in map(as_xml_has_it, HOSTILE)} <= {
        name.replace("\r\n", "\n") for name in names
    }
    plain = "quo\"te's & <tags>"
    assert {edge["type"] for _, _, edge in graph.edges(data=True)} >= {"met_with", plain}
