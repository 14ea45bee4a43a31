"""docs/experiment.md shows what its commands do today."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.experiment.page import PAGE, commands, rendered
from tests.folders import database_folder

_VERDICT = re.compile(
    r"^(?:\$ .+|stored as \S+|nothing better .*|gate: .+|\S+ is live$"
    r"|Error: the gate refuses [^\s:]+|Error(?!: the gate).*|Traceback.*|\(exit status \d+\))",
    re.MULTILINE,
)
"""What must be on the page as it happens; figures differ a little from one processor to another."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder that the database's user may enter."""
    with database_folder() as folder:
        yield folder


def test_the_page_shows_what_its_commands_print(folder: Path) -> None:
    """The same profiles are stored, promoted and refused; `python docs/experiment/page.py` writes the page anew."""
    page = PAGE.read_text(encoding="utf-8")
    assert len(commands(page)) >= 6
    assert _VERDICT.findall(rendered(page, folder)) == _VERDICT.findall(page)


def test_the_page_has_a_profile_that_is_promoted_and_one_that_is_refused() -> None:
    verdicts = _VERDICT.findall(PAGE.read_text(encoding="utf-8"))
    assert "characters@1 is live" in verdicts
    assert "Error: the gate refuses keywords@1" in verdicts
    assert "Traceback" not in verdicts
