"""Writes `_client.py`, the synchronous client, from `_async_client.py`: `python trivet/generate.py`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import unasync

FOLDER = Path(__file__).parent
SOURCE, TARGET = "_async_client.py", "_client.py"
_REPLACED = {
    "AsyncBaseTransport": "BaseTransport",
    "AsyncClient": "Client",
    "aclose": "close",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "asyncio": "time",
}
_DOCSTRING = '"""The synchronous client, made from `_async_client.py` by `python trivet/generate.py`; edit that one."""'


def synchronous() -> str:
    """The synchronous client's source."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "sync", SOURCE)
        rule = unasync.Rule(fromdir=f"{FOLDER}/", todir=f"{made.parent}/", additional_replacements=_REPLACED)
        unasync.unasync_files([str(FOLDER / SOURCE)], [rule])
        _, _, code = made.read_text(encoding="utf-8").partition("\n")
    ruff = [sys.executable, "-m", "ruff"]
    text = f"{_DOCSTRING}\n{code}"
    for command in (["check", "--fix", "--unsafe-fixes", "--quiet"], ["format", "--quiet"]):
        done = subprocess.run(
            [*ruff, *command, "--stdin-filename", str(FOLDER / TARGET), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = done.stdout
    return text


if __name__ == "__main__":
    (FOLDER / TARGET).write_text(synchronous(), encoding="utf-8")
