"""Options that several commands share."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from functools import reduce, wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from retrieval.errors import InvalidInput
from retrieval.settings import Settings

AnyFunction = Callable[..., Any]
Decorator = Callable[[AnyFunction], AnyFunction]

in_folder = click.Path(exists=True, file_okay=False, path_type=Path)
out_folder = click.Path(file_okay=False, path_type=Path)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _drawable(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """The page's path; what would prevent writing it is reported before a long run."""
    if path is not None:
        try:
            import_module("..reporting.page", __package__)
            import_module("..reporting.charts", __package__)
        except ModuleNotFoundError as exc:
            if exc.name not in ("jinja2", "matplotlib"):
                raise
            raise click.UsageError(
                f"--html writes pages with {exc.name}, which is missing: pip install 'trivet[eval]'"
            ) from exc
    return with_folder(_context, _parameter, path)


def with_folder(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """A path to write to; its folder is created now if it is missing."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


html_option = click.option(
    "--html",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=_drawable,
    help="Write a report with charts there.",
)


class _InputFile(click.File):
    """A file to read; `-` is standard input, if there is one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-" and sys.stdin is None:
            self.fail("standard input is closed", param, ctx)
        return super().convert(value, param, ctx)


class _InputFileOrFolder(_InputFile):
    """A file to read, `-` for standard input, or the path of a folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return Path(value) if Path(value).is_dir() else super().convert(value, param, ctx)


input_file = _InputFile("rb")
input_file_or_folder = _InputFileOrFolder("rb")
namespace_option = click.option("-n", "--namespace", default="default", help="The namespace.")


def example(*lines: str) -> str:
    """The end of a command's help; click does not rewrap a paragraph that begins with a backspace."""
    return "\n".join(["\b", "Example:", *(f"  {line}" for line in lines)])


def checked(parse: Callable[[str], Any], *, missing: Any = None) -> AnyFunction:
    """An option's callback that parses its value; `missing` stands for one that is not given.

    Invalid input becomes an error that names the option.
    """

    def callback(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
        try:
            return missing if value is None else parse(value)
        except InvalidInput as exc:
            raise click.BadParameter(str(exc), context, parameter) from exc

    return callback


def together(*parameters: Decorator) -> Decorator:
    """A decorator that declares options in this order."""
    return lambda function: reduce(lambda command, parameter: parameter(command), reversed(parameters), function)


def gathered(parameters: Sequence[Decorator], gather: Callable[[dict[str, Any]], dict[str, Any]]) -> Decorator:
    """A decorator that declares options; `gather` takes their values out and returns what the command gets instead."""

    def decorate(function: AnyFunction) -> AnyFunction:
        @wraps(function)
        def gathering(**values: Any) -> Any:
            made = gather(values)
            return function(**values, **made)

        return together(*parameters)(gathering)

    return decorate


def _settings(values: dict[str, Any]) -> dict[str, Any]:
    data_dir: Path | None = values.pop("data_dir")
    settings = Settings.from_env(database_url=values.pop("database_url"), data_dir=data_dir)
    if data_dir is not None and not settings.uses_embedded:
        raise click.UsageError("--data-dir is the embedded database's, but a database URL is set.")
    # a command prints its own output; what modules log about their work is for the server's log
    level = "warning" if settings.log_level == "info" else settings.log_level
    logging.basicConfig(level=level.upper(), format="%(levelname)s: %(message)s")
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # warns of each attempt; `Reachability` of each reason
    return {"settings": settings}


_SETTINGS = [
    click.option("--database-url", help="A libpq URL, or 'embedded'.  [env: TRIVET_DATABASE_URL]"),
    click.option(
        "--data-dir",
        type=out_folder,
        help="Folder of the embedded database.  [env: TRIVET_DATA_DIR; default: ~/.local/share/trivet, for root "
        "/var/lib/trivet]",
    ),
]

settings_options = gathered(_SETTINGS, _settings)
"""`--database-url` and `--data-dir`; the command gets `settings`."""

common_options = gathered([*_SETTINGS, json_option], _settings)
"""`--database-url`, `--data-dir` and `--json`; the command gets `settings` and `as_json`."""
