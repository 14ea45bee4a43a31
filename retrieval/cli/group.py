"""The group of all commands: finds them by name and turns errors into messages and exit statuses."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from retrieval.errors import InvalidInput, TrivetError

COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("serve", "Run the HTTP server."),
    "mcp": ("mcp", "Give an assistant a namespace's memory as tools (Model Context Protocol)."),
    "demo": ("demo", "Show context packs from a sample chat history, then serve it."),
    "add": ("add", "Add or replace one memory."),
    "import": ("import_file", "Add memories from a file: chats, other memory servers, JSON, CSV, documents."),
    "export": ("export", "Write a namespace as JSON lines that import restores."),
    "list": ("list_memories", "Show the memories of a namespace."),
    "get": ("get", "Show one memory."),
    "history": ("history", "Show what a memory superseded and what superseded it."),
    "delete": ("delete", "Delete memories, or a namespace."),
    "forget": ("forget", "Delete what a speaker said, or everything that mentions an entity."),
    "namespaces": ("namespaces", "Show all namespaces."),
    "search": ("search", "Rank memories for a query."),
    "context": ("context", "Assemble the context pack for a query."),
    "classify": ("classify", "Show a query's intent and the weights that follow from it alone."),
    "migrate": ("migrate", "Update the database's schema."),
    "reembed": ("reembed", "Give all memories of a namespace new vectors, after a model change."),
    "profile": ("profile", "Show and change the fusion profiles: versions, promotion, rollback."),
    "train": ("train", "Train the query classifier on labelled queries."),
    "tune": ("tune", "Fit a profile to labelled queries and let the gate judge it."),
    "queries": ("queries", "Show, export, redact and delete the logged searches of a namespace."),
    "eval": ("evaluate", "Measure the rankings on evaluation folders."),
    "bench": ("bench", "Measure speed with a thousand to a million memories, also of peers."),
    "keys": ("keys", "Print a new API key, or a token for some namespaces."),
    "doctor": ("doctor", "Check that everything Trivet needs is there."),
}
"""The module that defines each command as `command`, and its line in the list."""


class TrivetGroup(click.Group):
    """Commands by name, imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, the most used first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f".{COMMANDS[cmd_name][0]}", __package__).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The named command; raises UsageError, with the closest name, if there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            alike = get_close_matches(args[0], COMMANDS, n=1)
            if not alike:
                raise
            raise click.UsageError(f"{error.message} Did you mean {alike[0]!r}?", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options of `trivet` itself, including `--help`, whose text may fail to print."""
        with _told_as_failures():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the named command; raises ClickException if it failed."""
        # Trivet's matrices are small, and NumPy's other threads would spin while waiting for large ones.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        if isinstance(sys.stdout, io.TextIOWrapper):  # whose encoding may lack characters of a memory
            sys.stdout.reconfigure(errors="backslashreplace")
        with _told_as_failures():
            return super().invoke(ctx)


@contextmanager
def _told_as_failures() -> Iterator[None]:
    """Turn exceptions into one-line errors with status 1; TRIVET_LOG_LEVEL=debug adds the traceback."""
    try:
        yield
    except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
        raise
    except Exception as exc:
        _drop_unwritten()
        if os.environ.get("TRIVET_LOG_LEVEL") == "debug":
            raise
        from retrieval.cli.output import printable  # its libraries take a while

        raise click.ClickException(printable(message_of(exc))) from exc


def _drop_unwritten() -> None:
    """Drop output that standard output does not take: at its end Python would try again, and exit with status 120."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def message_of(exc: Exception) -> str:
    """One line for people.

    >>> message_of(InvalidInput("must not be empty", loc=("filters", "tags_all", 0)))
    'filters.tags_all.0: must not be empty'
    """
    if isinstance(exc, InvalidInput):
        return exc.located
    if isinstance(exc, TrivetError | OSError):
        return str(exc)
    return f"{type(exc).__name__}: {exc} (a defect in Trivet; TRIVET_LOG_LEVEL=debug shows where)"
