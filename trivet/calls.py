"""The calls of the HTTP API without their sending: both clients send the same ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import httpx
import msgspec
from msgspec import UNSET, Struct, UnsetType

from retrieval.documents.files import document_of
from retrieval.errors import NO_SUCH_PATH
from retrieval.ids import uuid7
from retrieval.types.document import Document, DocumentPage, DocumentReceipt
from retrieval.types.entity import EntityAliases, EntityList, EntityPage, EntityPaths, MergeReceipt, Neighborhood
from retrieval.types.memory import (
    AddResult,
    ForgetReceipt,
    Memory,
    MemoryHistory,
    MemoryInput,
    MemoryPage,
    UpdateReceipt,
)
from retrieval.types.namespace import NamespaceInfo, NamespaceList, NamespaceReceipt
from retrieval.types.receipts import FeedbackReceipt
from retrieval.types.search import ClassifyResponse, ContextResponse, SearchResponse
from trivet.errors import CLASS_OF, InvalidInput, NotFound, ServerError, TrivetError, Unreachable

T = TypeVar("T")

NewMemory = str | Mapping[str, Any] | MemoryInput | Memory
"""What `add` takes: a text, the fields of a memory, or a memory."""

BATCH = 200
"""Most memories sent in one request."""

BATCH_BYTES = 2 * 1024 * 1024
"""A request ends with the memory that passes it: with the longest one it is below the 16 MiB that servers take."""

PAGE = 200
"""Memories read in one request."""

LONG_WORK_S = 600.0
"""How much longer an answer may take where much changes at once: a document of 1,000 pages is embedded for minutes."""

EMBEDDED_BYTES_PER_S = 2_000
"""As much text is embedded in a second at least, also on two processors that have other work."""

RETRIED = frozenset({429, 503})
"""Answers after which the same request may succeed."""

_LAST_PORT = 2**16 - 1

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0

_STRING_OR_NOT_FINITE = re.compile(r'("(?:[^"\\]|\\.)*")|NaN|-?Infinity')
"""In what Python takes for JSON; the group is a string."""


class _AddResponse(Struct, frozen=True):
    results: list[AddResult]


class _Deleted(Struct, frozen=True):
    deleted: int


class _Fault(Struct, frozen=True):
    loc: list[str | int] = []
    msg: str = ""


class _Problem(Struct, frozen=True):
    """An error of the server (RFC 9457), or as much of one as an intermediary sends."""

    type: str = ""
    detail: str = ""
    title: str = ""
    errors: list[_Fault] | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and the type of its answer; `is_repeatable`: sending it twice does what sending it once does.

    `extra_s` is how much longer to wait for its answer than for that of others.
    """

    method: str
    path: str
    answer: type[T]
    body: Any = None
    params: Mapping[str, str | list[str]] = field(default_factory=dict)
    is_repeatable: bool = True
    extra_s: float = 0.0

    @property
    def url(self) -> httpx.URL:
        """The path with the parameters.

        Raises:
            InvalidInput: together they are longer than an address may be.
        """
        query = urlencode(self.params, doseq=True, errors="surrogatepass")
        try:
            return httpx.URL(f"{self.path}?{query}" if query else self.path)
        except httpx.InvalidURL as exc:
            raise InvalidInput(f"{exc}: give fewer or shorter values") from exc

    @property
    def content(self) -> bytes | None:
        """The body as JSON, which bytes are already."""
        return self.body if isinstance(self.body, bytes | None) else _as_json(self.body)

    def result(self, response: httpx.Response) -> T:
        """The answer.

        Raises:
            TrivetError: the server refused the request or failed, or it is none of Trivet.
        """
        if not response.is_success:
            raise error_of(response)
        try:
            return msgspec.json.decode(response.content or b"null", type=self.answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise ServerError(f"no answer of Trivet from {response.url}: {exc}") from exc


def url_of(base_url: str) -> httpx.URL:
    """The address of a server; raises InvalidInput for one that cannot be read."""
    try:
        url = httpx.URL(base_url)
        url.raw_host.decode("ascii").encode("idna")  # as sockets do
    except (httpx.InvalidURL, UnicodeError) as exc:
        raise InvalidInput(f"is no address: {exc}", loc=("base_url",)) from exc
    if (url.port or 0) > _LAST_PORT:  # of which the system would take the last sixteen bits
        raise InvalidInput(f"is no address: its port is above {_LAST_PORT}", loc=("base_url",))
    return url


def headers_of(api_key: str | None) -> dict[bytes, bytes]:
    """The headers of every request; raises InvalidInput for a key that no header can hold, without showing it."""
    headers = {b"Content-Type": b"application/json"}
    if api_key:
        if not api_key.isprintable():
            raise InvalidInput("must not contain a line break or another control character", loc=("api_key",))
        headers[b"Authorization"] = f"Bearer {api_key}".encode()
    return headers


def error_of(response: httpx.Response) -> TrivetError:
    """The error that a response tells of."""
    try:
        problem = msgspec.json.decode(response.content, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):  # of a proxy
        problem = _Problem()
    kind = CLASS_OF.get(response.status_code, ServerError)
    if kind is NotFound and (problem.type != "/docs#not-found" or problem.detail == NO_SUCH_PATH):
        return ServerError(f"no API of Trivet at {response.url}")
    message = problem.detail or problem.title or f"{response.status_code} {response.reason_phrase} from {response.url}"
    if kind is InvalidInput and problem.errors:
        return InvalidInput(message, loc=tuple(problem.errors[0].loc))
    return kind(message)


def check_lines(response: httpx.Response) -> None:
    """See that a response has lines of JSON; raises ServerError if it is a page, such as one to log in."""
    if not response.headers.get("content-type", "").startswith("application/x-ndjson"):
        raise ServerError(f"no answer of Trivet from {response.url}")


def unreachable(base_url: httpx.URL, error: httpx.RequestError) -> Unreachable:
    """The error of a server that does not answer; names its address."""
    return Unreachable(f"no answer from {base_url}: {type(error).__name__}{f': {error}' if str(error) else ''}")


def may_succeed(call: Call[Any], outcome: httpx.Response | httpx.RequestError) -> bool:
    """Whether to send a call again: after an answer that invites it, or none, if that cannot do it twice.

    A request that found nobody listening did nothing.
    """
    if isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout):
        return True
    return call.is_repeatable and (isinstance(outcome, httpx.RequestError) or outcome.status_code in RETRIED)


