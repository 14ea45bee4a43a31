"""Profiles over HTTP and by commands, and their effect on searches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from classifier.intents import Intent
from retrieval.api.app import create_app
from retrieval.engine import Trivet
from retrieval.profiles.profile import DEFAULT, SHIPPED
from tests.command import Cli
from tests.gates import report_on
from tests.serving import client_of, problem_of, settings_for

PROFILE = "/v1/profiles/default"
SUPPORT = "/v1/profiles/support"
QUERY = "Which boats did Ida paint in the harbour?"


class Server:
    """An application in this process: its client, and the engine for what HTTP does not offer."""

    def __init__(self, client: httpx.AsyncClient, engine: Trivet) -> None:
        self.client = client
        self.engine = engine

    async def put(self, url: str, status: int = 201, **parameters: Any) -> Any:
        answer = await self.client.put(url, json=parameters)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def post(self, url: str, body: Any = None) -> Any:
        answer = await self.client.post(url, json=body) if body is not None else await self.client.post(url)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def measured(self, name: str, **parameters: Any) -> int:
        """A new version that passes the gate."""
        version: int = (await self.put(f"/v1/profiles/{name}", **parameters))["profile"]["version"]
        profile = await self.engine.profiles.find(f"{name}@{version}")
        live = (await self.engine.profiles.describe(name)).live
        report = report_on(profile, live=f"{name}@{live}" if live else "default@3")
        await self.engine.profiles.attach_report(name, version, report)
        return version

    async def search(self, **options: Any) -> Any:
        answer = await self.client.post("/v1/namespaces/n/search", json={"query": QUERY, "explain": True, **options})
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
async def server(database_url: str) -> AsyncIterator[Server]:
    app = create_app(settings_for(database_url))
    async with client_of(app) as client:
        yield Server(client, app.state.api.engine)


@pytest.fixture
async def boats(server: Server) -> Server:
    """A namespace `n` of 40 boats."""
    texts = [f"Ida painted boat number {at} in the harbour." for at in range(40)]
    memories = [{"id": f"b{at:02}", "text": text} for at, text in enumerate(texts)]
    await server.client.post("/v1/namespaces/n/memories", json={"memories": memories})
    return server


def recipe(rrf_k: float, fan_out: int, **weights: float) -> dict[str, Any]:
    return {"weights": {"vector": 0.0, "bm25": 0.0, "graph": 0.0, **weights}, "rrf_k": rrf_k, "fan_out": fan_out}


async def test_the_shipped_profile_is_there_and_live(server: Server) -> None:
    listed = (await server.client.get("/v1/profiles")).json()
    assert listed["profiles"] == [
        {"name": profile.name, "live": profile.version, "versions": 1, "shadow": None} for profile in SHIPPED.values()
    ]
    shown = (await server.client.get(PROFILE)).json()
    assert shown["shown"]["profile"] == msgspec.to_builtins(DEFAULT)
    assert [(each["version"], each["by"]) for each in shown["history"]] == [(DEFAULT.version, "shipped")]


async def test_a_version_from_writing_to_rolling_back(server: Server) -> None:
    """Written, it is not live; promoted, it is, for requests without a version; rolled back, the previous one is."""
    written = await server.put(PROFILE, shrink=0.5, note="half")
    assert (written["profile"]["version"], written["live"], written["note"]) == (4, False, "half")
    assert written["profile"]["fixed"] == msgspec.to_builtins(DEFAULT.fixed)
    assert (await server.put(PROFILE, 200, shrink=0.5))["profile"] == written["profile"]
    refused = problem_of(await server.client.post(PROFILE + "/promote"), 409)
    assert "trivet tune" in str(refused["detail"])
    profile = await server.engine.profiles.find("default@4")
    await server.engine.profiles.attach_report("default", 4, report_on(profile))
    promoted = await server.post(PROFILE + "/promote")
    assert promoted["live"] == 4
    assert promoted["shown"]["report"]["passed"]
    shown = (await server.client.get(PROFILE, params={"version": 3})).json()
    assert (shown["live"], shown["shown"]["profile"]["version"], shown["shown"]["live"]) == (4, 3, False)
    assert [(each["version"], each["gate"]) for each in shown["versions"]] == [(4, True), (3, True)]
    assert (await server.post(PROFILE + "/rollback"))["live"] == 3
    assert (await server.post(PROFILE + "/promote", {"version": 4}))["live"] == 4
    assert (await server.post(PROFILE + "/promote", {"version": 3}))["live"] == 3, "shipped versions need no report"


NO_SHADOW = {"name": "default", "live": 3, "shadow": None}


async def test_a_shadow_answers_unseen_and_is_compared(boats: Server) -> None:
    """Callers get the live version's answer; the comparison shows where the candidate ranks differently."""
    client, search = boats.client, "/v1/namespaces/n/search"
    alone = {"weights": {"vector": 0.0, "bm25": 0.0, "graph": 1.0}, "rrf_k": 60, "fan_out": 20}
    intents = ("fact_lookup", "relationship", "preference", "open_ended")
    other: dict[str, Any] = {"fixed": alone, "per_intent": dict.fromkeys(intents, alone), "trust": 0, "rescore": False}
    await boats.put(PROFILE, **other)
    await boats.put(PROFILE + "/shadow", 200, version=4, share=1)
    wanted = {"query": "Which boats did Ida paint?", "top_k": 5}
    totals_ms = []
    for _ in range(3):
        answer = (await client.post(search, json=wanted)).json()
        assert answer["profile"] == "default@3"
        totals_ms.append(answer["timings_ms"]["total"])
        await boats.engine.settle()
    explicit = {**wanted, "weights": {"bm25": 1.0}}  # no profile weighs these, so there is nothing to compare
    await client.post(search, json=explicit)
    await boats.engine.settle()
    compared = (await client.get(PROFILE + "/shadow")).json()["compared"]
    assert (compared["live"], compared["candidate"], compared["n"]) == ("default@3", "default@4", 3)
    assert 0 <= compared["mean_overlap"] <= 1
    assert compared["median_candidate_ms"] > 0
    assert compared["median_live_ms"] < 1.0001 * median(totals_ms), "without the candidate's time, stored with 7 digits"
    await client.delete(PROFILE + "/shadow")
    await client.post(search, json=wanted)
    await boats.engine.settle()
    await boats.put(PROFILE + "/shadow", 200, version=4, share=1)
    assert (await client.get(PROFILE + "/shadow")).json()["compared"]["n"] == 3


