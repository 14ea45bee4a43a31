"""Documents as callers send and receive them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from retrieval.types.memory import Label, Metadata, Zoned

MAX_DOCUMENT_CHARS = 5_000_000
"""Longest text of a document, some 1,700 pages."""

MAX_DOCUMENT_BYTES = 12_000_000
"""Largest file of a document: as much as a body of the default limit, 16 MiB, holds in base64."""

MAX_ID_CHARS = 240
"""Longest id of a document: the ids of its chunks are longer."""

MAX_TITLE_CHARS = 500

DocumentId = Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]


class DocumentInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document as a caller sends it: `text`, or a file's `content_base64`."""

    id: DocumentId | None = None
    title: (
        Annotated[str, Meta(max_length=MAX_TITLE_CHARS, description="null: the document's own, if it has one")] | None
    ) = None
    text: Annotated[str, Meta(min_length=1, max_length=MAX_DOCUMENT_CHARS)] | None = None
    content_base64: Annotated[str, Meta(min_length=1, max_length=MAX_DOCUMENT_BYTES * 4 // 3 + 4)] | None = None
    media_type: Annotated[
        Annotated[str, Meta(max_length=128)] | None,
        Meta(
            description="text, Markdown, HTML, PDF, Word, OpenDocument, Excel, PowerPoint, EPUB, a notebook or "
            "source code; null: detected from the content"
        ),
    ] = None
    created_at: Zoned | None = None
    tags: Annotated[list[Label], Meta(max_length=64)] = []
    metadata: Metadata = {}


DocumentStatus = Literal["created", "updated", "unchanged"]


class DocumentReceipt(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """The outcome for a document, and how many chunks it has."""

    document_id: str
    chunks: int
    status: DocumentStatus
    warning: Annotated[str | UnsetType, Meta(description="stored, but possibly not as intended")] = UNSET


class DocumentChunk(Struct, frozen=True, kw_only=True):
    """A chunk of a document: a memory, and where its text is in the document.

    Attributes:
        start, end: offsets in characters.
    """

    id: str
    position: int
    headings: list[str]
    start: int
    end: int
    superseded_by: list[str]


class _Described(Struct, frozen=True, kw_only=True):
    id: str
    title: str | None
    media_type: str | None
    created_at: Zoned
    tags: list[str]
    metadata: dict[str, Any]


class Document(_Described, frozen=True, kw_only=True):
    """A document as stored: its text is that of its chunks in order."""

    chunks: list[DocumentChunk]
    text: str


class DocumentInfo(_Described, frozen=True, kw_only=True):
    """A document in a list, with the number of its chunks."""

    chunks: int


class DocumentPage(Struct, frozen=True, kw_only=True):
    """A page of documents, by id; `next_cursor` is null on the last."""

    documents: list[DocumentInfo]
    next_cursor: str | None
