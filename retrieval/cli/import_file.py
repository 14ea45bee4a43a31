"""`trivet import`."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from io import BufferedReader
from typing import IO
from uuid import NAMESPACE_URL, uuid5

import click
import msgspec

from retrieval.cli.engine import with_engine
from retrieval.cli.group import Failure
from retrieval.cli.options import example, json_option, settings_options
from retrieval.cli.output import print_json, progress
from retrieval.engine import Trivet
from retrieval.errors import InvalidInput, NotFound
from retrieval.evaluation.folder import CorpusReader
from retrieval.lifecycle.export import MARK, read_header
from retrieval.settings import Settings
from retrieval.types.memory import AddResult, MemoryInput
from retrieval.types.namespace import NamespaceSettings
from retrieval.validation import parse_memory

BATCH = 256
"""Most memories of one transaction."""

BATCH_BYTES = 4 * 1024 * 1024
"""Most bytes of input in one transaction, unless one line has more."""

BATCHES_AT_ONCE = 4
"""While one is written the next are embedded; those that share an id or a session are written in their order."""

_FROM_FILES = uuid5(NAMESPACE_URL, "trivet:import")


@dataclass(frozen=True, kw_only=True, slots=True)
class InputLine:
    """A line of the file, understood or not."""

    number: int
    size: int
    namespace: str
    memory: MemoryInput | InvalidInput


Batch = list[InputLine]


@dataclass(kw_only=True)
class Outcome:
    """What became of the lines so far.

    Attributes:
        counts: numbers by status.
        rejected: lines, and why.
        warned: lines by the namespace and the id that they supersede and that has not come yet, and of what.
    """

    counts: Counter[str] = field(default_factory=Counter)
    rejected: list[dict[str, str | int]] = field(default_factory=list)
    warned: dict[tuple[str, str], dict[int, str]] = field(default_factory=dict)


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
    interrupted is taken up by running it again. The file of an export is taken back as it was written,
    with the namespace's settings where that has no memories. A row of a file that has no id gets one from the
    file's name, its line and its content; rows without ids on standard input are new each time. A
    line that is rejected is named and does not stop the others; the exit status is 1 then.
    """
    started = time.perf_counter()
    outcome = Outcome()

    async def store(engine: Trivet) -> None:
        header = read_header(next(file)) if _is_export(file) else None
        if header is not None:
            await _apply(engine, namespace or "default", header.settings)
        batches = _batches(_lines(file, namespace, format_, first=1 if header is None else 2))
        # an export's memories get the order of insertion that they had
        at_once = BATCHES_AT_ONCE if header is None else 1
        with progress("import", _count(file)) as advance:
            async with aclosing(_stored(engine, batches, at_once)) as stored:
                async for batch, results in stored:
                    _note(batch, results, outcome)
                    advance(len(batch))
        if header is not None:
            if (lines := outcome.counts.total()) < header.memories:
                raise Failure(f"the export ends early: {lines} of {header.memories} memories are in it")
            await engine.lifecycle.complete_import(namespace or "default", header.written)

    with_engine(settings, store)
    for number, warning in sorted(line for lines in outcome.warned.values() for line in lines.items()):
        click.echo(f"line {number}: {warning}", err=True)
    seconds = time.perf_counter() - started
    lines = outcome.counts.total()
    if as_json:
        print_json({"lines": lines, "counts": outcome.counts, "rejected": outcome.rejected, "seconds": seconds})
    else:
        counts = ", ".join(f"{outcome.counts[status]} {status}" for status in sorted(outcome.counts))
        click.echo(f"{lines} lines: {counts or 'nothing to do'} in {seconds:.1f} s ({lines / seconds:.0f}/s)")
    if outcome.rejected:
        raise Failure(f"{len(outcome.rejected)} of {lines} lines were rejected")


