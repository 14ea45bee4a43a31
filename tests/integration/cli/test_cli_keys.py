"""`trivet keys`."""

from __future__ import annotations

import json
import time

import httpx
import jwt
import pytest

from retrieval.api.app import create_app
from retrieval.api.tokens import TokenClaims, token_of
from retrieval.engine import Trivet
from tests.command import NOWHERE
from tests.command import trivet as command
from tests.serving import client_of, settings_for


def new_key() -> str:
    return command(NOWHERE, "keys").stdout.strip()


def test_a_key_alone_is_on_standard_output_and_no_two_are_alike() -> None:
    result = command(NOWHERE, "keys")
    assert "TRIVET_API_KEY" in result.stderr
    assert result.stdout.count("\n") == 1
    assert len(new_key()) == 43  # 32 bytes
    assert new_key() != new_key()
    printed = json.loads(command(NOWHERE, "keys", "--json").output)
    assert (printed["variable"], len(printed["key"])) == ("TRIVET_API_KEY", 43)


@pytest.mark.parametrize("is_right", [True, False])
async def test_it_opens_a_server_that_was_started_with_it(trivet: Trivet, database_url: str, is_right: bool) -> None:
    key = new_key()
    async with client_of(create_app(settings_for(database_url, api_key=key), trivet)) as client:
        sent = key if is_right else new_key()
        answer: httpx.Response = await client.get("/v1/namespaces", headers={"authorization": f"Bearer {sent}"})
    assert answer.status_code == (200 if is_right else 401)


def test_a_token_is_signed_with_the_servers_key() -> None:
    key = new_key()
    token = command(NOWHERE, "keys", "-n", "user:ana", "-n", "team", TRIVET_API_KEY=key).stdout.strip()
    assert token_of(token, key) == TokenClaims(namespaces=["user:ana", "team"], access="write")
    arguments = ("-n", "a", "--read-only", "--days", "2", "--json")
    printed = json.loads(command(NOWHERE, "keys", *arguments, TRIVET_API_KEY=key).output)
    assert token_of(printed["token"], key) == TokenClaims(namespaces=["a"], access="read")
    scrapes = command(NOWHERE, "keys", "--metrics", TRIVET_API_KEY=key).stdout.strip()
    assert token_of(scrapes, key) == TokenClaims(access="metrics")
    expires = jwt.decode(printed["token"], key, algorithms=["HS256"])["exp"]
    assert 0 <= time.time() + 2 * 86_400 - expires < 3_600


@pytest.mark.parametrize(
    ("arguments", "key", "status", "said"),
    [
        (["-n", "a"], "", 2, "Set TRIVET_API_KEY"),
        (["-n", "a"], "too-short", 1, "at least 32 bytes"),
        (["-n", "a b"], "k" * 32, 1, "namespace: must be 1 to 128 letters"),
        (["--read-only"], "k" * 32, 2, "name a --namespace"),
        (["--days", "1"], "k" * 32, 2, "name a --namespace"),
        (["--metrics", "-n", "a"], "k" * 32, 2, "--metrics opens no namespace"),
        (["--metrics", "--read-only"], "k" * 32, 2, "--metrics opens no namespace"),
        *((["-n", "a", "--days", days], "k" * 32, 2, "--days must be") for days in ("0", "-1", "40000", "inf", "nan")),
    ],
)
def test_a_token_that_cannot_be_made(arguments: list[str], key: str, status: int, said: str) -> None:
    assert said in command(NOWHERE, "keys", *arguments, status=status, TRIVET_API_KEY=key).output
