"""Settings from the environment: defaults, types, ranges, and which name a complaint names."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval.errors import SettingsError
from retrieval.settings import Settings


def test_defaults_are_loopback_and_embedded() -> None:
    settings = Settings.from_env({})
    assert (settings.host, settings.port, settings.uses_embedded, settings.api_key) == ("127.0.0.1", 8321, True, None)


def test_values_get_their_types_and_overrides_win() -> None:
    environ = {"TRIVET_PORT": "9000", "TRIVET_LEG_TIMEOUT_S": "0.5", "TRIVET_DATA_DIR": "/tmp/x", "TRIVET_API_KEY": ""}
    settings = Settings.from_env(environ, port=9001, host=None)
    assert (settings.port, settings.leg_timeout_s, settings.data_dir) == (9001, 0.5, Path("/tmp/x"))
    assert (settings.host, settings.api_key) == ("127.0.0.1", None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRIVET_PORT", "many"),
        ("TRIVET_PORT", "70000"),
        ("TRIVET_LEG_TIMEOUT_S", "0"),
        ("TRIVET_LEG_TIMEOUT_S", "nan"),
        ("TRIVET_POOL_SIZE", "1"),
        ("TRIVET_EMBEDDING_PROVIDER", "abacus"),
        ("TRIVET_LOG_LEVEL", "loud"),
        ("TRIVET_DATABASE_URL", "mysql://localhost/x"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings.from_env({name: value})
