"""What the frameworks' modules need."""

from __future__ import annotations

import pytest

from trivet.integrations import extra


def test_a_missing_package_is_said_with_its_extra() -> None:
    missing = r"no_such_package is missing: pip install 'trivet\[langgraph\]'"
    with pytest.raises(ImportError, match=missing) as raised, extra("langgraph"):
        import no_such_package  # type: ignore[import-not-found] # noqa: F401
    assert raised.value.name == "no_such_package"
