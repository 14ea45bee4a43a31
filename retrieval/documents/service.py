"""Puts, reads, lists and deletes documents."""

from __future__ import annotations

import asyncio
import base64
import codecs
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec
from msgspec import UNSET

from retrieval.documents.extraction import Extract, extract
from retrieval.documents.splitting import CHUNK_PIECES, SMALL_PIECES, DocumentSplitter
from retrieval.embedding.embedders import Embedders
from retrieval.embedding.onnx import MAX_PIECES
from retrieval.errors import InvalidInput, NotFound
from retrieval.ids import uuid7
from retrieval.ingest.service import Ingest
from retrieval.store import documents, namespaces
from retrieval.store.documents import StoredDocument
from retrieval.store.pool import Pool
from retrieval.types.document import (
    MAX_DOCUMENT_BYTES,
    MAX_TITLE_CHARS,
    Document,
    DocumentChunk,
    DocumentInfo,
    DocumentInput,
    DocumentPage,
    DocumentReceipt,
)
from retrieval.types.memory import Memory, MemoryInput
from retrieval.validation import check_names, check_storable

OWN_KEY = "document"
"""The key of a chunk's metadata for `ChunkInfo`; all others are the caller's."""

MOST_READERS = 2
"""Processes that read documents at the same time; each may take a reader's maximum memory."""

TITLE_PIECES = MAX_PIECES - 2 - CHUNK_PIECES - SMALL_PIECES
"""Word pieces reserved for the title in the embedder's window."""

_BETWEEN_HEADINGS = " › "


class ChunkInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chunk's own metadata: its document's title and media type, and the headings above it."""

    title: str | None = None
    media_type: str | None = None
    headings: list[str] = []


class DocumentService:
    """The documents of all namespaces. A document is its chunks, which are memories like others."""

    def __init__(self, pool: Pool, ingest: Ingest, embedders: Embedders) -> None:
        self._pool = pool
        self._ingest = ingest
        self._embedders = embedders
        self._readers = asyncio.Semaphore(MOST_READERS)

    async def _splitter(self, namespace: str) -> DocumentSplitter:
        """A splitter that counts pieces with the namespace's embedder, or the default one if it does not exist yet.

        Raises ModelFileError if the embedder cannot be opened.
        """
        async with self._pool.connection() as conn:
            found = await namespaces.find_or_new(conn, namespace)
        count = self._embedders.get(found.settings.embedder).count_pieces
        count("")  # fails here if at all, as it must not fail while a text is split
        return DocumentSplitter(count)

    async def put(self, namespace: str, document: DocumentInput) -> DocumentReceipt:
        """Add or replace a document atomically; unchanged content writes nothing.

        Raises:
            InvalidInput: a bad name, or a document that cannot be read.
            Conflict: another memory has the id of one of its chunks.
            ModelFileError: the namespace's embedder cannot be opened.
        """
        namespaces.check_new_name(namespace)
        check_storable(document)
        check_names(id=document.id)
        if OWN_KEY in document.metadata:
            raise InvalidInput(f"must not have the key {OWN_KEY!r}: it is Trivet's own", loc=("metadata",))
        splitter = await self._splitter(namespace)
        content = await asyncio.to_thread(_content_of, document)
        try:
            extracted = await extract(content, document.media_type, self._readers)
        except InvalidInput as exc:
            field = "content_base64" if document.text is None else "text"
            raise InvalidInput(str(exc), loc=exc.loc or (field,)) from exc
        document_id = document.id or uuid7()
        memories = await asyncio.to_thread(_memories, document_id, document, extracted, splitter)
        status = await self._ingest.replace_document(namespace, document_id, memories)
        return DocumentReceipt(
            document_id=document_id, chunks=len(memories), status=status, warning=extracted.warning or UNSET
        )

    async def get(self, namespace: str, document_id: str) -> Document:
        """One document with its text; raises NotFound if there is no such namespace or document."""
        check_storable(document_id, ("id",))
        async with namespaces.opened(self._pool, namespace) as (conn, found):
            chunks = await documents.chunks(conn, found.ns, document_id)
        if not chunks:
            raise NotFound(f"there is no document {document_id!r} in namespace {namespace!r}")
        ends = list(accumulate(len(chunk.text) for chunk in chunks))
        first = chunks[0]
        return Document(
            **_described(document_id, first),
            chunks=[
                DocumentChunk(
                    id=chunk.id,
                    position=position,
                    headings=_info_of(chunk.metadata).headings,
                    start=end - len(chunk.text),
                    end=end,
                    superseded_by=chunk.superseded_by,
                )
                for position, (chunk, end) in enumerate(zip(chunks, ends, strict=True))
            ],
            text="".join(chunk.text for chunk in chunks),
        )

    async def list(self, namespace: str, *, cursor: str | None, limit: int) -> DocumentPage:
        """A page of documents by id; raises NotFound if there is no such namespace."""
        check_storable(cursor, ("cursor",))
        async with namespaces.opened(self._pool, namespace) as (conn, found):
            rows = await documents.page(conn, found.ns, after=cursor, limit=limit + 1)
        return DocumentPage(
            documents=[DocumentInfo(**_described(row.id, row), chunks=row.chunks) for row in rows[:limit]],
            next_cursor=rows[limit - 1].id if len(rows) > limit else None,
        )

    async def delete(self, namespace: str, document_id: str) -> None:
        """Delete a document with its chunks; raises NotFound if there is no such namespace or document."""
        check_storable(document_id, ("id",))
        await self._ingest.delete_document(namespace, document_id)


def _memories(
    document_id: str, document: DocumentInput, extracted: Extract, splitter: DocumentSplitter
) -> Sequence[MemoryInput]:
    """The chunks as memories, with the document's id and their position as ids."""
    title = document.title or extracted.title
    info = ChunkInfo(title=title[:MAX_TITLE_CHARS] if title else None, media_type=extracted.media_type)
    chunks = splitter.split(extracted.text, extracted.structure)
    paths = list(dict.fromkeys(chunk.headings for chunk in chunks))
    titles = dict(zip(paths, _titles(info.title, paths, splitter.count), strict=True))
    return [
        MemoryInput(
            id=f"{document_id}#{position}",
            text=chunk.text,
            kind="chunk",
            title=titles[chunk.headings],
            document_id=document_id,
            position=position,
            created_at=document.created_at,
            tags=document.tags,
            metadata={
                **document.metadata,
                OWN_KEY: msgspec.to_builtins(msgspec.structs.replace(info, headings=list(chunk.headings))),
            },
        )
        for position, chunk in enumerate(chunks)
    ]


