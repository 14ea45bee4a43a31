"""`trivet export`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.options import example, namespace_option, settings_options
from retrieval.cli.output import progress
from retrieval.engine import Trivet
from retrieval.errors import InvalidInput
from retrieval.lifecycle.export import read_header
from retrieval.settings import Settings


@click.command(epilog=example("trivet export -n alice -o alice.jsonl", "trivet import -n copy alice.jsonl"))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True, resolve_path=True, path_type=Path),
    help="Output file, replaced only once complete; - is standard output.  [default: -]",
)
@namespace_option
@settings_options
def command(output: Path | None, namespace: str, settings: Settings) -> None:
    """Write a namespace as JSON lines from which `trivet import` restores it.

    The first line has its settings, every other line a memory, including superseded and expired ones, in
    order of insertion and as of the start of the export.
    """

    async def write(engine: Trivet) -> int:
        async with aclosing(engine.lifecycle.export(namespace)) as pieces:
            header = await anext(pieces)
            found = read_header(header)
            with replacing(output) as file, progress("export", found.memories) as advance:
                file.write(header)
                async for piece in pieces:
                    file.write(piece)
                    advance(piece.count(b"\n"))
            return found.memories

    memories = with_engine(settings, write)
    click.echo(f"memories of {namespace}: {memories}", err=True)


@contextmanager
def replacing(path: Path | None) -> Iterator[IO[bytes]]:
    """The file to write, for its owner alone; it replaces an older one when complete.

    Pipes and devices are written to directly.
    """
    if path is None or path == Path("-"):
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}", loc=("output",))
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as made:
        try:
            yield made
        except BaseException:
            os.unlink(made.name)
            raise
    os.replace(made.name, path)