async def _stored(
    engine: Trivet, batches: Iterable[Batch], at_once: int
) -> AsyncGenerator[tuple[Batch, list[AddResult]]]:
    """Add batches, a few at a time; what became of each, in their order."""
    under_way: deque[tuple[Batch, asyncio.Task[list[AddResult]]]] = deque()
    try:
        for batch in batches:
            if len(under_way) == at_once:
                first, adding = under_way[0]
                yield first, await adding
                under_way.popleft()
            memories = [line.memory for line in batch]
            under_way.append((batch, asyncio.create_task(engine.add(batch[0].namespace, memories))))
            await asyncio.sleep(0)  # it begins before the next one does
        while under_way:
            first, adding = under_way[0]
            yield first, await adding
            under_way.popleft()
    finally:
        left = [adding for _, adding in under_way]
        for adding in left:
            adding.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _note(batch: Sequence[InputLine], results: Sequence[AddResult], outcome: Outcome) -> None:
    """Count what became of a batch; name what was rejected on standard error."""
    for line, result in zip(batch, results, strict=True):
        outcome.counts[result.status] += 1
        if result.status == "rejected":
            outcome.rejected.append({"line": line.number, "error": result.error or ""})
            click.echo(f"line {line.number}: {result.error}", err=True)
            continue
        outcome.warned.pop((line.namespace, result.id or ""), None)
        if result.warning and isinstance(line.memory, MemoryInput):
            superseded = (line.namespace, line.memory.supersedes or "")
            outcome.warned.setdefault(superseded, {})[line.number] = result.warning


def _count(file: IO[bytes]) -> int | None:
    """How many lines are to come; None where they can be read only once, as from standard input."""
    if not os.path.isfile(file.name):
        return None
    start = file.tell()
    count = sum(1 for raw in file if raw.strip())
    file.seek(start)
    return count


def _is_export(file: IO[bytes]) -> bool:
    """Whether a file begins as `trivet export` begins; nothing of it is read."""
    return isinstance(file, BufferedReader) and file.peek(len(MARK)).startswith(MARK)


async def _apply(engine: Trivet, namespace: str, settings: NamespaceSettings) -> None:
    """Give the settings of an export to a namespace that has no memories."""
    try:
        is_empty = not (await engine.get_namespace(namespace)).memories
    except NotFound:
        is_empty = True
    if is_empty:
        await engine.put_namespace(namespace, settings)


def _lines(file: IO[bytes], namespace: str | None, format_: str, *, first: int) -> Iterator[InputLine]:
    """The file's lines with what they hold; blank ones are left out."""
    corpus: CorpusReader | None = None
    source = os.path.basename(file.name) if os.path.isfile(file.name) else None
    for number, raw in enumerate(file, start=first):
        if not raw.strip():
            continue
        if format_ == "auto":
            format_ = "corpus" if _is_corpus(raw) else "memories"
        if format_ == "memories":
            memory = _identified(parse_memory(raw, number), source, number, raw)
            yield InputLine(number=number, size=len(raw), namespace=namespace or "default", memory=memory)
            continue
        corpus = corpus or CorpusReader()
        try:
            row = corpus.read(raw, number)
        except InvalidInput as exc:
            yield InputLine(number=number, size=len(raw), namespace=namespace or "default", memory=exc)
        else:
            yield InputLine(number=number, size=len(raw), namespace=namespace or row.namespace, memory=row.memory)


def _identified(
    memory: MemoryInput | InvalidInput, source: str | None, number: int, raw: bytes
) -> MemoryInput | InvalidInput:
    """The memory with an id by which the same line of the same file is known again."""
    if source is None or isinstance(memory, InvalidInput) or memory.id is not None:
        return memory
    return msgspec.structs.replace(memory, id=str(uuid5(_FROM_FILES, f"{source}\n{number}\n{raw.decode().strip()}")))


def _is_corpus(raw: bytes) -> bool:
    """Whether a line is of an evaluation corpus: its rows alone name their namespace."""
    try:
        return "namespace" in msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _batches(lines: Iterable[InputLine]) -> Iterator[Batch]:
    """Neighbouring lines of one namespace, of limited number and size; no id twice, so that the later line wins."""
    batch: Batch = []
    ids: set[str] = set()
    size = 0
    for line in lines:
        memory_id = line.memory.id if isinstance(line.memory, MemoryInput) else None
        full = len(batch) == BATCH or size + line.size > BATCH_BYTES
        if batch and (full or line.namespace != batch[0].namespace or memory_id in ids):
            yield batch
            batch, ids, size = [], set(), 0
        batch.append(line)
        size += line.size
        if memory_id is not None:
            ids.add(memory_id)
    if batch:
        yield batch
