"""Traces of requests, as received by a collector."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from opentelemetry.util.re import parse_env_headers

from retrieval.api.otel import tracing_by
from retrieval.errors import SettingsError
from tests.collector import Collector, attributes, collecting
from tests.processes import python, serving, until
from tests.serving import served

MEMORY = "Berenike keeps the spare key under the flowerpot"
QUERY = "Where does Berenike keep the spare key?"
PATH = "/v1/namespaces/home/search"
SEARCH = "POST /v1/namespaces/{ns}/search"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector for the servers that are started."""
    with collecting() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield running


async def ask(client: httpx.AsyncClient) -> dict[str, object]:
    await client.post("/v1/namespaces/home/memories", json={"memories": [{"text": MEMORY}]})
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "x-request-id": "r-17"}
    answer = await client.post(PATH, json={"query": QUERY}, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


async def test_a_request_is_a_span_in_the_trace_of_its_caller(database_url: str, collector: Collector) -> None:
    async with served(database_url) as client:
        answer = await ask(client)
    span = collector.spans[SEARCH]
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert span.kind == span.SPAN_KIND_SERVER
    assert span.end_time_unix_nano > span.start_time_unix_nano
    told = attributes(span)
    timings = {name.rpartition(".")[2]: told.pop(name) for name in sorted(told) if "timings_ms" in name}
    assert timings == answer["timings_ms"]
    assert told == {
        "http.request.method": "POST",
        "http.route": "/v1/namespaces/{ns}/search",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "url.path": PATH,
        "trivet.request_id": "r-17",
        "trivet.search_id": answer["search_id"],
        "trivet.profile": "default@3",
        "trivet.intent": answer["intent"]["label"],  # type: ignore[index]
        "trivet.degraded": [],
    }
    assert collector.resources[0]["service.name"] == "trivet"


async def test_no_header_that_cannot_be_read_is_written_to_the_log(
    database_url: str, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the key, anyone could fill it with such headers."""
    trace = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "Berenike\x7f=flowerpot"}
    async with served(database_url, api_key="the-key-of-this-server") as client:
        for headers in ({"baggage": "user=Berenike," * 1_000}, {"baggage": "no key=Berenike"}, trace):
            assert (await client.get("/v1/namespaces", headers=headers)).status_code == 401
    assert "GET" in collector.spans
    assert "erenike" not in caplog.text


async def test_no_text_and_no_key_leaves_the_server(database_url: str, collector: Collector) -> None:
    async with served(database_url, api_key="the-key-of-this-server") as client:
        client.headers["authorization"] = "Bearer the-key-of-this-server"
        await ask(client)
        pack = {"query": QUERY, "messages": [{"role": "user", "content": QUERY}]}
        assert (await client.post("/v1/namespaces/home/context", json=pack)).status_code == 200
        found = (await client.get("/v1/namespaces/home/memories", params={"limit": 1})).json()
        path = f"/v1/namespaces/home/memories/{found['memories'][0]['id']}"
        assert (await client.patch(path, json={"text": f"{MEMORY} now"})).status_code == 200
        assert (await client.post(PATH, json={"query": QUERY, "mode": "flowerpot"})).status_code == 422
    assert len(collector.spans) == 5
    sent = b"".join(collector.bodies)
    assert not [word for word in (b"erenike", b"flowerpot", b"the-key-of", b"limit=") if word in sent]


async def test_a_failure_is_an_error_and_a_refusal_is_none(
    database_url: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("the flowerpot broke")

    async with served(database_url) as client:
        monkeypatch.setattr("retrieval.engine.Trivet.classify", fail)
        assert (await client.post("/v1/classify", json={"query": "x"})).status_code == 500
        assert (await client.get("/v1/namespaces/none")).status_code == 404
        assert (await client.get("/v1/secrets/none")).status_code == 404
        assert (await client.request("SPY", "/v1/namespaces")).status_code == 405
        assert (await client.get("/v1/namespaces", headers={"host": "evil.example"})).status_code == 421
    failed = collector.spans["POST /v1/classify"]
    assert failed.status.code == failed.status.STATUS_CODE_ERROR
    assert attributes(failed)["error.type"] == "500"
    refused = collector.spans["GET /v1/namespaces/{ns}"]
    assert refused.status.code == refused.status.STATUS_CODE_UNSET
    assert "error.type" not in attributes(refused)
    assert attributes(collector.spans["GET"])["http.response.status_code"] == 421  # it was not routed
    assert attributes(collector.spans["HTTP"])["http.request.method"] == "_OTHER"
    assert b"flowerpot" not in b"".join(collector.bodies)


async def test_probes_are_not_traced(database_url: str, collector: Collector) -> None:
    async with served(database_url) as client:  # has asked /health/ready
        for path in ("/health/live", "/metrics", "/version", "/"):
            assert (await client.get(path)).status_code == 200
            assert (await client.head(path)).status_code in (200, 405)
    assert collector.bodies == []


async def test_the_sdks_variables_hold(
    database_url: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=recall,deployment.environment.name=test")
    async with served(database_url) as client:
        await ask(client)
    assert collector.resources[0]["service.name"] == "recall"
    assert collector.resources[0]["deployment.environment.name"] == "test"
    collector.bodies.clear()
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    async with served(database_url) as client:
        await ask(client)
    assert list(collector.spans) == [SEARCH]  # whose caller traces


async def test_a_collector_that_is_away_is_one_line_in_the_log_for_each_batch(
    database_url: str, collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    collector.is_down = True
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")  # one batch, however long the test takes
    async with served(database_url) as client:
        for _ in range(20):
            await ask(client)
    said = [record for record in caplog.records if record.name.startswith("opentelemetry")]
    assert [record.levelno for record in said] == [logging.ERROR]


def test_each_worker_sends_its_spans(collector: Collector, data_dir: Path) -> None:
    with serving(TRIVET_DATA_DIR=str(data_dir), OTEL_BSP_SCHEDULE_DELAY="50", workers=2) as server:

        def senders() -> set[str]:
            httpx.get(f"{server.url}/v1/namespaces")
            return {one["service.instance.id"] for one in collector.resources}

        until(lambda: len(senders()) == 2)


def test_without_the_variables_nothing_of_it_is_imported() -> None:
    program = """
import sys
from retrieval.api.app import create_app
from retrieval.settings import Settings
create_app(Settings())
assert not {"retrieval.api.tracing", "opentelemetry.sdk", "opentelemetry.trace"} & sys.modules.keys()
"""
    python("-c", program)


OFF = [
    {},
    {"OTEL_SERVICE_NAME": "recall"},
    {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
    {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"},
    {"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"},
]


@pytest.mark.parametrize("environ", OFF)
def test_it_is_off(environ: dict[str, str]) -> None:
    assert tracing_by(environ) is None


@pytest.mark.parametrize("exporters", ["console", "otlp", "otlp, console"])
def test_an_exporter_is_enough(exporters: str) -> None:
    assert tracing_by({"OTEL_TRACES_EXPORTER": exporters}) is not None


WRONG = [
    ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER must be otlp, console, none .* not 'zipkin'"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "key@collector:4317"}, "OTEL_EXPORTER_OTLP_ENDPOINT must start with http://"),
    (
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
        "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf.*not 'grpc'",
    ),
    *(
        ({"OTEL_TRACES_EXPORTER": "otlp", name: headers}, f"{name} must be NAME=VALUE")
        for name in ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
        for headers in ("authorization: key@", "a=b,api key=key@", "key@", 'a="key@"', "a=kéy@")
    ),
]


@pytest.mark.parametrize(("environ", "said"), WRONG)
def test_what_cannot_be_used_is_refused_at_the_start(environ: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said) as refused:
        tracing_by(environ)
    assert "key@" not in str(refused.value)


@pytest.mark.parametrize("headers", ["", "a=b", " a = b , authorization=Bearer%20x", "authorization=Bearer x==,,c="])
def test_headers_that_the_sdk_takes_are_let_through(headers: str, caplog: pytest.LogCaptureFixture) -> None:
    assert tracing_by({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_HEADERS": headers}) is not None
    assert len(parse_env_headers(headers, liberal=True)) == headers.count("=") - 2 * headers.count("==")
    assert caplog.text == ""


def test_a_value_that_the_sdk_refuses_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_PROPAGATORS", "pigeon")
    for module in ("opentelemetry.propagate", "retrieval.api.tracing"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(SettingsError, match=r"OTEL_\*: Propagator pigeon not found"):
        tracing_by({"OTEL_TRACES_EXPORTER": "otlp"})


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "retrieval.api.tracing", raising=False)
    with pytest.raises(SettingsError, match=r"pip install 'trivet\[otel\]'"):
        tracing_by({"OTEL_TRACES_EXPORTER": "otlp"})
