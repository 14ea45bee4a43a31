"""The server process: where it may listen, how it starts and stops, several workers."""

from __future__ import annotations

import http.client
import logging
import re
import signal
import socket
import time
from contextlib import closing
from urllib.parse import urlsplit

import httpx
import pytest
from litestar import Litestar

from retrieval.api.app import create_app
from retrieval.api.server import as_environment, check_exposure, listening, run
from retrieval.engine import Trivet
from retrieval.errors import SettingsError
from retrieval.settings import Settings
from tests.processes import PATIENCE_S, python, serving, until
from tests.serving import on_a_port, settings_for


@pytest.mark.parametrize(
    ("workers", "stop"),
    [(1, signal.SIGINT), (1, signal.SIGTERM), (1, signal.SIGHUP), (2, signal.SIGINT), (2, signal.SIGTERM)],
)
def test_start_serve_stop(database_url: str, workers: int, stop: signal.Signals) -> None:
    """It serves and ends with status 0 at each signal."""
    if signal.getsignal(stop) == signal.SIG_IGN:
        pytest.skip("the tests were started by nohup")
    with serving(TRIVET_DATABASE_URL=database_url, workers=workers) as server:
        url = f"{server.url}/v1/namespaces/a/memories"
        assert httpx.post(url, json={"memories": [{"id": "m1", "text": "Hello."}]}).status_code == 201
        for _ in range(4):
            assert httpx.get(f"{url}/m1").json()["text"] == "Hello."
        server.process.send_signal(stop)
        assert server.process.wait(PATIENCE_S) == 0
        assert "Traceback" not in server.said()


