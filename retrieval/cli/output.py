"""What commands print: JSON, text for a terminal, progress."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from retrieval.types.memory import Memory
from retrieval.types.search import Degradation, Leg

_CHARS_SHOWN = 100
"""Most of a memory's text on one line."""

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except line ends and tabs, and those that override or embed a direction of writing."""

LINE_EVERY_S = 5.0
"""How often progress is printed without a terminal."""


def confirm(question: str) -> None:
    """Ask whether to go on.

    Raises:
        Abort: the answer is no, or an interrupt.
        UsageError: there is no answer, as standard input is not a terminal and has ended, or is closed.
    """
    try:
        is_yes = click.confirm(question, err=True)
    except (click.Abort, RuntimeError) as exc:  # the latter where there is no standard input
        if isinstance(exc.__context__, KeyboardInterrupt) or (sys.stdin is not None and sys.stdin.isatty()):
            raise
        click.echo(err=True)
        raise click.UsageError("Standard input cannot be asked for confirmation: --yes goes on without.") from exc
    if not is_yes:
        raise click.Abort


def print_json(value: Any) -> None:
    """Print anything that msgspec knows, indented, to standard output."""
    try:
        click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))
    except UnicodeEncodeError:  # a file's name that is not UTF-8
        click.echo(json.dumps(msgspec.to_builtins(value), indent=2))


def console() -> Console:
    """The console on standard output."""
    return Console(highlight=False, markup=False, emoji=False)


def say(to: Console, text: str | Text, style: str = "") -> None:
    """Print text; line breaks are added on a terminal only."""
    shown = text if isinstance(text, Text) else Text(text, style)
    to.print(shown, soft_wrap=not to.is_terminal)


def printable(text: str) -> str:
    r"""`text` without the control characters that could manipulate a terminal, or reorder what stands after them.

    >>> printable("a\x1b[2Jb\u202ec") == "a\ufffd[2Jb\ufffdc"
    True
    """
    return _CONTROLS.sub("\ufffd", text)


def in_a_line(text: str) -> str:
    r"""`text` as a part of a line, of which a memory may not begin another.

    >>> in_a_line("m1\n2. m2")
    'm1 2. m2'
    """
    return printable(text).replace("\n", " ")


def numbers(values: Mapping[str, float], digits: int = 2) -> str:
    """Named numbers in a line, in their order.

    >>> numbers({"vector": 0.314, "bm25": 0.55})
    'vector 0.31, bm25 0.55'
    """
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())


def unanswered(degradation: Degradation) -> str:
    """Which leg did not answer, or that the rescorer did not, and why.

    >>> unanswered(Degradation(leg="rescorer", reason="the profile has none"))
    'the rescorer did not answer: the profile has none'
    """
    who = f"leg {degradation.leg}" if degradation.leg in set(Leg) else f"the {degradation.leg}"
    return f"{who} did not answer: {degradation.reason}"


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show the progress of long work on standard error: a bar on a terminal, occasional lines elsewhere.

    Yields a function to call with the number of items just done; `total` is None if it is not known.
    """
    if sys.stderr.isatty():
        said, rate = TextColumn("{task.description}"), TextColumn("{task.fields[rate]:.0f}/s")
        columns = (said, BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title, total=total, rate=0.0)

            def show(more: int) -> None:
                bar.update(task, advance=more, rate=bar.tasks[0].speed or 0.0)

            yield show
        return
    started = told = time.monotonic()
    done = 0

    def advance(more: int) -> None:
        nonlocal done, told
        done += more
        now = time.monotonic()
        if now - told >= LINE_EVERY_S:
            told = now
            rate = done / (now - started)
            click.echo(f"{title}: {done}{_of(total, done, rate)} ({rate:.0f}/s)", err=True)

    yield advance


def _of(total: int | None, done: int, rate: float) -> str:
    """How many there are, where that is known, and how long the rest will take.

    >>> _of(1_000, 400, 10.0), _of(None, 400, 10.0)
    ('/1000, 1:00 left', '')
    """
    if total is None:
        return ""
    minutes, seconds = divmod(round(max(total - done, 0) / rate) if rate else 0, 60)
    return f"/{total}, {minutes}:{seconds:02} left"


def beginning(text: str) -> str:
    """As much of a text as is shown on one line."""
    return text if len(text) <= _CHARS_SHOWN else text[: _CHARS_SHOWN - 1] + "…"


def say_memory(to: Console, memory: Memory) -> None:
    """Two lines: what identifies a memory, and the beginning of its text."""
    about = f"{memory.id}  {memory.created_at:%Y-%m-%d}  {memory.speaker or memory.title or memory.kind}"
    say(to, in_a_line(about), "dim")
    say(to, "  " + printable(beginning(" ".join(memory.text.split()))))
