"""`trivet import --format document`: a file as one document."""

from __future__ import annotations

from pathlib import Path

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.output import print_json
from retrieval.documents.files import document_of
from retrieval.errors import InvalidInput
from retrieval.settings import Settings


def import_document(file: Path, namespace: str, settings: Settings, *, as_json: bool) -> None:
    """Put a file as a document, print what became of it.

    Raises:
        InvalidInput: it is no file on disk, or cannot be read as a document.
    """
    if not file.is_file():
        raise InvalidInput("a document is read from a file on disk, which its id follows from")
    document = document_of(file)
    receipt = with_engine(settings, lambda engine: engine.documents.put(namespace, document))
    if receipt.warning:
        click.echo(f"{file}: {receipt.warning}", err=True)
    if as_json:
        print_json(receipt)
    else:
        click.echo(f"{file}: document {receipt.document_id} {receipt.status}, chunks: {receipt.chunks}")
