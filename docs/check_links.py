"""Fail if a page has a broken link, or shows a `trivet` or `make` command that does not exist.

Usage: python docs/check_links.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

import click

from retrieval.cli import main as trivet

ROOT = Path(__file__).resolve().parents[1]

_SKIPPED = frozenset({".venv", ".git", "node_modules", "dist", "build"})
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE_OR_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)|`[^`\n]*`", re.MULTILINE | re.DOTALL)
"""Code in a page: blocks and text between backticks."""

_LINK = re.compile(r"\]\(<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_COMMAND = re.compile(r"(?:^|[`$(|]\s*|&&\s*)(trivet|make)\s+([a-z][a-z-]*)", re.MULTILINE)


def pages() -> list[Path]:
    """Every Markdown page of the project."""
    return [page for page in sorted(ROOT.rglob("*.md")) if not _SKIPPED & set(page.relative_to(ROOT).parts)]


def broken_links(page: Path, text: str) -> Iterator[str]:
    """The page's links to missing files or headings; web addresses are not checked."""
    for target in _LINK.findall(CODE_OR_FENCE.sub("", text)):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"links to {target}, which is not there"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"links to {target}, which has no such heading"


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    names = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        names.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return names


def unknown_commands(text: str, known: dict[str, set[str]]) -> Iterator[str]:
    """Commands in the page's code that do not exist."""
    code = "\n".join(CODE_OR_FENCE.findall(text))
    for program, command in _COMMAND.findall(code):
        if command not in known[program]:
            yield f"shows `{program} {command}`, which does not exist"


def known_commands() -> dict[str, set[str]]:
    """The subcommands of `trivet` and the targets of the Makefile."""
    targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return {"trivet": set(trivet.list_commands(click.Context(trivet))), "make": set(targets)}


def problems() -> Iterable[str]:
    """All faults, one line each."""
    known = known_commands()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for problem in (*broken_links(page, text), *unknown_commands(text, known)):
            yield f"{page.relative_to(ROOT)}: {problem}"


if __name__ == "__main__":
    found = list(problems())
    for line in found:
        print(line, file=sys.stderr)
    print(f"{len(pages())} pages, {len(found)} problems")
    sys.exit(1 if found else 0)