def _titles(title: str | None, paths: Sequence[Sequence[str]], count: Callable[[str], int]) -> Sequence[str | None]:
    """The document's title and the headings below it for each chunk, as far as they fit in `TITLE_PIECES`."""
    whole = [list(dict.fromkeys(filter(None, (title, *path)))) for path in paths]
    shown = []
    for path in whole:
        candidates = [path, [*path[:1], *path[-1:]], path[-1:]]
        texts = [_BETWEEN_HEADINGS.join(candidate) for candidate in candidates]
        fitting = next((text for text in texts if count(text) <= TITLE_PIECES), None)
        shown.append((_head(texts[-1], TITLE_PIECES, count) if fitting is None else fitting)[:1_000] or None)
    return shown


def _head(text: str, pieces: int, count: Callable[[str], int]) -> str:
    """The beginning of a text, cut to a number of pieces."""
    return text[: bisect_right(range(1, len(text) + 1), pieces, key=lambda length: count(text[:length]))].rstrip()


def _content_of(document: DocumentInput) -> bytes:
    """The file that was sent; raises InvalidInput unless it is either `text` or base64, and not too large."""
    if (document.text is None) == (document.content_base64 is None):
        raise InvalidInput("give one of `text` and `content_base64`", loc=("text",))
    if document.text is not None:
        return codecs.BOM_UTF8 + document.text.removeprefix("\ufeff").encode()  # whatever encoding the text names
    try:
        content = base64.b64decode(document.content_base64 or "", validate=True)
    except ValueError as exc:
        raise InvalidInput(f"is not base64: {exc}", loc=("content_base64",)) from exc
    if len(content) > MAX_DOCUMENT_BYTES:
        raise InvalidInput(f"must be a file of at most {MAX_DOCUMENT_BYTES:,} bytes", loc=("content_base64",))
    return content


def _described(document_id: str, first: Memory | StoredDocument) -> dict[str, Any]:
    """The fields of a document, from its first chunk; a chunk written as a memory has only the title."""
    info = _info_of(first.metadata)
    return {
        "id": document_id,
        "title": info.title if OWN_KEY in first.metadata else first.title,
        "media_type": info.media_type,
        "created_at": first.created_at,
        "tags": first.tags,
        "metadata": {name: value for name, value in first.metadata.items() if name != OWN_KEY},
    }


def _info_of(metadata: Mapping[str, Any]) -> ChunkInfo:
    try:
        return msgspec.convert(metadata.get(OWN_KEY, {}), ChunkInfo)
    except msgspec.ValidationError:  # a caller's memory that uses the key for something else
        return ChunkInfo()
