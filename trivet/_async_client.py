"""The asynchronous client; `python trivet/generate.py` makes `_client.py`, the synchronous one, from this file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx

from retrieval.ids import uuid7
from retrieval.types.document import Document, DocumentInfo, DocumentPage, DocumentReceipt
from retrieval.types.entity import (
    EntityAliases,
    EntityList,
    EntityPage,
    EntityPaths,
    EntitySummary,
    MergeReceipt,
    Neighborhood,
)
from retrieval.types.journal import FeedbackReceipt
from retrieval.types.memory import (
    MAX_COMPARED,
    AddResult,
    Deleted,
    ForgetReceipt,
    Memory,
    MemoryHistory,
    MemoryPage,
    UpdateReceipt,
)
from retrieval.types.namespace import NamespaceInfo, NamespaceList, NamespaceReceipt
from retrieval.types.search import ClassifyResponse, ContextResponse, SearchResponse
from trivet import calls
from trivet.calls import LONG_WORK_S, Call, NewMemory
from trivet.errors import InvalidInput
from trivet.fields import ContextFields, FilterFields, SearchFields

T = TypeVar("T")
Page = TypeVar("Page", MemoryPage, DocumentPage, EntityList)


class AsyncClient:
    """A client for a Trivet server over HTTP; a context manager that keeps its connections open.

    Methods take the fields of the HTTP API by name and return typed objects. They raise `TrivetError`: `InvalidInput`,
    `NotFound`, `Unreachable` and the others of `trivet.errors`.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8321",
        api_key: str | None = None,
        namespace: str | None = None,
        timeout_s: float = 30.0,
        *,
        retries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Create a client; nothing is sent yet.

        Args:
            base_url: the server's address; may include the user and password for a proxy in front of it.
            api_key: the server's key, if it needs one.
            namespace: used by calls that name none.
            timeout_s: how long to wait for a connection, and for each part of an answer; slow work, such as storing
                many or long texts, gets some minutes more.
            retries: how often to retry after no answer, 429 or 503, with growing pauses, and only if sending the
                request twice does the same as sending it once.
            transport: sends requests by other means than the network; do not share it with a forked process.
        """
        self._namespace = namespace
        self._retries = retries
        url = calls.url_of(base_url)
        headers = calls.headers_of(api_key, url)
        base = calls.without_user(url)
        self._connect = partial(
            httpx.AsyncClient, base_url=base, headers=headers, timeout=timeout_s, transport=transport
        )
        self._connections, self._process = self._connect(), os.getpid()

    @property
    def _http(self) -> httpx.AsyncClient:
        """The connections of this process; on one shared with a fork, each could get the other's answers."""
        if self._process != os.getpid():
            self._connections, self._process = self._connect(), os.getpid()
        return self._connections

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def add(
        self,
        memories: NewMemory | Iterable[NewMemory],
        *,
        namespace: str | None = None,
        may_supersede: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[AddResult]:
        """Add or replace memories; all legs see them when this returns.

        Args:
            memories: one or many: texts, mappings of fields, or `Memory` objects. Many are sent in batches while
                iterating.
            namespace: created on first use.
            may_supersede: each result of a created or updated memory names, in `may_supersede`, up to three older
                memories that it may make outdated, most similar first. One sent again after a lost answer is
                `unchanged` and names none.
            on_progress: called after each batch with the number of memories sent so far.

        Returns:
            The outcome of each, in order. A bad memory is `rejected` and the others are stored.

        Raises:
            InvalidInput: all memories are bad, or another argument is.
        """
        results: list[AddResult] = []
        refusal: InvalidInput | None = None
        for batch in calls.with_ids(memories, MAX_COMPARED if may_supersede else calls.BATCH):
            call = calls.add(self._path(namespace, "memories"), batch, may_supersede=may_supersede)
            try:
                results += (await self._send(call)).results
            except InvalidInput as exc:
                refusal = refusal or exc
                results += calls.rejected(batch, exc)
            if on_progress is not None:
                on_progress(len(results))
        if refusal is not None and all(result.status == "rejected" for result in results):
            raise refusal
        return results

    async def search(
        self, query: str, *, namespace: str | None = None, **fields: Unpack[SearchFields]
    ) -> SearchResponse:
        """Ranked memories; `fields` are those of a search, such as `top_k`, `filters` and `explain`."""
        body = {"query": query, **fields}
        return await self._send(Call("POST", self._path(namespace, "search"), SearchResponse, body))

    async def context(
        self,
        query: str | None = None,
        messages: Iterable[object] | None = None,
        *,
        namespace: str | None = None,
        **fields: Unpack[ContextFields],
    ) -> ContextResponse:
        """A context pack for a query or a conversation; `fields` are those of a pack, such as `max_tokens`.

        Messages are mappings with `role` and `content`, or objects of OpenAI's and Anthropic's libraries.
        """
        asked = {} if query is None else {"query": query}
        talk = {} if messages is None else {"messages": list(messages)}
        body = {**asked, **talk, **fields}
        return await self._send(Call("POST", self._path(namespace, "context"), ContextResponse, body))

    async def classify(
        self, query: str, *, namespace: str | None = None, profile: str | None = None
    ) -> ClassifyResponse:
        """The intent of a query and its leg weights, as in a search of `namespace`.

        Without one, as in a namespace without a profile: the client's own may not exist yet.
        """
        body = {"query": query, "namespace": namespace, "profile": profile}
        return await self._send(Call("POST", "/v1/classify", ClassifyResponse, body))

    async def get(self, id: str, *, namespace: str | None = None) -> Memory:
        """One memory."""
        return await self._send(Call("GET", self._path(namespace, "memories", id), Memory))

    async def get_all(self, *, namespace: str | None = None, **filters: Unpack[FilterFields]) -> AsyncIterator[Memory]:
        """All memories that match the filters and have not expired, oldest insertion first; fetched page by page.

        Each is yielded once, although a change moves it to the end: the loop may change what it gets.
        """
        seen: set[str] = set()
        async for page in self._pages(self._path(namespace, "memories"), MemoryPage, {"filters": filters}):
            for memory in page.memories:
                if memory.id not in seen:
                    seen.add(memory.id)
                    yield memory

    async def update(self, id: str, *, namespace: str | None = None, **fields: Any) -> Memory:
        """Change fields of a memory; None clears an optional field, fields left out stay as they are."""
        return await self._send(calls.update(self._path(namespace, "memories", id), fields))

    async def update_all(
        self,
        set: Mapping[str, Any],
        *,
        ids: Iterable[str] = (),
        namespace: str | None = None,
        **filters: Unpack[FilterFields],
    ) -> UpdateReceipt:
        """Set fields of the memories with these ids, or of all that match the filters, in one transaction."""
        path = self._path(namespace, "memories", "update")
        body = {"ids": calls.listed(ids), "filters": filters, "set": set}
        call = Call("POST", path, UpdateReceipt, body, is_repeatable=False, extra_s=LONG_WORK_S)
        return await self._send(call)

    async def delete(self, id: str, *, namespace: str | None = None) -> None:
        """Delete one memory."""
        await self._send(Call("DELETE", self._path(namespace, "memories", id), type(None), is_repeatable=False))

    async def delete_all(
        self, *, ids: Iterable[str] = (), namespace: str | None = None, **filters: Unpack[FilterFields]
    ) -> int:
        """Delete the memories with these ids, or all that match the filters; returns how many there were.

        Raises:
            InvalidInput: neither is given, or both are.
        """
        path = self._path(namespace, "memories", "delete")
        body = {"ids": calls.listed(ids), "filters": filters}
        call = Call("POST", path, Deleted, body, is_repeatable=False, extra_s=LONG_WORK_S)
        return (await self._send(call)).deleted

    async def add_document(
        self,
        text: str | None = None,
        *,
        path: PathLike[str] | str | None = None,
        namespace: str | None = None,
        **fields: Any,
    ) -> DocumentReceipt:
        """Add or replace a document; it is split into chunks, which are memories.

        Args:
            text: of the document.
            path: of a file instead: text, Markdown, HTML, PDF, Word, OpenDocument, Excel, PowerPoint, EPUB, a notebook
                or source code. Without an `id`, one is derived from the path, so that adding the file again replaces
                the document.
            namespace: created on first use.
            fields: of a document, such as `id`, `title`, `media_type`, `tags` and `metadata`.

        Raises:
            InvalidInput: the document cannot be read.
            OSError: the file cannot be read.
        """
        body = calls.document_fields(text, path, fields)
        to = self._path(namespace, "documents")
        return await self._send(Call("POST", to, DocumentReceipt, body, extra_s=LONG_WORK_S))

    async def get_document(self, id: str, *, namespace: str | None = None) -> Document:
        """One document with its chunks and its text."""
        return await self._send(Call("GET", self._path(namespace, "documents", id), Document))

    async def documents(self, *, namespace: str | None = None) -> AsyncIterator[DocumentInfo]:
        """All documents, by id; fetched page by page."""
        async for page in self._pages(self._path(namespace, "documents"), DocumentPage, {}):
            for document in page.documents:
                yield document

    async def delete_document(self, id: str, *, namespace: str | None = None) -> None:
        """Delete one document with its chunks."""
        await self._send(Call("DELETE", self._path(namespace, "documents", id), type(None), is_repeatable=False))

    async def forget(
        self,
        *,
        speaker: str | None = None,
        entity: str | None = None,
        dry_run: bool = False,
        namespace: str | None = None,
    ) -> ForgetReceipt:
        """Delete what a speaker said and list what others said about them, or delete all that mentions an entity."""
        path, body = self._path(namespace, "forget"), {"speaker": speaker, "entity": entity, "dry_run": dry_run}
        call = Call("POST", path, ForgetReceipt, body, is_repeatable=False, extra_s=LONG_WORK_S)
        return await self._send(call)

    async def history(self, id: str, *, namespace: str | None = None) -> list[Memory]:
        """A memory with all that it superseded or that superseded it, directly or through others, oldest first."""
        call = Call("GET", self._path(namespace, "memories", id, "history"), MemoryHistory)
        return (await self._send(call)).memories

    async def export(self, *, namespace: str | None = None) -> AsyncIterator[bytes]:
        """A namespace as lines of JSON, each with its line feed: the settings, then every memory.

        `trivet import` restores the namespace from them.
        """
        call = Call("GET", self._path(namespace, "export"), type(None))
        rest = b""
        try:
            async with self._http.stream(call.method, call.url) as response:
                if not response.is_success:
                    await response.aread()
                    raise calls.error_of(response)
                calls.check_lines(response)
                async for piece in response.aiter_bytes():
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        yield line + b"\n"
        except httpx.RequestError as exc:
            raise calls.unreachable(self._http.base_url, exc) from exc

    async def feedback(
        self, search_id: str | None = None, *, namespace: str | None = None, **fields: Any
    ) -> FeedbackReceipt:
        """Report what was relevant in an answer: `relevant`, `irrelevant`, `clicked` or `ratings`, by memory id."""
        body = {"id": uuid7(), "search_id": search_id, **fields}  # with an id, a retry is not stored again
        return await self._send(Call("POST", self._path(namespace, "feedback"), FeedbackReceipt, body))

    async def entities(self, *, namespace: str | None = None, **fields: Any) -> AsyncIterator[EntitySummary]:
        """All entities that memories mention, the most mentioned first; fetched page by page.

        `fields` choose: `q`, part of the name; `type`, a list; `words`; `filters`, `as_of`, `include_superseded`.
        """
        async for page in self._pages(self._path(namespace, "entities"), EntityList, fields):
            for entity in page.entities:
                yield entity

    async def entity(self, id: str, *, namespace: str | None = None, **fields: Any) -> EntityPage:
        """What is known about an entity; `fields` are `limit` and `cursor` of its memories, `filters` and others."""
        path = self._path(namespace, "entities", id)
        return await self._send(Call("GET", path, EntityPage, params=fields))

    async def neighbors(self, id: str, *, namespace: str | None = None, **fields: Any) -> Neighborhood:
        """The neighbours of an entity; `fields` are `hops`, `limit`, `words`, `filters` and others."""
        path = self._path(namespace, "entities", id, "neighbors")
        return await self._send(Call("GET", path, Neighborhood, params=fields))

    async def change_aliases(
        self, id: str, *, add: Sequence[str] = (), remove: Sequence[str] = (), namespace: str | None = None
    ) -> EntityAliases:
        """Add aliases to an entity and remove manually added ones; returns all its aliases.

        Raises:
            Conflict: an alias is the name of another entity; merge the two.
        """
        path, body = self._path(namespace, "entities", id, "aliases"), {"add": add, "remove": remove}
        # Removing an alias may delete an entity that no memory mentions, so it is not repeated.
        return await self._send(Call("POST", path, EntityAliases, body, is_repeatable=not remove))

    async def merge_entity(self, id: str, into: str, *, namespace: str | None = None) -> MergeReceipt:
        """Merge an entity into the one with the id `into`; `merge_id` of the answer undoes it.

        Raises:
            Conflict: they are merged already.
        """
        path = self._path(namespace, "entities", id, "merge")
        return await self._send(Call("POST", path, MergeReceipt, {"into": into}, is_repeatable=False))

    async def undo_merge(self, merge_id: str, *, namespace: str | None = None) -> None:
        """Undo one merge; earlier and later ones stay. `entity(id).merged` has the merges of an entity."""
        await self._send(Call("DELETE", self._path(namespace, "merges", merge_id), type(None), is_repeatable=False))

    async def paths(self, source: str, target: str, *, namespace: str | None = None, **fields: Any) -> EntityPaths:
        """The shortest paths between two entities; `fields` are `max_hops`, `limit`, `words`, `filters` and others."""
        path, ends = self._path(namespace, "paths"), {"source": source, "target": target}
        return await self._send(Call("GET", path, EntityPaths, params={**ends, **fields}))

    async def namespaces(self) -> list[NamespaceInfo]:
        """All namespaces, with their settings and counts."""
        return (await self._send(Call("GET", "/v1/namespaces", NamespaceList))).namespaces

    async def put_namespace(self, namespace: str | None = None, **settings: Any) -> NamespaceInfo:
        """Create a namespace or change its settings, such as `profile`.

        Settings left out stay as they are; None resets `profile`, `rules` or `query_log` to the default.

        Raises:
            Conflict: the language or the embedder of a namespace that has memories would change.
        """
        return await self._send(Call("PUT", self._path(namespace), NamespaceInfo, settings))

    async def delete_namespace(self, namespace: str) -> NamespaceReceipt:
        """Delete a namespace with everything in it; the receipt counts what was deleted."""
        path, params = calls.path_of(namespace), {"confirm": namespace}
        call = Call("DELETE", path, NamespaceReceipt, None, params, is_repeatable=False, extra_s=LONG_WORK_S)
        return await self._send(call)

    def _path(self, namespace: str | None, *parts: str) -> str:
        """The path of a namespace, the client's if none is named, or of something in it."""
        name = namespace if namespace is not None else self._namespace
        if name is None:
            raise InvalidInput("no namespace: give one to the client or to the call", loc=("namespace",))
        return calls.path_of(name, *parts)

    async def _pages(self, path: str, answer: type[Page], fields: Mapping[str, Any]) -> AsyncIterator[Page]:
        cursor = None
        while True:
            page = await self._send(calls.page(path, answer, fields, cursor))
            yield page
            if (cursor := page.next_cursor) is None:
                return

    async def _send(self, call: Call[T]) -> T:
        """Send a call, with retries if they may help, and return its answer."""
        outcome: httpx.Response | httpx.RequestError
        timeout = calls.timeout_of(call, self._http.timeout)
        for attempt in count():
            try:
                outcome = await self._http.request(call.method, call.url, content=call.content, timeout=timeout)
            except httpx.RequestError as exc:
                outcome = exc
            if attempt >= self._retries or not calls.may_succeed(call, outcome):
                break
            await asyncio.sleep(calls.pause_s(attempt, outcome))
        if isinstance(outcome, httpx.RequestError):
            raise calls.unreachable(self._http.base_url, outcome) from outcome
        return call.result(outcome)
