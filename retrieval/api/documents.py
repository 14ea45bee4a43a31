"""Documents: put, list, read, delete."""

from __future__ import annotations

import math

from litestar import Controller, delete, get, post
from litestar.params import JSONBody

from retrieval.api.parameters import MAX_BYTES, Cursor, DocumentName, Limit, NamespaceName
from retrieval.api.problems import problems
from retrieval.api.state import Api
from retrieval.types.document import Document, DocumentInput, DocumentPage, DocumentReceipt

ITEM = "/{document_id:str}"


class DocumentsController(Controller):
    """Texts that are stored in chunks."""

    path = "/v1/namespaces/{ns:str}/documents"
    tags = ("documents",)

    @post(status_code=201, opt={MAX_BYTES: math.inf}, responses=problems(409))
    async def put_document(self, api: Api, ns: NamespaceName, data: JSONBody[DocumentInput]) -> DocumentReceipt:
        """Add or replace a document.

        `text`, or a file in `content_base64`: text, Markdown, HTML, PDF, Word, OpenDocument, Excel, PowerPoint, EPUB, a
        notebook or source code. Without `media_type`, the type is detected. It is split at headings, paragraphs and
        sentences into chunks, which are memories of kind `chunk` with `document_id`, `position`, the document's title
        and headings as `title`, and `metadata.document`. Adding a document again replaces all its chunks at once; the
        same content is `unchanged`. At most 12 MB and 5,000,000 characters. The namespace is created on first use.
        """
        return await api.engine.documents.put(ns, data)

    @get(responses=problems(404))
    async def list_documents(
        self, api: Api, ns: NamespaceName, cursor: Cursor = None, limit: Limit = 100
    ) -> DocumentPage:
        """List documents.

        By id. Follow `next_cursor` until it is null.
        """
        return await api.engine.documents.list(ns, cursor=cursor or None, limit=limit)

    @get(ITEM, responses=problems(404))
    async def get_document(self, api: Api, ns: NamespaceName, document_id: DocumentName) -> Document:
        """One document.

        With its chunks and its text as it was read, which is that of the chunks in order.
        """
        return await api.engine.documents.get(ns, document_id)

    @delete(ITEM, status_code=204, responses=problems(404))
    async def delete_document(self, api: Api, ns: NamespaceName, document_id: DocumentName) -> None:
        """Delete a document.

        Its chunks are removed from every leg.
        """
        await api.engine.documents.delete(ns, document_id)