async def test_a_shadow_fills_a_pack_like_the_live_version(server: Server) -> None:
    memories = [{"text": f"Boat trip {number} went to island {number}."} for number in range(40)]
    await server.client.post("/v1/namespaces/n/memories", json={"memories": memories})
    await server.put(PROFILE, shrink=0.5)
    await server.put(PROFILE + "/shadow", 200, version=4, share=1)
    await server.client.post("/v1/namespaces/n/context", json={"query": "Which islands did the boat trips go to?"})
    await server.engine.settle()
    assert (await server.client.get(PROFILE + "/shadow")).json()["compared"]["mean_overlap"] == 1


async def test_a_shadow_is_asked_what_was_asked(server: Server) -> None:
    """Of a question as searched for, more misspelt words would be replaced than of the question itself."""
    texts = [
        "wooden bridge",
        "garden lantern",
        *(f"{word} {n}" for word in ("wooden", "bridge", "garden") for n in range(9)),
    ]
    await server.client.post("/v1/namespaces/n/memories", json={"memories": [{"text": text} for text in texts]})
    await server.put(PROFILE, shrink=0.5)
    await server.put(PROFILE + "/shadow", 200, version=4, share=1)
    wanted = {"query": "woodenn bridgge gardenn lantenr", "top_k": 1}
    await server.client.post("/v1/namespaces/n/search", json=wanted)
    await server.engine.settle()
    assert (await server.client.get(PROFILE + "/shadow")).json()["compared"]["mean_overlap"] == 1


async def test_shadows(server: Server) -> None:
    assert (await server.client.get(PROFILE + "/shadow")).json() == {**NO_SHADOW, "compared": None}
    await server.put(PROFILE, shrink=0.5)
    wanted = {"version": 4, "share": 0.25}
    set_up = await server.put(PROFILE + "/shadow", 200, **wanted)
    assert set_up == (await server.client.get(PROFILE + "/shadow")).json()
    assert (set_up["shadow"], set_up["compared"]["n"]) == (wanted, 0)
    assert (await server.client.get("/v1/profiles")).json()["profiles"][0]["shadow"] == wanted
    problem_of(await server.client.put(PROFILE + "/shadow", json={"version": 3, "share": 0.5}), 409)
    assert (await server.client.delete(PROFILE + "/shadow")).status_code == 204
    assert (await server.client.get(PROFILE + "/shadow")).json()["shadow"] is None


