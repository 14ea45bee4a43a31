"""Run the commands of docs/experiment.md and write their output into the page.

Usage: python docs/experiment/page.py

In the page, a fenced block of `console` has commands, on lines that begin with "$ ", and their output. They run in an
empty folder on a separate embedded database. A path that begins with docs/ is in this checkout.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "experiment.md"

_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_SECONDS = re.compile(r", \d+ s$", re.MULTILINE)


def rendered(text: str, folder: Path) -> str:
    """The page with the output of its commands, run in `folder` one after another."""
    return _BLOCK.sub(lambda block: "".join(_shown(command, folder) for command in commands(block.group())), text)


def commands(text: str) -> list[str]:
    """The commands that a page or a block shows, in order."""
    return re.findall(r"^\$ (.+)$", text, re.MULTILINE)


def _shown(command: str, folder: Path) -> str:
    """A command and its output without the duration; if it fails, the reason and the exit status."""
    name, *arguments = shlex.split(command)
    program = {"python": [], "trivet": ["-m", "retrieval.cli"]}[name]  # with this checkout and this interpreter
    done = subprocess.run(
        [sys.executable, *program, *(str(ROOT / each) if each.startswith("docs/") else each for each in arguments)],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    lines = [f"$ {command}", _SECONDS.sub("", re.sub(r"\n{2,}", "\n", done.stdout)).strip()]
    if done.returncode:
        lines += [line for line in done.stderr.splitlines() if line.startswith(("Error", "Traceback"))]
        lines += [f"(exit status {done.returncode})"]
    return "".join(f"{line}\n" for line in lines if line)


def _environment(folder: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRIVET_")}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    output = {"NO_COLOR": "1", "COLUMNS": "120", "PYTHONIOENCODING": "utf-8"}
    return {**inherited, **output, "PYTHONPATH": path, "TRIVET_DATA_DIR": str(folder / "data")}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="trivet-experiment-") as work:
        Path(work).chmod(0o755)  # so that the database's user may enter
        PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), Path(work)), encoding="utf-8")