def timeout_of(call: Call[Any], usual: httpx.Timeout) -> httpx.Timeout:
    """How long to wait for the answer to a call, and as usual for a connection."""
    read = None if usual.read is None else usual.read + call.extra_s
    return httpx.Timeout(connect=usual.connect, read=read, write=usual.write, pool=usual.pool)


def pause_s(attempt: int, outcome: httpx.Response | httpx.RequestError) -> float:
    """Seconds to wait before the next attempt: as the server asks in whole seconds, else doubling from a tenth."""
    asked = "" if isinstance(outcome, httpx.RequestError) else outcome.headers.get("retry-after", "")
    return min(float(asked) if asked.isdecimal() else FIRST_PAUSE_S * 2**attempt, LONGEST_PAUSE_S)


def with_ids(memories: NewMemory | Iterable[NewMemory], most: int = BATCH) -> Iterator[list[bytes]]:
    """Batches of memories as JSON objects. Those without an id get one here, so that a batch may be sent twice."""
    batch: list[bytes] = []
    size = 0
    for memory in [memories] if isinstance(memories, str | Mapping | Struct) else memories:
        batch.append(_as_json(_with_id(memory)))
        size += len(batch[-1])
        if len(batch) == most or size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _with_id(memory: NewMemory) -> dict[str, Any]:
    if isinstance(memory, str):
        fields: dict[str, Any] = {"text": memory}
    elif isinstance(memory, Mapping):
        fields = dict(memory)
    elif isinstance(memory, Struct):
        fields = {name: value for name, value in msgspec.structs.asdict(memory).items() if name != "superseded_by"}
    else:
        raise InvalidInput(f"a memory is a text, its fields or a trivet.Memory, not {memory!r:.100}", loc=("memories",))
    if fields.get("id") is None:
        fields["id"] = uuid7()
    return fields


def _as_json(value: Any) -> bytes:
    """A value as JSON, so that the server can say where half a surrogate pair is, or a number that is not finite."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=_dumped)
        if b"null" in encoded:  # which such a number has become, too
            json.dumps(msgspec.to_builtins(value, enc_hook=_dumped), allow_nan=False)
        return encoded
    except ValueError:
        text = json.dumps(msgspec.to_builtins(value, enc_hook=_dumped))
        return _STRING_OR_NOT_FINITE.sub(lambda found: found[1] or "1e999", text).encode()


def _dumped(value: Any) -> Any:
    """The fields of a model of pydantic, such as the messages that OpenAI's and Anthropic's libraries return."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not JSON")


def add(namespace: str, memories: Sequence[bytes], *, may_supersede: bool) -> Call[_AddResponse]:
    """Add or replace memories that have ids."""
    params = {"may_supersede": "true"} if may_supersede else {}
    body = b'{"memories":[%s]}' % b",".join(memories)
    extra_s = len(body) / EMBEDDED_BYTES_PER_S
    return Call("POST", _path(namespace, "memories"), _AddResponse, body, params, extra_s=extra_s)