async def test_unknown_profiles(server: Server, subtests: pytest.Subtests) -> None:
    for method, path in (
        ("GET", ""), ("POST", "/promote"), ("POST", "/rollback"), ("GET", "/shadow"), ("DELETE", "/shadow"),
    ):  # fmt: skip
        with subtests.test(method=method, path=path):
            problem_of(await server.client.request(method, "/v1/profiles/unheard-of" + path), 404)


async def test_unknown_versions(server: Server) -> None:
    client = server.client
    problem_of(await client.get(PROFILE, params={"version": 9}), 404)
    problem_of(await client.post(PROFILE + "/promote", json={"version": 9}), 404)
    problem_of(await client.put(PROFILE + "/shadow", json={"version": 9, "share": 1}), 404)
    problem_of(await client.post(PROFILE + "/rollback"), 409)


BAD: list[tuple[bytes, list[str]]] = [
    (b'{"shrunk": 1}', ["shrunk"]),
    (b'{"shrink": 2}', ["shrink"]),
    (b'{"report": null}', ["report"]),
    (b'{"fixed": {"rrf_k": 5, "fan_out": 40}}', ["fixed", "weights"]),
    (b'{"fixed": {"weights": {"vector": 1, "bm25": 1}, "rrf_k": 5, "fan_out": 40}}', ["fixed", "weights", "graph"]),
    (b'{"fixed": {"weights": {"vector": 0, "bm25": 0, "graph": 0}, "rrf_k": 5, "fan_out": 40}}', ["fixed", "weights"]),
    (b'{"fixed": {"weights": {"vector": 1, "bm25": 1, "graph": 1}, "rrf_k": 0, "fan_out": 40}}', ["fixed", "rrf_k"]),
    (b'{"fixed": {"weights": {"vector": 1, "bm25": 1, "graph": 1}, "rrf_k": 5, "fan_out": 4}}', ["fixed", "fan_out"]),
    (b'{"per_intent": {}}', ["per_intent", "fact_lookup"]),
    (b'{"models": {"intent": "../secret.onnx"}}', ["models", "intent"]),
    (b'{"models": {"weights": "unheard-of.onnx"}}', ["models", "weights"]),
    (b'{"note": "\\u0000"}', ["note"]),
]


async def test_bad_parameters(server: Server, subtests: pytest.Subtests) -> None:
    """Each is refused with the place of the fault, and nothing is written."""
    headers = {"content-type": "application/json"}
    for body, loc in BAD:
        with subtests.test(body=body):
            found: Any = problem_of(await server.client.put(PROFILE, content=body, headers=headers), 422)
            assert found["errors"][0]["loc"] == loc
    for weight in (b"1e999", b"-1", b"NaN", b"null"):
        with subtests.test(weight=weight):
            weights = b'{"vector": ' + weight + b', "bm25": 1, "graph": 1}'
            body = b'{"fixed": {"weights": ' + weights + b', "rrf_k": 5, "fan_out": 40}}'
            problem_of(await server.client.put(PROFILE, content=body, headers=headers), 422)
    assert len((await server.client.get(PROFILE)).json()["versions"]) == 1


async def test_bad_names_and_versions(server: Server, subtests: pytest.Subtests) -> None:
    client = server.client
    for name in ("a@1", "a%20b", "%00", "%FF", "a" * 101):
        with subtests.test(name=name):
            problem_of(await client.put(f"/v1/profiles/{name}", json={}), 422)
            problem_of(await client.get(f"/v1/profiles/{name}"), 422)
    assert "without a version" in (await client.get("/v1/profiles/support@1")).json()["detail"]
    for query in ("version=0", "version=x", "version=null", "version=", "version=3&version=3", "versions=3"):
        with subtests.test(query=query):
            problem_of(await client.get(f"{PROFILE}?{query}"), 422)
    for share in (0, 1.1, "half"):
        with subtests.test(share=share):
            problem_of(await client.put(PROFILE + "/shadow", json={"version": 3, "share": share}), 422)


