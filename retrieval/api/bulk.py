"""Add memories as newline-delimited JSON, streamed in and out."""

from __future__ import annotations

import asyncio
import codecs
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import IO, Any, NamedTuple

import msgspec
from litestar import Controller, Request, post
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from retrieval.api.parameters import NDJSON_TYPE, NamespaceName, require_media_type
from retrieval.api.problems import describe, log_failure, problems
from retrieval.api.state import Api, AppState
from retrieval.errors import InvalidInput
from retrieval.ingest.batches import Incoming, batches
from retrieval.lifecycle.export import MARK, ExportHeader, read_header
from retrieval.lifecycle.jobs import Progress
from retrieval.tasks import cancel, in_order
from retrieval.types.memory import AddResult, MemoryInput
from retrieval.validation import MAX_MEMORY_BYTES, Parsed, parse_memory

log = logging.getLogger(__name__)

CHUNK_LINES = 256

CHUNK_BYTES = 16 * 1024 * 1024
"""Most bytes of the lines of a chunk, unless one line has more."""

CHUNKS_AT_ONCE = 4
"""While one is written, the next are embedded; chunks that share an id or a session are written in order."""

PIECES_AHEAD = 128
"""Pieces of the body that are read ahead, of about 64 KB each under load."""

SENT_BYTES = 64 * 1024

HELD_BYTES = 1024 * 1024
"""Results that are kept in memory until the body ends; more go to a temporary file."""


class BulkResult(AddResult, frozen=True, kw_only=True):
    """The outcome for the memory on one line; lines count from 1."""

    line: int


_encoder = msgspec.json.Encoder()


class BulkController(Controller):
    """A batch of any length."""

    path = "/v1/namespaces/{ns:str}/memories/bulk"
    tags = ("memories",)

    @post(status_code=200, request_max_body_size=None, responses=problems(409))
    async def bulk_add_memories(self, api: Api, ns: NamespaceName, request: Request[Any, Any, Any]) -> ASGIApp:
        """Add or replace memories from a stream.

        One memory per line, one result per line that is not blank, in the same order. Lines are stored while others
        are still arriving, 256 at a time; the response begins when the body has ended. An invalid line is rejected and
        the rest continue. A line has at most 8,388,608 bytes; the body has no limit. If the database fails midway, all
        lines not yet stored are rejected; if the client disconnects, no more are stored. Lines with ids can be sent
        again after that: those already stored are `unchanged`.

        An export can be sent as it was written. Its first line has no result; a namespace without memories gets its
        settings. Once all lines are stored, its aliases and merges are restored, except those of an entity that no
        memory mentions. If it ends early, they are not, and the import's job is `failed`.
        """
        require_media_type(request, NDJSON_TYPE, body_is_empty=False)
        return _BulkAnswer(api, ns)


