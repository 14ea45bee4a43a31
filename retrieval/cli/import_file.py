"""`trivet import`."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any
from zoneinfo import ZoneInfo

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.import_documents import import_document, import_folder
from retrieval.cli.options import checked, common_options, example, input_file_or_folder
from retrieval.cli.output import in_a_line, print_json, printable, progress
from retrieval.documents.files import is_document
from retrieval.engine import Trivet
from retrieval.errors import InvalidInput
from retrieval.imports.files import ImportFile
from retrieval.imports.formats import FORMATS, detect, read
from retrieval.imports.jsonl import count_memories, header_of
from retrieval.imports.records import ImportContext, SkippedRecord, SourceRecord
from retrieval.ingest.batches import batches
from retrieval.lifecycle.jobs import Progress
from retrieval.plurals import counted
from retrieval.reporting.table import show_counts
from retrieval.settings import Settings
from retrieval.store.namespaces import check_new_name
from retrieval.tasks import in_order
from retrieval.types.memory import AddResult, MemoryInput
from retrieval.types.namespace import EmbedderName, NamespaceInput

DOCUMENT = "document"
"""The format of a file that is added as one document."""

BATCH = 256
"""Most memories of one transaction."""

BATCH_BYTES = 4 * 1024 * 1024
"""Most bytes of input in one transaction, unless one line has more."""

BATCHES_AT_ONCE = 4
"""While one is written, the next are embedded; batches that share an id or a session are written in order."""

PLACES_SHOWN = 3
"""Most places named of what was skipped for one reason."""


@dataclass(kw_only=True)
class Outcome:
    """The outcome for the records so far.

    Attributes:
        counts: numbers by status.
        rejected: where, and why.
        warned: warnings by place, by the namespace and the superseded id that has not come yet.
        skipped: how many were left out, by reason.
        places: the first places of those, by reason.
    """

    counts: Counter[str] = field(default_factory=Counter)
    rejected: list[dict[str, str | int]] = field(default_factory=list)
    warned: dict[tuple[str | None, str], dict[int, str]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)

    def without_skips(self, records: Iterable[SourceRecord | SkippedRecord]) -> Iterator[SourceRecord]:
        """The records that are to be stored; the others are counted."""
        for record in records:
            if isinstance(record, SourceRecord):
                yield record
                continue
            self.skipped[record.reason] += 1
            places = self.places.setdefault(record.reason, [])
            if len(places) < PLACES_SHOWN:
                places.append(record.place)

    def skips(self) -> dict[str, dict[str, Any]]:
        """What was skipped, the most frequent reason first."""
        return {reason: {"count": count, "places": self.places[reason]} for reason, count in self.skipped.most_common()}


def _column(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Columns by field, from FIELD=COLUMN."""
    for value in values:
        if "=" not in value:
            raise click.BadParameter(f"{value!r} is not FIELD=COLUMN", ctx=ctx, param=param)
    return dict(value.split("=", 1) for value in values)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError) as exc:
        raise InvalidInput(f"there is no time zone {name!r}") from exc