async def test_a_namespace_and_a_request_choose(boats: Server) -> None:
    """A request overrides its namespace, a number the live version; an unknown or not live one is a 422."""
    client, settings = boats.client, "/v1/namespaces/n"
    assert (await boats.search())["profile"] == "default@3"
    version = await boats.measured("support", fixed=recipe(7, 50, bm25=1.0), shrink=0)
    assert (version, (await boats.search(profile="support@1"))["profile"]) == (1, "support@1")
    for bad in ("support", "support@2", "unheard-of"):
        assert problem_of(await client.put(settings, json={"profile": bad}), 422)["errors"][0]["loc"] == ["profile"]  # type: ignore[index]
        problem_of(await client.post(settings + "/search", json={"query": QUERY, "profile": bad}), 422)
        problem_of(await client.post("/v1/classify", json={"query": QUERY, "profile": bad}), 422)
    await boats.post(SUPPORT + "/promote")
    await boats.put(settings, 200, profile="support")
    assert (await boats.search())["profile"] == "support@1"
    assert (await boats.search(profile="default"))["profile"] == "default@3"
    for named, profile in (({"namespace": "n"}, "support@1"), ({}, "default@3"), ({"profile": "default"}, "default@3")):
        assert (await boats.post("/v1/classify", {"query": QUERY, **named}))["profile"] == profile
    assert (await boats.post("/v1/classify", {"query": QUERY, "namespace": "n"}))["weights"]["bm25"] == 1.0
    await boats.measured("support", shrink=0.5)
    assert (await boats.search())["profile"] == "support@1"
    await boats.post(SUPPORT + "/promote")
    assert (await boats.search())["profile"] == "support@2"
    await boats.put(settings, 200, profile="support@1")
    assert (await boats.search())["profile"] == "support@1"


async def test_a_profile_has_the_parameters_of_bm25(server: Server) -> None:
    """k1 decides how much repetition counts, b how much length does; null follows the average."""
    boats = {"long": "boat boat boat " + "among the gulls of the grey harbour " * 5, "short": "boat", "other": "a gull"}
    memories = [{"id": name, "text": text} for name, text in boats.items()]
    await server.client.post("/v1/namespaces/n/memories", json={"memories": memories})
    assert (await server.put(SUPPORT, bm25_k1=2, bm25_b=0))["profile"]["bm25_k1"] == 2.0
    assert (await server.put(SUPPORT, bm25_k1=2, bm25_b=1))["profile"]["bm25_b"] == 1.0
    third = (await server.put(SUPPORT, bm25_k1=0, bm25_b=None))["profile"]
    assert (third["bm25_k1"], third["bm25_b"]) == (0.0, None)

    async def ranked(profile: str) -> tuple[list[str], dict[str, Any]]:
        found = await server.search(query="boat", mode="bm25", profile=profile)
        return [each["id"] for each in found["results"]], found["explanation"]["legs"]["bm25"]

    ids, explained = await ranked("support@1")
    assert (ids, explained["k1"], explained["b"]) == (["long", "short"], 2.0, 0.0)
    ids, explained = await ranked("support@2")
    assert (ids, explained["k1"], explained["b"]) == (["short", "long"], 2.0, 1.0)
    explained = (await ranked("default@3"))[1]
    assert (explained["k1"], 0 < explained["b"] < 1) == (1.2, True)
    for name, value in (("bm25_k1", -0.1), ("bm25_b", 1.1), ("bm25_k1", None)):
        refused: Any = problem_of(await server.client.put(SUPPORT, json={name: value}), 422)
        assert refused["errors"][0]["loc"] == [name]


async def test_each_intent_has_its_own_recipe(boats: Server) -> None:
    """Its rrf_k and fan-out are used; a request's rrf_k wins, and `top_k` raises the fan-out if necessary."""
    intents = {
        "fact_lookup": recipe(3, 10, bm25=1.0, vector=1.0),
        "relationship": recipe(90, 30, bm25=1.0, vector=1.0),
        "preference": recipe(20.5, 25, vector=1.0),
        "open_ended": recipe(60, 20, vector=1.0),
    }
    await boats.put(
        SUPPORT, per_intent=intents, fixed=recipe(5, 40, bm25=1.0), trust=0, rescore=False, vector_noise=2, bm25_noise=0
    )
    for intent, wanted in intents.items():
        found = await boats.search(profile="support@1", intent=intent, top_k=5)
        explanation = found["explanation"]
        assert (explanation["rrf_k"], explanation["fan_out"]) == (wanted["rrf_k"], wanted["fan_out"])
        assert explanation["legs"]["vector"]["hits"] == wanted["fan_out"]
        best = found["results"][0]
        places = {leg: 1 / (wanted["rrf_k"] + each["rank"]) for leg, each in best["legs"].items()}
        assert best["fused"]["score"] == pytest.approx(
            sum(found["weights"][leg] * place for leg, place in places.items())
        )
    wide = await boats.search(profile="support@1", intent="fact_lookup", top_k=12, rrf_k=9)
    assert (wide["explanation"]["rrf_k"], wide["explanation"]["fan_out"]) == (9, 22)
    hybrid = await boats.search(profile="support@1", mode="hybrid", top_k=5)
    assert (hybrid["explanation"]["rrf_k"], hybrid["explanation"]["fan_out"]) == (5, 40)
    assert hybrid["weights"] == {"vector": 0.0, "bm25": 1.0, "graph": 0.0}


