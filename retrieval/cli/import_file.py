"""`trivet import`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO

import click
import msgspec

from retrieval.cli.engine import with_engine
from retrieval.cli.group import Failure
from retrieval.cli.options import example, json_option, settings_options
from retrieval.cli.output import print_json, progress
from retrieval.engine import Trivet
from retrieval.errors import InvalidInput
from retrieval.evaluation.corpus import CorpusReader
from retrieval.parsing import parse_memory
from retrieval.settings import Settings
from retrieval.types import MemoryInput

BATCH = 256
"""Most memories of one transaction."""

BATCH_BYTES = 4 * 1024 * 1024
"""Most bytes of input in one transaction, unless one line has more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line of the file, understood or not."""

    number: int
    size: int
    namespace: str
    memory: MemoryInput | InvalidInput


@dataclass(kw_only=True)
class Outcome:
    """What became of the lines so far: numbers by status, and why lines were rejected."""

    counts: Counter[str] = field(default_factory=Counter)
    rejected: list[dict[str, str | int]] = field(default_factory=list)


@click.command(epilog=example("trivet import -n alice history.jsonl"))
@click.argument("file", type=click.File("rb"))
@click.option("-n", "--namespace", help="The namespace.  [default: default; in a corpus each row's own]")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["auto", "memories", "corpus"]),
    default="auto",
    show_default=True,
    help="Memories as the API takes them, or an evaluation folder's corpus.jsonl.",
)
@settings_options
@json_option
def command(file: IO[bytes], namespace: str | None, format_: str, settings: Settings, as_json: bool) -> None:
    """Add memories from FILE, a JSON object per line; "-" is standard input.

    Rows that are there already with the same content are left alone, so an import that was
    interrupted is taken up by running it again, provided that the rows have ids. A line that is
    rejected is named and does not stop the others; the exit status is 1 then.
    """
    started = time.perf_counter()
    outcome = Outcome()

    async def store(engine: Trivet) -> None:
        with progress("import", None) as advance:
            for batch in _batches(_lines(file, namespace, format_)):
                await _store(engine, batch, outcome)
                advance(len(batch))

    with_engine(settings, store)
    seconds = time.perf_counter() - started
    lines = outcome.counts.total()
    if as_json:
        print_json({"lines": lines, "counts": outcome.counts, "rejected": outcome.rejected, "seconds": seconds})
    else:
        counts = ", ".join(f"{outcome.counts[status]} {status}" for status in sorted(outcome.counts))
        click.echo(f"{lines} lines: {counts or 'nothing to do'} in {seconds:.1f} s ({lines / seconds:.0f}/s)")
    if outcome.rejected:
        raise Failure(f"{len(outcome.rejected)} of {lines} lines were rejected")


async def _store(engine: Trivet, batch: list[Line], outcome: Outcome) -> None:
    """Add a batch to its namespace; name what was rejected on standard error."""
    results = await engine.add(batch[0].namespace, [line.memory for line in batch])
    for line, result in zip(batch, results, strict=True):
        outcome.counts[result.status] += 1
        if result.status == "rejected":
            outcome.rejected.append({"line": line.number, "error": result.error or ""})
            click.echo(f"line {line.number}: {result.error}", err=True)


def _lines(file: Iterable[bytes], namespace: str | None, format_: str) -> Iterator[Line]:
    """The file's lines with what they hold; blank ones are left out."""
    corpus: CorpusReader | None = None
    for number, raw in enumerate(file, start=1):
        if not raw.strip():
            continue
        if format_ == "auto":
            format_ = "corpus" if _is_corpus(raw) else "memories"
        if format_ == "memories":
            memory = parse_memory(raw, number)
            yield Line(number=number, size=len(raw), namespace=namespace or "default", memory=memory)
            continue
        corpus = corpus or CorpusReader()
        try:
            row = corpus.read(raw, number)
        except InvalidInput as exc:
            yield Line(number=number, size=len(raw), namespace=namespace or "default", memory=exc)
        else:
            yield Line(number=number, size=len(raw), namespace=namespace or row.namespace, memory=row.memory)


def _is_corpus(raw: bytes) -> bool:
    """Whether a line is of an evaluation corpus: its rows alone name their namespace."""
    try:
        return "namespace" in msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Neighbouring lines of one namespace, of limited number and size."""
    batch: list[Line] = []
    size = 0
    for line in lines:
        full = len(batch) == BATCH or size + line.size > BATCH_BYTES
        if batch and (full or line.namespace != batch[0].namespace):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += line.size
    if batch:
        yield batch
