"""`trivet keys`."""

from __future__ import annotations

import json

import httpx
import pytest

from retrieval.api.app import create_app
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