def test_ctrl_c_while_it_starts_is_no_failure(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupted(settings: Settings, engine: Trivet) -> Litestar:
        signal.raise_signal(signal.SIGINT)
        return create_app(settings, engine)

    monkeypatch.setattr("retrieval.api.app.create_app", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(Settings(database_url=database_url, port=0))
    assert [each.message for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_a_request_that_a_stop_cuts_off_leaves_no_traceback(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("retrieval.api.server.GRACE_S", 0)
    head = "POST /v1/namespaces/a/memories HTTP/1.1\r\nHost: localhost\r\n"
    body = "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
    with on_a_port(settings_for(database_url)) as url:
        target = httpx.URL(url)
        line = socket.create_connection((target.host, target.port), timeout=PATIENCE_S)
        line.sendall((head + body).encode())
        assert line.recv(100).startswith(b"HTTP/1.1 100 ")
    with line:
        assert line.recv(100).startswith(b"HTTP/1.1 503 ")
    assert "Cancel 1 running task" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_spawned_worker_logs_what_a_forked_one_does_and_as_it_does() -> None:
    """Nothing of a request that a stop cuts off, and no line for each lost connection; it inherits no logger."""
    code = """
import asyncio, logging
from retrieval.api.server import app_from_env
app_from_env()
logging.getLogger("uvicorn.error").error("cut off", exc_info=asyncio.CancelledError())
logging.getLogger("psycopg.pool").warning("lost")
logging.getLogger("uvicorn.error").warning("told")
"""
    assert python("-c", code).stderr == "WARNING: told\n"


def test_it_accepts_no_connection_while_it_finishes_requests(database_url: str) -> None:
    """None waits for workers that have stopped accepting: a proxy can turn to another server at once."""
    with serving(TRIVET_DATABASE_URL=database_url, workers=2) as server:
        target = httpx.URL(server.url)
        address = (target.host, target.port or 0)

        def is_refused() -> bool:
            try:
                socket.create_connection(address, PATIENCE_S).close()
            except ConnectionRefusedError:
                return True
            return False

        with socket.create_connection(address, PATIENCE_S) as wire:
            head = f"POST /v1/namespaces/a/memories/bulk HTTP/1.1\r\nHost: {target.host}\r\nContent-Length: 19\r\n"
            wire.sendall(head.encode() + b"Content-Type: application/x-ndjson\r\nExpect: 100-continue\r\n\r\n")
            assert wire.recv(1_000).startswith(b"HTTP/1.1 100")
            server.process.terminate()
            until(is_refused)
            wire.sendall(b'{"text": "A boat."}')
            assert wire.recv(1_000).startswith(b"HTTP/1.1 200")
        assert server.process.wait(PATIENCE_S) == 0


def test_a_connection_is_kept_longer_than_clients_keep_it(database_url: str) -> None:
    """Five seconds are common in clients; a request at that very moment would be lost."""
    with (
        serving(TRIVET_DATABASE_URL=database_url) as server,
        closing(http.client.HTTPConnection(urlsplit(server.url).netloc)) as connection,
    ):
        connection.auto_open = 0  # a closed one would be opened again
        connection.connect()
        for pause_s in (6.0, 0.0):
            connection.request("GET", "/health/live")
            assert connection.getresponse().read()
            time.sleep(pause_s)


def test_a_scrape_sees_all_workers(database_url: str) -> None:
    """Whichever of them answers it."""
    with serving(TRIVET_DATABASE_URL=database_url, workers=2) as server:
        url = server.url
        httpx.post(f"{url}/v1/namespaces/a/memories", json={"memories": [{"text": "Boats."}]})
        for _ in range(16):  # each over a new connection, which either worker may accept
            assert httpx.post(f"{url}/v1/namespaces/a/search", json={"query": "boats"}).status_code == 200
        route = 'method="POST",route="/v1/namespaces/{ns}/search",status="200"'
        counted = f"trivet_http_request_seconds_count{{{route}}} 16.0"
        until(lambda: counted in httpx.get(f"{url}/metrics").text)  # a request counts once its answer is sent
        for line in (
            counted,
            'trivet_stage_seconds_count{stage="total"} 16.0',
            'trivet_embedding_cache_total{outcome="hit"}',
            'trivet_degraded_total{leg="graph"}',
        ):
            assert all(line in httpx.get(f"{url}/metrics").text for _ in range(8)), line
        server.process.terminate()  # it removes the folder of the counts
        assert server.process.wait(PATIENCE_S) == 0


def test_public_addresses_need_a_key() -> None:
    """Only this machine is served without a key."""
    for host in ("0.0.0.0", "::"):
        with pytest.raises(SettingsError, match="TRIVET_API_KEY"):
            check_exposure(Settings(host=host))
        check_exposure(Settings(host=host, api_key="k"))
    for host in ("127.0.0.1", "::1", "localhost"):
        check_exposure(Settings(host=host))


def test_a_taken_port_is_named() -> None:
    """The error says which address is in use."""
    with listening(Settings(port=0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(SettingsError, match=f"127.0.0.1:{port}"), listening(Settings(port=port)):
            pass


def test_an_unknown_host_is_named() -> None:
    """So does one for a host that does not exist."""
    with pytest.raises(SettingsError, match=r"no-such-host\.invalid"):
        check_exposure(Settings(host="no-such-host.invalid"))


@pytest.mark.parametrize("host", ["", "127.0.0..1"])
def test_what_is_no_host_is_quoted(host: str) -> None:
    """With a key or without."""
    with pytest.raises(SettingsError, match=re.escape(f"{host!r}")):
        check_exposure(Settings(host=host))
    with pytest.raises(SettingsError, match=re.escape(f"{host!r}")), listening(Settings(host=host, api_key="k")):
        pass


def test_the_environment_carries_the_settings() -> None:
    """A worker reads its parent's settings from the environment."""
    settings = Settings(
        api_key="k",
        allowed_hosts="a.example, *.b.example",
        port=9_000,
        leg_timeout_s=1.5,
        database_url="postgresql://a@b/c",
    )
    assert Settings.from_env(as_environment(settings)) == settings
