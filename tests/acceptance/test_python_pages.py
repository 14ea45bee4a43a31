"""The Python of README.md, docs/python.md and docs/frameworks.md does what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.processes import new_data_dir

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/frameworks.md"])
def test_every_block_runs(page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, on one embedded database."""
    blocks = _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    with new_data_dir() as folder:
        monkeypatch.setenv("TRIVET_DATA_DIR", str(folder))
        names: dict[str, object] = {}
        for block in blocks:
            exec(compile(block, page, "exec"), names)  # noqa: S102
    printed = capsys.readouterr().out
    assert "Ines" in printed
