"""HTML reports, whose charts are drawn by a library that the server does not need."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click


def page_writer(module: str) -> Callable[[Path, Any], None]:
    """The `write_page` of a module.

    Raises:
        UsageError: the library is not installed.
    """
    try:
        writer: Callable[[Path, Any], None] = import_module(module).write_page
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] != "matplotlib":
            raise
        raise click.UsageError(
            "--html draws charts with matplotlib, which is missing: pip install 'trivet[eval]'"
        ) from exc
    return writer
