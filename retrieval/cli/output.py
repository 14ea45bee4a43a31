"""What commands print: JSON, text for a terminal, progress."""

from __future__ import annotations

import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

LINE_EVERY_S = 5.0
"""How often progress is told where there is no terminal."""


def print_json(value: Any) -> None:
    """Print anything that msgspec knows, indented, to standard output."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def console() -> Console:
    """The console on standard output."""
    return Console(highlight=False, markup=False, emoji=False)


def say(to: Console, text: str | Text, style: str = "") -> None:
    """Print text; line breaks are added on a terminal only."""
    shown = text if isinstance(text, Text) else Text(text, style)
    to.print(shown, soft_wrap=not to.is_terminal)


def printable(text: str) -> str:
    r"""`text` without the control characters with which it could steer a terminal.

    >>> printable("a\x1b[2Jb") == "a\ufffd[2Jb"
    True
    """
    return "".join("\ufffd" if unicodedata.category(char) == "Cc" and char not in "\n\t" else char for char in text)


def numbers(values: Mapping[str, float], digits: int = 2) -> str:
    """Named numbers in a line, in their order.

    >>> numbers({"vector": 0.314, "bm25": 0.55})
    'vector 0.31, bm25 0.55'
    """
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Tell on standard error how far long work is: a bar on a terminal, a line now and then elsewhere.

    Args:
        title: what is done.
        total: how many there are, None if not known.

    Yields:
        A function to call with how many more are done.
    """
    if sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=total)
            yield lambda more: bar.advance(task, more)
        return
    started = told = time.monotonic()
    done = 0

    def advance(more: int) -> None:
        nonlocal done, told
        done += more
        now = time.monotonic()
        if now - told >= LINE_EVERY_S:
            told = now
            of = f"/{total}" if total is not None else ""
            click.echo(f"{title}: {done}{of} ({done / (now - started):.0f}/s)", err=True)

    yield advance
