"""`trivet mcp`."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import click

from retrieval.cli.options import example, namespace_option, settings_options
from retrieval.settings import Settings


@click.command(epilog=example("trivet mcp -n ana", "TRIVET_API_KEY=... trivet mcp -n ana --url https://memory.example"))
@settings_options
@namespace_option
@click.option("--url", help="A running server to use instead of a database; its key is TRIVET_API_KEY.")
def command(settings: Settings, namespace: str, url: str | None) -> None:
    """Give an assistant the memory of a namespace as tools (Model Context Protocol).

    Speaks over standard input and output; a running server does over HTTP, at /mcp/NAMESPACE.
    """
    try:
        from trivet.mcp import serve_stdio
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise click.UsageError("the Model Context Protocol's package is missing: pip install 'trivet[mcp]'") from exc
    from trivet import AsyncClient
    from trivet.in_process import opened

    logging.getLogger("httpx").setLevel(logging.WARNING)
    client = AsyncClient(url, settings.api_key) if url else opened(replace(settings, api_key=None))
    asyncio.run(serve_stdio(client, namespace, base_url=url))
