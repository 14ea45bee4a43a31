"""The server process: where it may listen, how it starts and stops, several workers."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import httpx
import pytest

from retrieval.api.server import as_environment, check_exposure, listening
from retrieval.errors import SettingsError
from retrieval.settings import Settings
from tests.serving import settings_for

_SERVE = """
import sys
from retrieval.api.server import run
from retrieval.settings import Settings
run(Settings.from_env(), workers=int(sys.argv[1]))
"""
START_TIMEOUT_S = 300


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _process(settings: Settings, workers: int) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, **as_environment(settings)}
    command = [sys.executable, "-c", _SERVE, str(workers)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=300)


def _wait_until_ready(port: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError(f"the server did not become ready: {process.poll()}")


@pytest.mark.parametrize(
    ("workers", "stop"),
    [(1, signal.SIGINT), (1, signal.SIGTERM), (1, signal.SIGHUP), (2, signal.SIGINT), (2, signal.SIGTERM)],
)
def test_start_serve_stop(database_url: str, workers: int, stop: signal.Signals) -> None:
    """It serves and ends with status 0 at each signal."""
    if signal.getsignal(stop) == signal.SIG_IGN:
        pytest.skip("the tests were started by nohup")
    port = _free_port()
    with _process(settings_for(database_url, port=port), workers) as process:
        _wait_until_ready(port, process)
        url = f"http://127.0.0.1:{port}/v1/namespaces/a/memories"
        assert httpx.post(url, json={"memories": [{"id": "m1", "text": "Hello."}]}).status_code == 201
        for _ in range(4):
            assert httpx.get(f"{url}/m1").json()["text"] == "Hello."
        process.send_signal(stop)
        assert process.wait(timeout=300) == 0


def test_a_connection_is_kept_longer_than_clients_keep_it(database_url: str) -> None:
    """Five seconds are usual; a request at that very moment would be lost."""
    port = _free_port()
    with _process(settings_for(database_url, port=port), 1) as process:
        _wait_until_ready(port, process)
        with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            connection.auto_open = 0  # a closed one would be opened again
            connection.connect()
            for pause_s in (6.0, 0.0):
                connection.request("GET", "/health/live")
                assert connection.getresponse().read()
                time.sleep(pause_s)


def test_a_scrape_sees_all_workers(database_url: str) -> None:
    """Whichever of them answers it."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    with _process(settings_for(database_url, port=port), workers=2) as process:
        _wait_until_ready(port, process)
        httpx.post(f"{url}/v1/namespaces/a/memories", json={"memories": [{"text": "Boats."}]})
        for _ in range(16):  # each over a connection of its own, which either worker may take
            assert httpx.post(f"{url}/v1/namespaces/a/search", json={"query": "boats"}).status_code == 200
        route = 'method="POST",route="/v1/namespaces/{ns}/search",status="200"'
        for line in (
            f"trivet_http_request_seconds_count{{{route}}} 16.0",
            'trivet_stage_seconds_count{stage="total"} 16.0',
            'trivet_embedding_cache_total{outcome="hit"}',
        ):
            assert all(line in httpx.get(f"{url}/metrics").text for _ in range(8)), line
        process.terminate()  # it takes the folder of the counts away
        assert process.wait(timeout=300) == 0


def test_public_addresses_need_a_key() -> None:
    """Others than this machine are let in only with a key."""
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
    """So does one for a host that there is not."""
    with pytest.raises(SettingsError, match=r"no-such-host\.invalid"):
        check_exposure(Settings(host="no-such-host.invalid"))


def test_the_environment_carries_the_settings() -> None:
    """A worker reads from its environment what its parent was given."""
    settings = Settings(
        api_key="k",
        allowed_hosts="a.example, *.b.example",
        port=9_000,
        leg_timeout_s=1.5,
        database_url="postgresql://a@b/c",
    )
    assert Settings.from_env(as_environment(settings)) == settings
