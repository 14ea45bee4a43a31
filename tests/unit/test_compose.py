"""docker-compose.yml: what keeps the database private and the server guarded."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hatch_build import PACKAGES
from retrieval.api.server import GRACE_S
from tests.processes import ROOT


@pytest.fixture
def services() -> dict[str, Any]:
    """The services by name."""
    parsed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    services: dict[str, Any] = parsed["services"]
    return services


def test_the_database_is_not_published(services: dict[str, Any]) -> None:
    assert "ports" not in services["db"]
    assert services["db"]["image"].startswith("pgvector/pgvector:pg17")


def test_the_database_is_kept_in_a_volume(services: dict[str, Any]) -> None:
    assert services["db"]["volumes"] == ["db:/var/lib/postgresql/data"]


def test_the_server_keeps_its_indexes_in_a_volume(services: dict[str, Any]) -> None:
    cache_dir = services["trivet"]["environment"]["TRIVET_CACHE_DIR"]
    assert services["trivet"]["volumes"] == [f"cache:{cache_dir}"]
    assert f"-o trivet -g trivet {cache_dir}" in (ROOT / "Dockerfile").read_text(), "the server may write there"


def test_no_secret_is_written_down(services: dict[str, Any]) -> None:
    secrets = {
        name: value
        for service in services.values()
        for name, value in service["environment"].items()
        if name.endswith(("PASSWORD", "KEY"))
    }
    assert set(secrets) == {"POSTGRES_PASSWORD", "PGPASSWORD", "TRIVET_API_KEY"}
    assert all(value.startswith("${") and ":?" in value for value in secrets.values())
    assert "@" in services["trivet"]["environment"]["TRIVET_DATABASE_URL"]
    assert ":" not in services["trivet"]["environment"]["TRIVET_DATABASE_URL"].split("//")[1].split("@")[0]


def test_the_server_waits_for_a_healthy_database_and_is_published_on_loopback_only(services: dict[str, Any]) -> None:
    assert services["trivet"]["depends_on"] == {"db": {"condition": "service_healthy"}}
    assert services["trivet"]["ports"] == ["127.0.0.1:8321:8321"]
    assert services["trivet"]["environment"]["TRIVET_HOST"] == "0.0.0.0"
    assert "/health/ready" in " ".join(services["trivet"]["healthcheck"]["test"])


def test_the_server_is_not_killed_while_it_finishes_requests(services: dict[str, Any]) -> None:
    """Docker's own ten seconds would end before those, and before the database is left."""
    assert int(services["trivet"]["stop_grace_period"].removesuffix("s")) > GRACE_S


def test_the_server_is_stopped_while_it_starts(services: dict[str, Any]) -> None:
    """Process 1 ignores a signal for which it has no handler yet; with an init process the server is another."""
    assert services["trivet"]["init"] is True


def test_the_image_has_what_the_wheel_is_built_from() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    built_from = {"models", "trivet", "hatch_build.py", *PACKAGES}
    assert {"pyproject.toml", "requirements-image.lock", *built_from} <= let_in
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert {f"COPY {name} {name}" for name in built_from} <= set(dockerfile.splitlines())
    assert "--require-hashes" in dockerfile
    assert "\nUSER trivet\n" in dockerfile
