"""Calls of the HTTP API, except for sending them: what both clients share."""

from __future__ import annotations

import json
import re
from base64 import b64encode
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
from retrieval.types.memory import AddResponse, AddResult, Memory, MemoryInput
from trivet.errors import CLASS_OF, InvalidInput, NotFound, ServerError, TrivetError, Unreachable

T = TypeVar("T")

NewMemory = str | Mapping[str, Any] | MemoryInput | Memory
"""What `add` takes: a text, the fields of a memory, or a memory."""

BATCH = 200
"""Most memories sent in one request."""

BATCH_BYTES = 2 * 1024 * 1024
"""A batch ends with the memory that exceeds this; even the longest one keeps it below the 16 MiB of servers."""

PAGE = 200
"""Memories, documents or entities read in one request."""

LONG_WORK_S = 600.0
"""How much longer an answer may take if much changes at once: embedding 1,000 pages takes minutes."""

EMBEDDED_BYTES_PER_S = 2_000
"""Embedding is at least this fast, even on two busy processors."""

RETRIED = frozenset({429, 503})
"""Statuses after which the same request may succeed."""

_LAST_PORT = 2**16 - 1
_STRAY_AT = re.compile(r"[^/?#]*//[^/?#]*[/?#].*@", re.DOTALL)

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0

