"""`trivet serve`."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import click

from retrieval.cli.options import example, settings_options
from retrieval.settings import Settings


@click.command(epilog=example("trivet serve --port 8321 --workers 2"))
@settings_options
@click.option("--host", help="Address to listen on; a public one needs TRIVET_API_KEY.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to listen on.  [default: 8321]")
@click.option("--workers", type=click.IntRange(1, 256), help="Server processes.  [default: 1]")
def command(settings: Settings, **given: Any) -> None:
    """Run the HTTP server until Ctrl-C."""
    from retrieval.api.server import run  # brings all of Litestar

    logging.getLogger().setLevel(settings.log_level.upper())
    run(replace(settings, **{name: value for name, value in given.items() if value is not None}))
