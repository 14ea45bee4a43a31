"""`trivet import` of documents: a file as one, a folder as many."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.output import in_a_line, print_json, progress
from retrieval.documents.files import document_of, documents_in, id_of
from retrieval.engine import Trivet
from retrieval.errors import Conflict, InvalidInput
from retrieval.lifecycle.jobs import Progress
from retrieval.plurals import counted
from retrieval.reporting.table import show_counts
from retrieval.settings import Settings
from retrieval.types.document import DocumentInfo, DocumentReceipt

KINDS_SHOWN = 5
"""Most kinds of skipped files that are named."""

_OF_THE_FILE = (("content_base64",), ("media_type",))
"""Fields of a document that are made from its file, so errors in them name the file."""

PAGE = 200
"""Documents read at once."""


def import_document(file: Path, namespace: str, settings: Settings, *, as_json: bool) -> None:
    """Add a file as a document and print the outcome.

    Raises:
        InvalidInput: it is no file on disk, or cannot be read as a document.
    """
    if not file.is_file():
        raise InvalidInput("a document is read from a file on disk, which its id follows from")
    document = document_of(file)
    try:
        receipt = with_engine(settings, lambda engine: engine.documents.put(namespace, document))
    except InvalidInput as exc:
        if exc.loc in _OF_THE_FILE:
            raise InvalidInput(f"{file}: {exc}") from exc
        raise
    _warn(file, receipt)
    if as_json:
        print_json(receipt)
    else:
        click.echo(in_a_line(f"{file}: document {receipt.document_id} {receipt.status}, chunks: {receipt.chunks}"))


def import_folder(folder: Path, namespace: str, settings: Settings, *, deletes: bool, as_json: bool) -> None:
    """Add each document of a folder, print the outcomes, and delete earlier documents whose files are gone.

    Raises:
        InvalidInput: there is none.
        ClickException: some could not be read.
    """
    files, others = documents_in(folder)
    if not files:
        raise InvalidInput(
            f"there are no documents in {folder}, by the names of its files; give an export itself, or its zip"
        )
    put: dict[str, DocumentReceipt] = {}
    rejected: dict[str, str] = {}
    deleted: dict[str, str] = {}

    async def put_all(engine: Trivet) -> None:
        job = Progress(kind="import", namespace=namespace, total=len(files))
        with progress("import", len(files)) as advance:
            async with engine.jobs.following(job):
                for file in files:
                    try:
                        put[str(file)] = receipt = await engine.documents.put(namespace, document_of(file, folder))
                        _warn(file, receipt)
                    except (Conflict, InvalidInput, OSError) as exc:
                        rejected[str(file)] = str(exc)
                        click.echo(in_a_line(f"{file}: {exc}"), err=True)
                    advance(1)
                    job.done += 1
        if deletes and put:
            deleted.update(await _gone(engine, namespace, folder))
            for document_id in deleted.values():
                await engine.documents.delete(namespace, document_id)

    started = time.perf_counter()
    with_engine(settings, put_all)
    seconds = time.perf_counter() - started
    read = counted(len(files), "document", "documents")
    if as_json:
        print_json({"documents": put, "rejected": rejected, "deleted": deleted, "skipped": others, "seconds": seconds})
    else:
        counts = show_counts(Counter(receipt.status for receipt in put.values()))
        chunks = sum(receipt.chunks for receipt in put.values())
        click.echo(f"{read}: {counts or 'none stored'}, chunks: {chunks} in {seconds:.1f} s")
        if deletes:
            click.echo(f"deleted {len(deleted)} whose files are gone")
        if others:
            kinds = ", ".join(f"{count} {suffix}" for suffix, count in others.most_common(KINDS_SHOWN))
            click.echo(in_a_line(f"skipped {counted(others.total(), 'other file', 'other files')}: {kinds}"))
    if rejected:
        raise click.ClickException(f"{len(rejected)} of {read} rejected")


async def _gone(engine: Trivet, namespace: str, folder: Path) -> dict[str, str]:
    """The ids of the folder's documents whose files are gone, by file path in the folder."""
    gone: dict[str, str] = {}
    cursor = None
    while True:
        page = await engine.documents.list(namespace, cursor=cursor, limit=PAGE)
        gone |= {str(each.metadata["file"]): each.id for each in page.documents if _is_gone(each, folder)}
        if (cursor := page.next_cursor) is None:
            return gone


def _is_gone(document: DocumentInfo, folder: Path) -> bool:
    """Whether a document was added from a file that is no longer in the folder.

    A document of the same name that came from elsewhere has another id.
    """
    file = folder / str(document.metadata.get("file"))
    is_of_folder = document.id == id_of(file) and file.resolve().is_relative_to(folder.resolve())
    return is_of_folder and not file.exists()


def _warn(file: Path, receipt: DocumentReceipt) -> None:
    if receipt.warning:
        click.echo(in_a_line(f"{file}: {receipt.warning}"), err=True)
