"""`trivet mcp`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from retrieval.cli.options import example, namespace_option, settings_options
from retrieval.settings import Settings
from retrieval.store.namespaces import check_new_name

if TYPE_CHECKING:
    from trivet import AsyncClient


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

    logging.getLogger("httpx").setLevel(logging.WARNING)
    client = AsyncClient(url, settings.api_key) if url else opened(replace(settings, api_key=None))
    shown = str(without_user(url_of(url))) if url else "trivet:"
    asyncio.run(_serve(client, namespace, shown))


async def _serve(opening: AbstractAsyncContextManager[AsyncClient], namespace: str, base_url: str) -> None:
    """Serve until the input ends, or a signal comes."""
    from trivet.mcp import server

    loop = asyncio.get_running_loop()
    stopped = loop.create_future()
    try:
        async with opening as client:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) != signal.SIG_IGN:
                    loop.add_signal_handler(number, _set, stopped, 128 + number)
            serving = asyncio.create_task(server(client, lambda _: namespace, base_url=base_url).run_stdio_async())
            await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
            if stopped.done():
                logging.disable()  # the calls that this cuts off would complain of it, some when they are collected
                sys.unraisablehook = lambda _: None
                serving.cancel()  # it answers no more
            else:
                try:
                    await serving
                except* BrokenPipeError:  # the assistant has gone, and left a call without waiting for its answer
                    sys.unraisablehook = lambda _: None  # what is left unwritten fails again; Python 3.13 complains
    finally:
        if stopped.done():
            os._exit(stopped.result())  # asyncio would wait for the thread that reads standard input


def _set(future: asyncio.Future[int], value: int) -> None:
    if not future.done():
        future.set_result(value)
