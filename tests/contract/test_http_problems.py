"""Errors, keys and request ids of every answer."""

from __future__ import annotations

import errno
import hmac
import logging
import re
from unittest.mock import AsyncMock, Mock

import httpx
import pytest

from retrieval.api import problems, rate_limit
from retrieval.api.app import create_app
from retrieval.errors import AllLegsFailed, Conflict, FusionError, InvalidInput, NotFound, StoreUnavailable, TrivetError
from retrieval.settings import Settings
from tests.serving import client_of, problem_of, served, settings_for, until_ready


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidInput("must be 1 or more", loc=("top_k",)), 422),
        (FusionError("a repeated id"), 422),
        (NotFound("there is no namespace 'a'"), 404),
        (Conflict("the language is fixed"), 409),
        (AllLegsFailed("no leg answered"), 503),
        (StoreUnavailable("cannot reach the database"), 503),
        (TrivetError("something of our own"), 500),
        (ZeroDivisionError("division by zero"), 500),
    ],
)
def test_status_of_each_error(error: Exception, status: int) -> None:
    """The table applies to subclasses; any other error is a 500 without its cause."""
    found = problems.describe(error)
    assert found.status_code == status
    assert (str(error) in found.detail) == (status != 500)


def test_what_the_machine_has_not_enough_of_is_told_without_the_files_name() -> None:
    """It is temporary, unlike a defect of ours such as a missing file."""
    found = problems.describe(OSError(errno.ENOSPC, "No space left on device", "/var/tmp/held"))
    assert (found.status_code, found.detail.endswith(": No space left on device")) == (503, True)
    assert problems.describe(FileNotFoundError(errno.ENOENT, "No such file", "/var/tmp/held")).status_code == 500


def test_secrets_are_cut_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Neither the key nor the database's password is logged with an unexpected error."""
    settings = Settings(database_url="postgresql://ann:p%40ss-word@db/notes", api_key="key-of-mine")
    error = RuntimeError("postgresql://ann:p%40ss-word@db/notes refused p@ss-word with key-of-mine")
    with caplog.at_level(logging.ERROR):
        problems.log_failure(error, "id-1", settings.secrets)
    assert "RuntimeError" in caplog.text
    assert "id-1" in caplog.text
    assert not re.search("ss-word|key-of-mine", caplog.text)


async def test_routes_that_do_not_exist(client: httpx.AsyncClient) -> None:
    """404 and 405 are problems too; 405 names the methods that there are."""
    problem_of(await client.get("/nothing/here"), 404)
    problem_of(await client.get("/v1/namespaces/unheard-of"), 404)
    for path, allowed in (("/health/live", "GET, HEAD, OPTIONS"), ("/v1/classify", "OPTIONS, POST")):
        refused = await client.put(path)
        problem_of(refused, 405)
        assert refused.headers["allow"] == allowed


async def test_options(client: httpx.AsyncClient) -> None:
    """OPTIONS names all methods of a path."""
    for path, allowed in (
        ("/v1/namespaces/a", "DELETE, GET, HEAD, OPTIONS, PUT"),
        ("/v1/namespaces/a/memories", "GET, HEAD, OPTIONS, POST"),
        ("/v1/namespaces/a/memories/m1", "DELETE, GET, HEAD, OPTIONS, PATCH"),
        ("/v1/classify", "OPTIONS, POST"),
    ):
        answer = await client.options(path)
        assert (answer.status_code, answer.headers["allow"]) == (204, allowed)