def rejected(memories: Sequence[bytes], refusal: InvalidInput) -> list[AddResult]:
    """The outcome of a batch whose memories are all bad; raises the refusal if it is of something else."""
    if refusal.loc[:1] != ("memories",):
        raise refusal
    ids = [json.loads(memory)["id"] for memory in memories]  # which takes half a surrogate pair
    return [AddResult(id=memory_id, status="rejected", error=str(refusal)) for memory_id in ids]


def search(namespace: str, fields: Mapping[str, Any]) -> Call[SearchResponse]:
    """Search a namespace."""
    return Call("POST", _path(namespace, "search"), SearchResponse, fields)


def context(namespace: str, fields: Mapping[str, Any]) -> Call[ContextResponse]:
    """Make a context pack."""
    return Call("POST", _path(namespace, "context"), ContextResponse, fields)


def classify(fields: Mapping[str, Any]) -> Call[ClassifyResponse]:
    """Classify a query."""
    return Call("POST", "/v1/classify", ClassifyResponse, fields)


def get(namespace: str, memory_id: str) -> Call[Memory]:
    """Read one memory."""
    return Call("GET", _path(namespace, "memories", memory_id), Memory)


def page(namespace: str, filters: Mapping[str, Any], cursor: str | None) -> Call[MemoryPage]:
    """Read one page of memories."""
    params = {"limit": str(PAGE), "filters": _as_json(filters).decode()}
    if cursor is not None:
        params["cursor"] = cursor
    return Call("GET", _path(namespace, "memories"), MemoryPage, params=params)


def update(namespace: str, memory_id: str, fields: Mapping[str, Any]) -> Call[Memory]:
    """Change fields of a memory."""
    body = _as_json(fields)
    extra_s = len(body) / EMBEDDED_BYTES_PER_S
    return Call("PATCH", _path(namespace, "memories", memory_id), Memory, body, extra_s=extra_s)


def update_all(
    namespace: str, fields: Mapping[str, Any], ids: Iterable[str], filters: Mapping[str, Any]
) -> Call[UpdateReceipt]:
    """Change the same fields of many memories; sent twice, the second answer would count none as updated."""
    listed = ids if isinstance(ids, str) else list(ids)  # a text, which the server refuses, is no list of its letters
    body = {"ids": listed, "filters": filters, "set": fields}
    path = _path(namespace, "memories", "update")
    return Call("POST", path, UpdateReceipt, body, is_repeatable=False, extra_s=LONG_WORK_S)


def delete(namespace: str, memory_id: str) -> Call[None]:
    """Delete one memory; sent twice, the second answer would be that there is none."""
    return Call("DELETE", _path(namespace, "memories", memory_id), type(None), is_repeatable=False)


def delete_all(namespace: str, filters: Mapping[str, Any]) -> Call[_Deleted]:
    """Delete memories by filters; sent twice, the second answer would count none."""
    path = _path(namespace, "memories", "delete")
    return Call("POST", path, _Deleted, {"filters": filters}, is_repeatable=False, extra_s=LONG_WORK_S)