class _BulkAnswer:
    """The streamed answer.

    It begins when the body has ended: most clients read nothing before that, and a proxy such as nginx stops sending
    the body once a response begins. The body is read while memories are added, so that a disconnect is noticed.
    """

    def __init__(self, api: AppState, namespace: str) -> None:
        self._api = api
        self._engine = api.engine
        self._namespace = namespace
        self._pieces: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue(PIECES_AHEAD)
        self._body_ended = False
        self._header: ExportHeader | None = None
        self._job = Progress(kind="import", namespace=namespace)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; a failure before the first result becomes a problem response, a later one rejects lines."""
        async with self._engine.jobs.following(self._job):
            reading = asyncio.create_task(self._read(receive))
            answering = asyncio.create_task(self._answer(send, scope["state"]["request_id"]))
            try:
                await asyncio.wait((reading, answering), return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    answering.result()
                else:  # the client has left
                    reading.result()
                    self._job.state = "interrupted"
            finally:
                await cancel(reading, answering)

    async def _read(self, receive: Receive) -> None:
        """Read the body ahead of its lines; return when the client disconnects."""
        while (message := await receive())["type"] == "http.request":
            self._body_ended = not message.get("more_body", False)
            await self._pieces.put((message.get("body", b""), self._body_ended))

    async def _body(self) -> AsyncIterator[bytes]:
        ended = False
        while not ended:
            piece, ended = await self._pieces.get()
            yield piece

    async def _answer(self, send: Send, request_id: str) -> None:
        """Hold the results until the body has ended, then send them as they arrive."""
        started = False
        with SpooledTemporaryFile(HELD_BYTES) as held:
            async with aclosing(self._results(request_id)) as results:
                async for content in results:
                    held.write(content)
                    if self._body_ended:
                        if not started:
                            await send(_start())
                            started = True
                        await _send_all(held, send)
        if not started:
            await send(_start())
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _results(self, request_id: str) -> AsyncGenerator[bytes, None]:
        """Add the chunks, some concurrently; yield their results in order."""

        def at_once() -> int:
            # The first chunk runs alone, so that nothing is stored if it fails; an export's memories keep their
            # insertion order.
            return CHUNKS_AT_ONCE if self._job.done and self._header is None else 1

        chunks = batches(self._memories(), most=CHUNK_LINES, most_bytes=CHUNK_BYTES)
        async with aclosing(in_order(chunks, partial(self._add, request_id), at_once)) as added:
            async for _, results in added:
                yield results
        if self._header and self._job.error is None:
            if self._job.done < self._header.memories:
                early = f"the export ends early: {self._job.done} of {self._header.memories} memories are in it"
                self._job.state, self._job.error = "failed", early
                log.warning(early)
                return
            undone = await self._engine.lifecycle.complete_import(self._namespace, self._header)
            if undone:
                log.warning("%d aliases or merges of an export were not restored", len(undone))

    async def _memories(self) -> AsyncIterator[ParsedLine]:
        """The lines, without a byte order mark and an export's header."""
        async for line in lines(self._body(), MAX_MEMORY_BYTES):
            if line.number == 1 and line.content is not None:
                line = Line(1, line.content.removeprefix(codecs.BOM_UTF8))
            if line.number == 1 and line.content and line.content.startswith(MARK):
                self._header = read_header(line.content)
                self._job.total = self._header.memories
                await self._engine.prepare_import(self._namespace, self._header.settings)
            elif line.content is None or line.content.strip():
                memory = await self._parsed(line)
                yield ParsedLine(number=line.number, memory=memory, size=len(line.content or b""))

    async def _parsed(self, line: Line) -> Parsed:
        if line.content is None:
            return InvalidInput(f"the line is longer than {MAX_MEMORY_BYTES:,} bytes", loc=("memories", line.number))
        return await self._api.decoded(line.content, partial(parse_memory, index=line.number))

    async def _add(self, request_id: str, chunk: list[ParsedLine]) -> bytes:
        """Add one chunk; its result lines."""
        results: list[AddResult] | None = None
        if self._job.error is None:
            try:
                results = await self._engine.add(self._namespace, [line.memory for line in chunk])
            except Exception as exc:
                if not self._job.done:
                    raise
                log_failure(exc, request_id, self._api.settings.secrets)
                self._job.state, self._job.error = "failed", describe(exc).detail
        if results is None:
            ids = [line.memory.id if isinstance(line.memory, MemoryInput) else None for line in chunk]
            results = [AddResult(id=memory_id, status="rejected", error=self._job.error) for memory_id in ids]
        self._job.done += len(chunk)
        return _encoder.encode_lines(
            BulkResult(line=line.number, **msgspec.structs.asdict(result))
            for line, result in zip(chunk, results, strict=True)
        )


def _start() -> Message:
    return {"type": "http.response.start", "status": 200, "headers": [(b"content-type", NDJSON_TYPE.encode())]}


async def _send_all(held: IO[bytes], send: Send) -> None:
    """Send what a file holds and empty it."""
    held.seek(0)
    while content := held.read(SENT_BYTES):
        await send({"type": "http.response.body", "body": content, "more_body": True})
    held.seek(0)
    held.truncate()


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedLine(Incoming):
    """The memory of a line; its number from 1."""

    number: int


class Line(NamedTuple):
    """One line that is not blank: its number from 1, blank lines counted, and its content, None if over the limit."""

    number: int
    content: bytes | None


async def lines(chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[Line]:
    """Split at line feeds, across chunks; blank lines are skipped, overlong ones have no content."""
    number = 0
    pending = bytearray()
    overlong = False
    async for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            number += 1
            if overlong or len(pending) + len(piece) > max_bytes:
                yield Line(number, None)
            else:
                content = bytes(pending) + piece
                if content.strip():
                    yield Line(number, content)
            pending.clear()
            overlong = False
        if overlong or len(pending) + len(rest) > max_bytes:
            overlong = True
            pending.clear()
        else:
            pending += rest
    if overlong:
        yield Line(number + 1, None)
    elif pending.strip():
        yield Line(number + 1, bytes(pending))
