"""`trivet mcp`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from dataclasses import replace
from importlib.util import find_spec
from types import FrameType
from typing import NoReturn

import click

from retrieval.cli.options import example, namespace_option, settings_options
from retrieval.settings import Settings
from retrieval.store.namespaces import check_new_name


@click.command(epilog=example("trivet mcp -n ana", "TRIVET_API_KEY=... trivet mcp -n ana --url https://memory.example"))
@settings_options
@namespace_option
@click.option("--url", help="A running server to use instead of a database; its key is TRIVET_API_KEY.")
def command(settings: Settings, namespace: str, url: str | None) -> None:
    """Give an assistant the memory of a namespace as tools (Model Context Protocol).

    Uses standard input and output. A running server offers the same over HTTP, at /mcp/NAMESPACE.
    """
    check_new_name(namespace)  # otherwise an assistant would see the error only when it calls a tool
    if find_spec("mcp") is None:
        raise click.UsageError("the Model Context Protocol's package is missing: pip install 'trivet[mcp]'")
    from trivet import AsyncClient
    from trivet.calls import url_of, without_user
    from trivet.in_process import opened
    from trivet.mcp import serve_stdio

    logging.getLogger("httpx").setLevel(logging.WARNING)
    client = AsyncClient(url, settings.api_key) if url else opened(replace(settings, api_key=None))
    shown = str(without_user(url_of(url))) if url else None
    signal.signal(signal.SIGINT, _exit)  # asyncio's own handler waits for what it cancels
    try:
        asyncio.run(serve_stdio(client, namespace, base_url=shown))
    except SystemExit as exc:  # a signal; without `_exit`, the thread that reads standard input would be waited for
        os._exit(exc.code if isinstance(exc.code, int) else 1)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C would end the process before its database
    sys.exit(128 + number)