async def test_weights_alone_leave_the_rest_of_a_recipe_as_it_was(server: Server) -> None:
    """For the fixed recipe and each intent: fields left out come from the live version."""
    live = DEFAULT.per_intent | {Intent.PREFERENCE: replace(DEFAULT.fixed, rrf_k=60.0, fan_out=20)}
    version = await server.measured("support", per_intent=msgspec.to_builtins(live))
    await server.post(SUPPORT + "/promote", {"version": version})
    words = {"vector": 0.25, "bm25": 0.75, "graph": 0.0}
    meaning = {"vector": 0.75, "bm25": 0.25, "graph": 0.0}
    intents = {intent: {"weights": meaning} for intent in Intent} | {Intent.FACT_LOOKUP: {"weights": words, "rrf_k": 9}}
    written = (await server.put(SUPPORT, fixed={"weights": words}, per_intent=intents))["profile"]
    assert written["fixed"] == recipe(5, 40, **words)
    assert written["per_intent"] == {
        "fact_lookup": recipe(9, 40, **words),
        "relationship": recipe(5, 40, **meaning),
        "preference": recipe(60, 20, **meaning),
        "open_ended": recipe(5, 40, **meaning),
    }


async def test_the_profile_says_how_far_the_graph_leg_goes(server: Server) -> None:
    """If the request does not."""
    chain = [("a", "Ann", "Bea"), ("b", "Bea", "Cleo"), ("c", "Cleo", "Dora")]
    memories = [
        {"id": id_, "text": f"{one} met {other}.", "entities": [{"name": one}, {"name": other}],
         "relations": [{"source": one, "type": "met", "target": other}]}
        for id_, one, other in chain
    ]  # fmt: skip
    await server.client.post("/v1/namespaces/n/memories", json={"memories": memories})
    await server.put(SUPPORT, hops=0)

    async def found(**options: Any) -> set[str]:
        answer = await server.search(query="Who is Ann?", mode="graph", profile="support@1", **options)
        return {result["id"] for result in answer["results"]}

    assert await found() == await found(max_hops=0) == {"a"}
    assert len(await found(max_hops=2)) > 1


def test_the_commands(cli: Cli, tmp_path: Path) -> None:
    """A version from a file, the gate's verdict on it, the list, and nothing to roll back to."""
    file = tmp_path / "support.json"
    file.write_text('{"shrink": 0.5, "note": "half"}', "utf-8")

    def run(*arguments: str, **options: Any) -> str:
        output: str = cli("profile", *arguments, **options).output
        return output

    assert run("put", "support", str(file)) == "support@1 written\n"
    assert run("put", "support", "-", stdin=file.read_text("utf-8")) == "support@1 unchanged\n"
    assert "support@1 has no gate report: run trivet tune" in run("promote", "support", status=1)
    assert "nothing to roll back to" in run("rollback", "default", status=1)
    assert run("promote", "default@3") == "default@3 is live\n"
    assert json.loads(run("show", "support@1", "--json"))["shown"]["profile"]["shrink"] == 0.5
    assert "fixed: vector 0.40, bm25 0.30, graph 0.30, rrf_k 5, fan-out 40" in run("show", "default")
    assert run("list") == (
        "default: versions stored: 1, version 3 is live\n"
        "research: versions stored: 1, version 1 is live\nsupport: versions stored: 1, none is live\n"
    )
    run("put", "default", str(file))
    assert run("shadow", "default@4", "--share", "0.1") == "default@4 answers 10% of the queries of default@3\n"
    assert json.loads(run("list", "--json"))["profiles"][0]["shadow"] == {"version": 4, "share": 0.1}
    assert run("shadow", "default", "--off") == "nothing answers beside default@3\n"
    assert run("shadow", "support") == "nothing answers beside support, which has no live version\n"
    file.write_text('{"shrink": 5}', "utf-8")
    assert "shrink: " in run("put", "support", str(file), status=1)