async def test_an_unexpected_error(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A 500 without its cause, which the log has under the request's id. So do 503s, by name."""
    for error, status in ((ZeroDivisionError("of all things"), 500), (StoreUnavailable("the database is away"), 503)):
        app = create_app(settings_for(database_url))
        async with client_of(app) as client:
            app.state.api.opened = Mock(classify=AsyncMock(side_effect=error))
            caplog.clear()
            answer = await client.post("/v1/classify", json={"query": "a"})
        detail = str(problem_of(answer, status)["detail"])
        assert (str(error) in detail) == (status == 503)
        assert type(error).__name__ in caplog.text
        assert answer.headers["x-request-id"] in caplog.text


async def test_not_ready(database_url: str) -> None:
    """503 that names the part which is missing."""
    app = create_app(settings_for(database_url))
    async with client_of(app) as client:
        checks = {"database": True, "migrations": False, "models": True, "namespaces": True}
        app.state.api.opened = Mock(readiness=AsyncMock(return_value=checks))
        answer = await client.get("/health/ready")
    problem = problem_of(answer, 503)
    assert problem["errors"] == [{"loc": ["migrations"], "msg": "not ready"}]
    assert problem["detail"] == "Not ready: migrations; `trivet doctor` says why"


async def test_request_ids(client: httpx.AsyncClient) -> None:
    """Every answer has one: the caller's if it is plain, else a new one."""
    for path in ("/health/live", "/nothing/here", "/v1/namespaces/unheard-of"):
        assert len((await client.get(path)).headers["x-request-id"]) >= 16
    assert (await client.get("/version", headers={"x-request-id": "mine-1"})).headers["x-request-id"] == "mine-1"
    strange = await client.get("/version", headers={"x-request-id": "a b" * 100})
    assert strange.headers["x-request-id"] != "a b" * 100


async def test_the_key(database_url: str) -> None:
    """Health and version are open; all else answers 401 with a challenge unless the key is right."""
    async with served(database_url, api_key="open-sesame") as client:
        for path in ("/health/live", "/version"):
            assert (await client.get(path)).status_code == 200
        await until_ready(client)
        for path in ("/metrics", "/docs", "/openapi.json", "/v1/namespaces", "/nothing/here"):
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic open-sesame"}):
                refused = await client.get(path, headers=headers)
                told = str(problem_of(refused, 401)["detail"])
                assert ("not the server's key" in told) == (headers.get("authorization") == "Bearer wrong")
                assert refused.headers["www-authenticate"].startswith("Bearer")
        right = {"authorization": "bearer open-sesame"}
        for path in ("/metrics", "/docs", "/openapi.json", "/v1/namespaces"):
            assert (await client.get(path, headers=right)).status_code == 200


async def test_an_address_that_sends_too_much_is_told_when_to_come_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong keys and unknown paths count; probes, other addresses and refused requests do not."""
    now_s = 100.0
    monkeypatch.setattr(rate_limit, "time", Mock(monotonic_ns=lambda: int(now_s * 1e9)))
    app = create_app(settings_for(database_url, rate_limit=3, api_key="open-sesame"))
    right = {"authorization": "Bearer open-sesame"}
    elsewhere = httpx.ASGITransport(app=app, client=("10.0.0.2", 1))  # type: ignore[arg-type]
    async with client_of(app) as client, httpx.AsyncClient(transport=elsewhere, base_url="http://localhost") as other:
        assert [(await client.get(path)).status_code for path in ("/v1/namespaces", "/nothing/here")] == [401, 401]
        documented = (await client.get("/openapi.json", headers=right)).json()["paths"]
        assert "429" in documented["/v1/classify"]["post"]["responses"]
        assert "429" not in documented["/version"]["get"]["responses"]
        for seconds, wait_s in ((0, "20"), (5.5, "15"), (19.5, "1")):
            now_s = 100.0 + seconds
            refused = await client.get("/v1/namespaces", headers=right)
            problem_of(refused, 429)
            assert refused.headers["retry-after"] == wait_s
        assert (await client.get("/version")).status_code == 200
        assert (await other.get("/v1/namespaces", headers=right)).status_code == 200
        for seconds, statuses in ((20, [200, 429]), (59, [200, 429]), (500, [200, 200, 200, 429])):
            now_s = 100.0 + seconds
            answers = [await client.get("/v1/namespaces", headers=right) for _ in statuses]
            assert [answer.status_code for answer in answers] == statuses


async def test_an_ipv6_network_is_one_address(database_url: str) -> None:
    """A host may send from any of 2**64; an IPv4 address of a socket for both kinds is itself."""
    app = create_app(settings_for(database_url, rate_limit=1))

    async def status(address: str) -> int:
        transport = httpx.ASGITransport(app=app, client=(address, 1))  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get("/v1/namespaces")).status_code

    async with client_of(app):
        addresses = ("2001:db8::1", "2001:db8::2:1", "2001:db8:0:1::1", "fe80::1%eth0", "::ffff:10.0.0.1")
        assert [await status(address) for address in addresses] == [200, 429, 200, 200, 200]
        assert [await status(address) for address in ("10.0.0.1", "::ffff:10.0.0.2", "fe80::2%eth0")] == [429, 200, 429]


async def test_the_key_is_compared_in_time_that_says_nothing_of_it(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constant time cannot be observed from outside, only that this function is called."""
    compared: list[tuple[bytes, bytes]] = []

    def noting(given: bytes, right: bytes) -> bool:
        compared.append((given, right))
        return given == right

    monkeypatch.setattr(hmac, "compare_digest", noting)
    async with served(database_url, api_key="open-sesame") as client:
        for given, status in (("open-sesamf", 401), ("open-sesame", 200)):
            answer = await client.get("/v1/namespaces", headers={"authorization": f"Bearer {given}"})
            assert answer.status_code == status
    assert compared == [(b"open-sesamf", b"open-sesame"), (b"open-sesame", b"open-sesame")]


async def test_no_other_origin_may_read(client: httpx.AsyncClient) -> None:
    """No CORS header unless the settings ask for it."""
    answer = await client.get("/version", headers={"origin": "https://elsewhere.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