@click.command(
    epilog=example(
        "trivet import -n alice history.jsonl",
        "trivet import -n alice chatgpt-export.zip",
        'trivet import -n family "WhatsApp Chat with Ana.txt" --timezone Europe/Lisbon',
        "trivet import -n team handbooks/",
    )
)
@click.argument("file", type=input_file_or_folder)
@click.option("-n", "--namespace", help="The namespace.  [default: default; in a corpus each row's own]")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["auto", *FORMATS, DOCUMENT]),
    default="auto",
    help="Format of FILE; auto detects it.",
)
@click.option(
    "--embedder",
    metavar="NAME",
    help="Embedder of the namespace, which must be empty or already use it.  [default: unchanged]",
)
@click.option("--delete", "deletes", is_flag=True, help="For a folder: delete its documents whose files are gone.")
@click.option("--timezone", "zone", callback=checked(_zone), help="Zone of times that have none.  [default: UTC]")
@click.option("--day-first/--month-first", default=None, help="How to read 03/04.  [default: detected]")
@click.option(
    "--map",
    "columns",
    multiple=True,
    callback=_column,
    metavar="FIELD=COLUMN",
    help="The column of a field, for CSV and JSON; repeatable.",
)
@common_options
def command(
    file: IO[bytes] | Path,
    namespace: str | None,
    format_: str,
    embedder: EmbedderName | None,
    deletes: bool,
    zone: ZoneInfo | None,
    day_first: bool | None,
    columns: dict[str, str],
    settings: Settings,
    as_json: bool,
) -> None:
    """Add memories from FILE: another program's export, JSON lines, JSON or CSV; "-" is standard input.

    FILE may be a document, or a folder of documents, subfolders included; hidden files and JSON are skipped, and a
    folder that holds a chat export is refused.

    Memories already stored with the same content are left alone, so run an interrupted import again to complete it; a
    later export adds only what is new. A file written by `trivet export` is restored as it was, with the namespace's
    settings if the namespace is empty. What is left out, such as system messages, is counted by reason. What cannot be
    read is reported and does not stop the rest; the exit status is then 1.
    """
    if namespace is not None:
        check_new_name(namespace)
    if isinstance(file, Path):
        if format_ not in ("auto", DOCUMENT):
            raise InvalidInput(f"of a folder each file is a document; give the {format_} export itself, or its zip")
        if format_ == "auto":
            _refuse_export(file)
        _choose(embedder, namespace, settings)
        import_folder(file, namespace or "default", settings, deletes=deletes, as_json=as_json)
        return
    if deletes:
        raise click.UsageError("--delete is for a folder; give the folder itself.")
    started = time.perf_counter()
    outcome, context = Outcome(), ImportContext(zone=zone, day_first=day_first, columns=columns)
    with _seekable(file) as seekable:
        source = ImportFile(seekable, os.path.basename(file.name) if os.path.isfile(file.name) else None)
        name = _format_of(source, file.name, context) if format_ == "auto" else format_
        _choose(embedder, namespace, settings)
        if name == DOCUMENT:
            import_document(Path(file.name), namespace or "default", settings, as_json=as_json)
            return
        header = header_of(source) if FORMATS[name].of_lines else None
        total = header.memories if header else count_memories(source) if FORMATS[name].of_lines else None

        async def records() -> AsyncIterator[SourceRecord]:
            for record in outcome.without_skips(read(source, name, context)):
                yield replace(record, namespace=namespace or record.namespace or "default")

        async def store(engine: Trivet) -> None:
            async def add(batch: Sequence[SourceRecord]) -> list[AddResult]:
                return await engine.add(batch[0].namespace or "", [record.memory for record in batch])

            if header and (missing := await engine.prepare_import(namespace or "default", header.settings)):
                click.echo(printable(f"not taken: there is no profile {missing!r} here"), err=True)
            # An export's memories keep their insertion order.
            at_once = BATCHES_AT_ONCE if header is None else 1
            job = Progress(kind="import", namespace=namespace or "default", total=total)
            made = batches(records(), most=BATCH, most_bytes=BATCH_BYTES)
            with progress("import", total) as advance:
                async with engine.jobs.following(job), aclosing(in_order(made, add, lambda: at_once)) as stored:
                    async for batch, results in stored:
                        _note(batch, results, outcome)
                        advance(len(batch))
                        job.done += len(batch)
            if header is not None:
                if (lines := outcome.counts.total()) < header.memories:
                    early = f"the export ends early: {lines} of {header.memories} memories are in it"
                    raise click.ClickException(early)
                for undone in await engine.lifecycle.complete_import(namespace or "default", header):
                    click.echo(printable(f"not done again, as no memory mentions the entity: {undone}"), err=True)

        with_engine(settings, store)
        if format_ != "auto" and not outcome.counts.keys() - {"rejected"}:
            _check_format(source, name, context)
    for _, warning in sorted({warning for warnings in outcome.warned.values() for warning in warnings.items()}):
        click.echo(in_a_line(warning), err=True)
    noun = "record" if total is None else "line"
    _report(outcome, context, name, noun, time.perf_counter() - started, as_json)


def _choose(embedder: EmbedderName | None, namespace: str | None, settings: Settings) -> None:
    """Set the namespace's embedder, if one was named."""
    if embedder:
        given = NamespaceInput(embedder=embedder)
        with_engine(settings, lambda engine: engine.put_namespace(namespace or "default", given))