def document_fields(text: str | None, path: PathLike[str] | str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A document as a JSON object; one without an id gets one here, so that it may be sent twice.

    Raises:
        InvalidInput: both or none of a text and a path; a file that is empty or too large.
        OSError: the file cannot be read.
    """
    if (text is None) == (path is None):
        raise InvalidInput("give a text or a path", loc=("text",))
    if path is not None:
        read = document_of(Path(path))
        metadata = {**read.metadata, **fields.get("metadata", {})}
        known = {"id": read.id, "content_base64": read.content_base64, "media_type": read.media_type}
        return {**known, **fields, "metadata": metadata}
    return {"text": text, **fields, "id": fields.get("id") or uuid7()}


def put_document(namespace: str, fields: Mapping[str, Any]) -> Call[DocumentReceipt]:
    """Put a document that has an id."""
    return Call("POST", _path(namespace, "documents"), DocumentReceipt, fields, extra_s=LONG_WORK_S)


def get_document(namespace: str, document_id: str) -> Call[Document]:
    """Read one document."""
    return Call("GET", _path(namespace, "documents", document_id), Document)


def document_page(namespace: str, cursor: str | None) -> Call[DocumentPage]:
    """Read one page of documents."""
    params = {"limit": str(PAGE)} | ({} if cursor is None else {"cursor": cursor})
    return Call("GET", _path(namespace, "documents"), DocumentPage, params=params)


def delete_document(namespace: str, document_id: str) -> Call[None]:
    """Delete one document; sent twice, the second answer would be that there is none."""
    return Call("DELETE", _path(namespace, "documents", document_id), type(None), is_repeatable=False)


def forget(namespace: str, fields: Mapping[str, Any]) -> Call[ForgetReceipt]:
    """Forget a speaker or an entity; sent twice, the second answer would name nothing."""
    path = _path(namespace, "forget")
    return Call("POST", path, ForgetReceipt, fields, is_repeatable=False, extra_s=LONG_WORK_S)


def history(namespace: str, memory_id: str) -> Call[MemoryHistory]:
    """Read what a memory superseded and what superseded it."""
    return Call("GET", _path(namespace, "memories", memory_id, "history"), MemoryHistory)


def export(namespace: str) -> Call[None]:
    """Export a namespace; the answer is a stream of lines."""
    return Call("GET", _path(namespace, "export"), type(None))


def feedback(namespace: str, fields: Mapping[str, Any]) -> Call[FeedbackReceipt]:
    """Say what was relevant; the same id with the same content is stored once."""
    return Call("POST", _path(namespace, "feedback"), FeedbackReceipt, {"id": uuid7(), **fields})


def entities(namespace: str, fields: Mapping[str, Any], cursor: str | None) -> Call[EntityList]:
    """Read one page of entities."""
    params = {"limit": str(PAGE), **_params(fields)} | ({} if cursor is None else {"cursor": cursor})
    return Call("GET", _path(namespace, "entities"), EntityList, params=params)


def entity(namespace: str, entity_id: str, fields: Mapping[str, Any]) -> Call[EntityPage]:
    """Read the page of an entity."""
    return Call("GET", _path(namespace, "entities", entity_id), EntityPage, params=_params(fields))


def neighbors(namespace: str, entity_id: str, fields: Mapping[str, Any]) -> Call[Neighborhood]:
    """Read the entities around one."""
    return Call("GET", _path(namespace, "entities", entity_id, "neighbors"), Neighborhood, params=_params(fields))


def change_aliases(namespace: str, entity_id: str, added: Sequence[str], removed: Sequence[str]) -> Call[EntityAliases]:
    """Give and take aliases; an entity that only an alias kept is gone without it, so taking one is not repeated."""
    path = _path(namespace, "entities", entity_id, "aliases")
    return Call("POST", path, EntityAliases, {"add": added, "remove": removed}, is_repeatable=not removed)


def merge_entity(namespace: str, entity_id: str, into: str) -> Call[MergeReceipt]:
    """Merge an entity into another; sent twice, the second answer would be that they are one already."""
    path = _path(namespace, "entities", entity_id, "merge")
    return Call("POST", path, MergeReceipt, {"into": into}, is_repeatable=False)


def undo_merge(namespace: str, merge_id: str) -> Call[None]:
    """Undo a merge; sent twice, the second answer would be that there is none."""
    return Call("DELETE", _path(namespace, "merges", merge_id), type(None), is_repeatable=False)


def namespaces() -> Call[NamespaceList]:
    """List the namespaces."""
    return Call("GET", "/v1/namespaces", NamespaceList)


def put_namespace(namespace: str, settings: Mapping[str, Any]) -> Call[NamespaceInfo]:
    """Create a namespace or change its settings."""
    return Call("PUT", _path(namespace), NamespaceInfo, settings)


def delete_namespace(namespace: str) -> Call[NamespaceReceipt]:
    """Delete a namespace; sent twice, the second answer would be that there is none."""
    params = {"confirm": namespace}
    return Call("DELETE", _path(namespace), NamespaceReceipt, params=params, is_repeatable=False, extra_s=LONG_WORK_S)


def paths(namespace: str, fields: Mapping[str, Any]) -> Call[EntityPaths]:
    """Find paths between two entities."""
    return Call("GET", _path(namespace, "paths"), EntityPaths, params=_params(fields))


def _params(fields: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Fields as parameters of a query string: texts, lists of texts, and all else as JSON; None is left out."""
    return {name: _param(value) for name, value in fields.items() if value is not None}


def _param(value: Any) -> str | list[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return list(value)
    return _as_json(value).decode().strip('"')


def _path(namespace: str, *parts: str) -> str:
    """The path of a namespace or of what is in it; no id can leave its place in it.

    The server refuses half a surrogate pair.
    """
    names: tuple[Any, ...] = (namespace, *parts)  # numbers, too, of callers that heed no types
    for name in names:
        if not isinstance(name, str) or name in ("", ".", ".."):
            raise InvalidInput(f"{name!r} is no name of a namespace or of what is in it, which is text")
    return "/".join(("/v1/namespaces", *(quote(name, safe="", errors="surrogatepass") for name in names)))