_STRING_OR_NOT_FINITE = re.compile(r'("(?:[^"\\]|\\.)*")|NaN|-?Infinity')
"""A string (the group) or a number that is not finite, in JSON as Python writes it."""


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
    """One request and the type of its answer; `is_repeatable`: sending it twice does the same as sending it once.

    It is not if the second answer would differ, for example because nothing is left to delete. `params` go into the
    query string, except those that are None; `extra_s` is how much longer to wait for the answer.
    """

    method: str
    path: str
    answer: type[T]
    body: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)
    is_repeatable: bool = True
    extra_s: float = 0.0

    @property
    def url(self) -> httpx.URL:
        """The path with the parameters.

        Raises:
            InvalidInput: together they are longer than an address may be.
        """
        given = {name: _param(value) for name, value in self.params.items() if value is not None}
        query = urlencode(given, doseq=True, errors="surrogatepass")
        try:
            return httpx.URL(f"{self.path}?{query}" if query else self.path)
        except httpx.InvalidURL as exc:
            raise InvalidInput(f"{exc}: give fewer or shorter values") from exc

    @property
    def content(self) -> bytes | None:
        """The body as JSON; bytes already are."""
        return self.body if isinstance(self.body, bytes | None) else _as_json(self.body)

    def result(self, response: httpx.Response) -> T:
        """The answer.

        Raises:
            TrivetError: the server refused the request or failed, or is not a Trivet server.
        """
        if not response.is_success:
            raise error_of(response)
        try:
            return msgspec.json.decode(response.content or b"null", type=self.answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise ServerError(f"no answer of Trivet from {response.url}: {exc}") from exc


def url_of(base_url: str) -> httpx.URL:
    """The address of a server; raises InvalidInput for one that cannot be read."""
    if _STRAY_AT.match(base_url):  # what comes before it would be taken for a port or a path, and be shown
        stray = "the address has a stray @; in a password @ is written %40, / %2F, ? %3F and # %23"
        raise InvalidInput(stray, loc=("base_url",))
    shown = base_url.rpartition("@")[2]  # without a password
    try:
        url = httpx.URL(base_url)
        url.raw_host.decode("ascii").encode("idna")  # as sockets do
    except (httpx.InvalidURL, UnicodeError) as exc:
        raise InvalidInput(f"{shown} is no address: {exc}", loc=("base_url",)) from exc
    if url.scheme not in ("http", "https"):
        raise InvalidInput(f"{shown} is no address: it must begin with http:// or https://", loc=("base_url",))
    if url.query or url.fragment:
        raise InvalidInput("the address must have no query (?) and no fragment (#)", loc=("base_url",))
    if (url.port or 0) > _LAST_PORT:  # the system would take its last sixteen bits
        raise InvalidInput(f"{shown} is no address: its port is above {_LAST_PORT}", loc=("base_url",))
    return url


def without_user(url: httpx.URL) -> httpx.URL:
    """An address as it may be shown: without a user and password."""
    return url.copy_with(userinfo=b"")


def headers_of(api_key: str | None, url: httpx.URL) -> dict[bytes, bytes]:
    """The headers of every request, with the key or else the user and password in the address.

    Raises:
        InvalidInput: there are both, or no header can hold the key, which is not shown.
    """
    headers = {b"Content-Type": b"application/json"}
    if api_key and url.userinfo:
        raise InvalidInput("the user in base_url needs the same header as api_key: give one", loc=("api_key",))
    if url.userinfo:
        headers[b"Authorization"] = b"Basic " + b64encode(f"{url.username}:{url.password}".encode())
    if api_key:
        if not api_key.isprintable() or api_key != api_key.strip():
            raise InvalidInput("api_key must be one line of text with no blanks around it", loc=("api_key",))
        headers[b"Authorization"] = f"Bearer {api_key}".encode()
    return headers


def error_of(response: httpx.Response) -> TrivetError:
    """The error that a response reports."""
    try:
        problem = msgspec.json.decode(response.content, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):  # from a proxy
        problem = _Problem()
    kind = CLASS_OF.get(response.status_code, ServerError)
    if kind is NotFound and (problem.type != "/docs#not-found" or problem.detail == NO_SUCH_PATH):
        return ServerError(f"no API of Trivet at {response.url}")
    target = f" to {response.headers['location']}" if response.has_redirect_location else ""
    status = f"{response.status_code} {response.reason_phrase} from {response.url}{target}"
    message = problem.detail or problem.title or status
    if kind is InvalidInput and problem.errors:
        errors = [(tuple(fault.loc), fault.msg) for fault in problem.errors]
        return InvalidInput(message, loc=errors[0][0], errors=errors)
    return kind(message)


def check_lines(response: httpx.Response) -> None:
    """Check that a response is JSON lines; raises ServerError if it is something else, such as a login page."""
    if not response.headers.get("content-type", "").startswith("application/x-ndjson"):
        raise ServerError(f"no answer of Trivet from {response.url}")


def unreachable(base_url: httpx.URL, error: httpx.RequestError) -> Unreachable:
    """The error for a server that does not answer; names its address."""
    return Unreachable(f"no answer from {base_url}: {type(error).__name__}{f': {error}' if str(error) else ''}")


def may_succeed(call: Call[Any], outcome: httpx.Response | httpx.RequestError) -> bool:
    """Whether to send a call again: after no answer or a status in `RETRIED`, if it is repeatable.

    A request that could not connect did nothing, so it is always repeatable.
    """
    if isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout):
        return True
    return call.is_repeatable and (isinstance(outcome, httpx.RequestError) or outcome.status_code in RETRIED)


def timeout_of(call: Call[Any], usual: httpx.Timeout) -> httpx.Timeout:
    """The timeouts of a call: its own for the answer, the usual ones for the rest."""
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
    elif isinstance(memory, MemoryInput | Memory):
        fields = {name: value for name, value in msgspec.structs.asdict(memory).items() if name != "superseded_by"}
    else:
        raise InvalidInput(f"a memory is a text, its fields or a trivet.Memory, not {memory!r:.100}", loc=("memories",))
    _check_text(fields.get("text"))
    if fields.get("id") is None:
        fields["id"] = uuid7()
    return fields


def _check_text(text: Any) -> None:
    """Refuse bytes, which JSON would hold as their base64."""
    if isinstance(text, bytes):
        raise InvalidInput("must be text, not bytes", loc=("text",))