def _format_of(source: ImportFile, path: str, context: ImportContext) -> str:
    """The format of a file's content, or else a document by its name; raises InvalidInput if it is neither."""
    if path.lower().endswith(".ipynb"):  # without line ends its content is a line of JSON
        return DOCUMENT
    try:
        return detect(source, context.columns)
    except InvalidInput:
        is_table = path.lower().endswith((".csv", ".tsv"))
        if is_table and context.columns:
            return "csv"  # its reader says which columns there are
        if not is_document(path) or path.lower().endswith(".json"):  # an export of an unknown program
            raise
        if is_table:
            click.echo(
                "no column is called `text` or the like: it is one document; --map text=COLUMN makes rows memories",
                err=True,
            )
        return DOCUMENT


def _refuse_export(folder: Path) -> None:
    """Raise InvalidInput for a folder with an unpacked export: as documents it would lose who said what."""
    for path in sorted(path for name in ("*.json", "*.txt", "messages*.html") for path in folder.glob(name)):
        # A file of no known format is not an export; one that cannot be read is named when it is added.
        with suppress(InvalidInput, OSError), path.open("rb") as file:
            name = detect(ImportFile(file, path.name))
            if name not in ("json", "jsonl", "csv"):
                break
    else:
        return
    raise InvalidInput(
        f"{path} is of the format {name}: give that file itself, or the zip of the export; "
        f"--format {DOCUMENT} takes each file of the folder as a document"
    )


def _check_format(source: ImportFile, name: str, context: ImportContext) -> None:
    """Raise InvalidInput if a file from which nothing could be stored has another format than the one named."""
    other = name
    with suppress(InvalidInput):  # no known format
        other = detect(source, context.columns)
    if other != name and not (source.is_empty or source.is_hollow):
        raise InvalidInput(f"the file holds nothing of the format {name}: it looks like {other}; leave --format out")


def _report(outcome: Outcome, context: ImportContext, format_: str, noun: str, seconds: float, as_json: bool) -> None:
    """Print the summary, in which `noun` names what was read; raises ClickException if something was rejected."""
    total = outcome.counts.total()
    read = counted(total, noun, f"{noun}s")
    if as_json:
        summary = {"format": format_, "lines": total, "counts": outcome.counts, "rejected": outcome.rejected}
        print_json({**summary, "skipped": outcome.skips(), "notes": context.notes, "seconds": seconds})
    else:
        counts = show_counts(outcome.counts)
        click.echo(f"{read}: {counts or 'nothing to do'} in {seconds:.1f} s ({total / seconds:.0f}/s)")
        for reason, skip in outcome.skips().items():
            more = "" if skip["count"] <= PLACES_SHOWN else ", …"
            click.echo(in_a_line(f"skipped {skip['count']}: {reason} ({'; '.join(skip['places'])}{more})"))
        for note, count in context.notes.most_common():
            click.echo(f"note: {note}: {count}")
    if outcome.rejected:
        raise click.ClickException(f"{len(outcome.rejected)} of {read} rejected")


def _note(batch: Sequence[SourceRecord], results: Sequence[AddResult], outcome: Outcome) -> None:
    """Count the outcomes of a batch; name what was rejected on standard error."""
    for record, result in zip(batch, results, strict=True):
        outcome.counts[result.status] += 1
        if result.status == "rejected":
            where: dict[str, str | int] = {"place": record.place} if record.line is None else {"line": record.line}
            outcome.rejected.append({**where, "error": result.error or ""})
            click.echo(in_a_line(f"{record.place}: {result.error}"), err=True)
            continue
        outcome.warned.pop((record.namespace, result.id or ""), None)
        if result.warning and isinstance(record.memory, MemoryInput):
            warning = f"{record.place}: {result.warning}"
            for superseded in record.memory.superseded_ids:
                outcome.warned.setdefault((record.namespace, superseded), {})[outcome.counts.total()] = warning


@contextmanager
def _seekable(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """The file, or a copy if it can be read only once; detecting the format reads its beginning."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        yield copy
