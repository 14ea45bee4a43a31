"""Trivet as used with a framework: in this process, and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import trivet
from tests.serving import on_a_port, settings_for


@pytest.fixture(params=["in process", "over HTTP"])
def client(request: pytest.FixtureRequest, database_url: str) -> Iterator[trivet.Client]:
    """A synchronous client of the namespace `ana`."""
    if request.param == "in process":
        with trivet.open(database_url=database_url, namespace="ana") as opened:
            yield opened
    else:
        with on_a_port(settings_for(database_url)) as url, trivet.Client(url, namespace="ana") as opened:
            yield opened
