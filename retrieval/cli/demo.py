"""`trivet demo`."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from pathlib import Path

import click
from rich.console import Console

from retrieval.cli.demo_view import print_pack
from retrieval.cli.options import example, settings_options
from retrieval.cli.output import console, progress, say
from retrieval.engine import Trivet
from retrieval.errors import SettingsError
from retrieval.evaluation.folder import EvaluationFolder, read_folder
from retrieval.evaluation.metrics import recall
from retrieval.evaluation.runner import ingest, run_system
from retrieval.evaluation.systems import System
from retrieval.settings import Settings
from retrieval.types.search import ContextRequest, Mode

NAMESPACE = "demo"
MAX_TOKENS = 400
TOP_K = 10

QUESTIONS = ("q01", "q34", "q44", "q62", "q13", "q22", "q43", "q63")
"""Two of each intent, by their ids in `retrieval/cli/sample/queries.jsonl`."""


@click.command(epilog=example("trivet demo --port 9000"))
@settings_options
@click.option("--port", type=click.IntRange(1, 65_535), help="Port of the server.  [default: 8321]")
@click.option("--serve/--no-serve", default=True, help="Leave a server running.")
def command(settings: Settings, port: int | None, serve: bool) -> None:
    """Show context packs from a sample chat history, then serve it until Ctrl-C.

    The sample goes into the namespace "demo" of the given database, or of a separate embedded one
    in the folder "demo" of the data folder.
    """
    port = settings.port if port is None else port
    if settings.uses_embedded:
        settings = replace(settings, data_dir=settings.data_dir / "demo")
    settings = replace(settings, host="127.0.0.1", port=port)
    if serve:
        _check_port(settings)
    to = console()
    asyncio.run(_show(settings, to))
    if serve:
        _serve(settings, to)


async def _show(settings: Settings, to: Console) -> None:
    """Store the sample and print the answers to its questions."""
    folder = sample()
    say(to, "Trivet demo: seven months in the chat of a community bike workshop", "bold")
    say(to, f"database: {settings.data_dir if settings.uses_embedded else 'the one that is set'}", "dim")
    async with Trivet.open(settings) as engine:
        with progress("storing the chat", len(folder.corpus)) as advance:
            stored = await ingest(engine, folder, lambda _: NAMESPACE, progress=advance)
        counts = ", ".join(f"{count} {status}" for status, count in stored.counts.items())
        rate = len(folder.corpus) / stored.seconds
        say(to, f"stored {len(folder.corpus)} messages in {stored.seconds:.1f} s ({rate:.0f}/s): {counts}")
        say(
            to,
            "of each item of a pack: its rank in the fusion and in each leg; * marks what the sample calls evidence",
            "dim",
        )
        queries = {query.id: query for query in folder.queries}
        for number, id_ in enumerate(QUESTIONS, start=1):
            query = queries[id_]
            request = ContextRequest(query=query.text, max_tokens=MAX_TOKENS, top_k=TOP_K, explain=True)
            print_pack(query, await engine.context(NAMESPACE, request), f"{number}/{len(QUESTIONS)}", to)
        await _show_recall(engine, folder, to)


async def _show_recall(engine: Trivet, folder: EvaluationFolder, to: Console) -> None:
    """Print how much of the evidence of all questions is in the first ten results."""
    answers = await run_system(
        engine, folder.judged, System(name="adaptive", mode=Mode.ADAPTIVE), lambda _: NAMESPACE, top_k=TOP_K
    )
    found = [recall([id_ for id_, _ in answer.ranking], answer.query.grades, cutoff=TOP_K) for answer in answers]
    say(to, "")
    say(to, f"all {len(found)} questions of the sample: recall@{TOP_K} {sum(found) / len(found):.3f}", "bold")


def _serve(settings: Settings, to: Console) -> None:
    """Serve the sample until Ctrl-C, which is the normal end."""
    from retrieval.api.server import run  # brings all of Litestar

    for line in serving_lines(settings, os.environ):
        say(to, line)
    with suppress(KeyboardInterrupt):
        run(settings)
    say(to, "stopped")


def serving_lines(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """Where the console and the API pages are, and how to search; for a key, only its variable's name."""
    address = f"http://127.0.0.1:{settings.port}"
    key = ' -H "Authorization: Bearer $TRIVET_API_KEY"' if environ.get("TRIVET_API_KEY") else ""
    data_dir = f"TRIVET_DATA_DIR={shlex.quote(str(settings.data_dir))} " if settings.uses_embedded else ""
    program = sys.argv[0] if Path(sys.argv[0]).name == "trivet" else "trivet"  # `make demo` runs it by its path
    return [
        "",
        *([f"console:  {address}"] if settings.console else []),
        f"API:      {address}/docs",
        "Ctrl-C ends the server. To ask from the shell:",
        f"  curl -s {address}/v1/namespaces/{NAMESPACE}/search{key} -H 'content-type: application/json' \\",
        """    -d '{"query": "Which vet do Lucía and Maya share?", "top_k": 3}'""",
        f"  {data_dir}{program} context -n {NAMESPACE} 'Which vet do Lucía and Maya share?'",
    ]


def sample() -> EvaluationFolder:
    """The chat history that comes with Trivet, with questions and their evidence."""
    with resources.as_file(resources.files(__package__) / "sample") as folder:
        return read_folder(Path(folder))


def _check_port(settings: Settings) -> None:
    """Raise SettingsError now, not after minutes, if the server could not listen."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as exc:
            raise SettingsError(
                f"port {settings.port} of {settings.host} cannot be used ({exc.strerror}): "
                "end what listens there, or choose another with --port or TRIVET_PORT"
            ) from exc