def _as_json(value: Any) -> bytes:
    """A value as JSON; lone surrogates and numbers that are not finite stay, so that the server can say where."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=_dumped)
        if b"null" in encoded:  # numbers that are not finite have become null, too
            json.dumps(msgspec.to_builtins(value, enc_hook=_dumped), allow_nan=False)
        return encoded
    except ValueError:
        text = json.dumps(msgspec.to_builtins(value, enc_hook=_dumped))
        return _STRING_OR_NOT_FINITE.sub(lambda found: found[1] or "1e999", text).encode()


def _dumped(value: Any) -> Any:
    """The fields of a pydantic model, such as a message of OpenAI's or Anthropic's library, or what NumPy holds."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def add(path: str, memories: Sequence[bytes], *, may_supersede: bool) -> Call[AddResponse]:
    """Add or replace memories that have ids."""
    params = {"may_supersede": True} if may_supersede else {}
    body = b'{"memories":[%s]}' % b",".join(memories)
    return Call("POST", path, AddResponse, body, params, extra_s=len(body) / EMBEDDED_BYTES_PER_S)


def rejected(memories: Sequence[bytes], refusal: InvalidInput) -> list[AddResult]:
    """The outcome of a batch whose memories are all bad; raises the refusal if it is about something else."""
    if refusal.loc[:1] != ("memories",):
        raise refusal
    reasons = {loc[:2]: InvalidInput(reason, loc=loc[2:]).located for loc, reason in refusal.errors}
    ids = [json.loads(memory)["id"] for memory in memories]  # msgspec refuses lone surrogates
    return [
        AddResult(id=memory_id, status="rejected", error=reasons.get(("memories", number), str(refusal)))
        for number, memory_id in enumerate(ids)
    ]


def update(path: str, fields: Mapping[str, Any]) -> Call[Memory]:
    """Change fields of a memory."""
    _check_text(fields.get("text"))
    body = _as_json(fields)
    return Call("PATCH", path, Memory, body, extra_s=len(body) / EMBEDDED_BYTES_PER_S)


def listed(ids: Iterable[str]) -> str | list[str]:
    """Ids as JSON; a text does not become a list of its letters, so that the server refuses it."""
    return ids if isinstance(ids, str) else list(ids)


def page(path: str, answer: type[T], fields: Mapping[str, Any], cursor: str | None) -> Call[T]:
    """Read one page of a list."""
    params = {"limit": PAGE, **fields} | ({} if cursor is None else {"cursor": cursor})
    return Call("GET", path, answer, params=params)


def document_fields(text: str | None, path: PathLike[str] | str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A document as a JSON object; one without an id gets one here, so that it may be sent twice.

    Raises:
        InvalidInput: both or neither of a text and a path; a file that is empty or too large.
        OSError: the file cannot be read.
    """
    if (text is None) == (path is None):
        raise InvalidInput("give a text or a path", loc=("text",))
    _check_text(text)
    if path is not None:
        read = document_of(Path(path))
        metadata = fields.get("metadata", {})
        if isinstance(metadata, Mapping):  # the server refuses anything else
            metadata = {**read.metadata, **metadata}
        known = {"id": read.id, "content_base64": read.content_base64, "media_type": read.media_type}
        return {**known, **fields, "metadata": metadata}
    return {"text": text, **fields, "id": fields.get("id") or uuid7()}


def _param(value: Any) -> Any:
    """A field as a parameter of a query string: a text, a list of texts, or anything else as JSON."""
    return value if isinstance(value, str | list | tuple) else _as_json(value).decode().strip('"')


def path_of(namespace: str, *parts: str) -> str:
    """The path of a namespace or of something in it; ids are quoted, so that none can change the path.

    The server refuses half a surrogate pair.
    """
    names: tuple[Any, ...] = (namespace, *parts)  # callers without a type checker may pass numbers
    for name in names:
        if not isinstance(name, str) or name in ("", ".", ".."):
            raise InvalidInput(f"a namespace or an id must be text, and neither empty nor dots: {name!r}")
    return "/".join(("/v1/namespaces", *(quote(name, safe="", errors="surrogatepass") for name in names)))
