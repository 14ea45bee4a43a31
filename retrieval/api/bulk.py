"""Add memories as newline-delimited JSON, streamed in and out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, NamedTuple

import msgspec
from litestar import Controller, Request, post
from litestar.exceptions import InternalServerException
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from retrieval.api.parameters import NDJSON_TYPE, NamespaceName, require_media_type
from retrieval.api.problems import describe, log_failure, problems
from retrieval.api.state import Api, AppState
from retrieval.errors import InvalidInput
from retrieval.lifecycle.export import MARK, ExportHeader, read_header
from retrieval.types.memory import AddResult, MemoryInput
from retrieval.validation import MAX_MEMORY_BYTES, Parsed, parse_memory

CHUNK_LINES = 256

CHUNK_BYTES = 16 * 1024 * 1024
"""Most bytes of the lines of a chunk, unless one line has more."""

CHUNKS_AT_ONCE = 4
"""While one is written the next are embedded; those that share an id or a session are written in their order."""


class BulkResult(AddResult, frozen=True, kw_only=True):
    """What became of the memory of one line; lines count from 1."""

    line: int


_encoder = msgspec.json.Encoder()


class BulkController(Controller):
    """A batch without an end."""

    path = "/v1/namespaces/{ns:str}/memories/bulk"
    tags = ("memories",)

    @post(status_code=200, request_max_body_size=None, responses=problems(409, body=True))
    async def bulk_add_memories(self, api: Api, ns: NamespaceName, request: Request[Any, Any, Any]) -> ASGIApp:
        """Add or replace memories from a stream.

        One memory per line, one result per line that is not blank, in the same order; results are sent while lines
        still arrive, after every 256. A broken line is rejected and the rest goes on. A line has at most 8,388,608
        bytes; the body has no limit. Should the database fail on the way, all lines that it did not take are rejected.
        Lines with ids can be sent again after that: what is there is `unchanged`.

        An export is taken back as it was written. Its first line has no result; a namespace without memories gets its
        settings, and its aliases and merges once all lines are in.
        """
        require_media_type(request, NDJSON_TYPE, body_is_empty=False)
        return _BulkAnswer(api, ns, lines(request.stream(), MAX_MEMORY_BYTES))


class _BulkAnswer:
    """The streamed answer.

    Reading and sending run side by side and results wait in memory, so that a client that sends
    its whole body before it reads anything cannot block both sides.
    """

    def __init__(self, api: AppState, namespace: str, source: AsyncIterator[Line]) -> None:
        self._api = api
        self._source = source
        self._engine = api.engine
        self._namespace = namespace
        self._failure: str | None = None
        self._added_any = False
        self._header: ExportHeader | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; a failure before the first result is a problem, one after it rejects lines."""
        under_way: asyncio.Queue[asyncio.Task[bytes] | None] = asyncio.Queue()
        unsent: set[asyncio.Task[bytes]] = set()
        room = asyncio.Semaphore(CHUNKS_AT_ONCE)
        last: asyncio.Task[bytes] | None = None

        async def work() -> None:
            nonlocal last
            try:
                async for chunk in self._chunks():
                    await room.acquire()
                    if self._header and last:  # an export's memories keep their order of insertion
                        await asyncio.wait([last])
                    last = task = asyncio.create_task(self._add(chunk, scope["state"]["request_id"]))
                    task.add_done_callback(lambda _: room.release())
                    unsent.add(task)
                    under_way.put_nowait(task)
                    if not self._added_any:  # nothing is begun beside the first, so that its failure leaves nothing
                        await asyncio.wait([task])
                        if task.exception():
                            return
                if self._header and self._failure is None:
                    if last:
                        await asyncio.wait([last])
                    await self._engine.lifecycle.complete_import(self._namespace, self._header)
            finally:
                under_way.put_nowait(None)

        async def answers() -> AsyncIterator[bytes]:
            while (task := await under_way.get()) is not None:
                yield await task
                unsent.discard(task)
            await worker

        worker = asyncio.create_task(work())
        try:
            started = False
            async for content in answers():
                if not started:
                    await send(_START)
                    started = True
                await send({"type": "http.response.body", "body": content, "more_body": True})
            if not started:
                await send(_START)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except InternalServerException:  # as the request says that the client is gone
            return
        finally:
            for left in (worker, *unsent):
                left.cancel()
            await asyncio.gather(worker, *unsent, return_exceptions=True)

    async def _chunks(self) -> AsyncIterator[list[tuple[int, Parsed]]]:
        """Parsed lines, of limited number and size; an id comes once in a chunk, so that the later line wins."""
        chunk: list[tuple[int, Parsed]] = []
        ids: set[str] = set()
        size = 0
        async for line in self._source:
            if line.number == 1 and line.content and line.content.startswith(MARK):
                self._header = read_header(line.content)
                await self._engine.prepare_import(self._namespace, self._header.settings)
                continue
            memory = await self._parsed(line)
            memory_id = memory.id if isinstance(memory, MemoryInput) else None
            line_bytes = len(line.content or b"")
            if chunk and (len(chunk) == CHUNK_LINES or size + line_bytes > CHUNK_BYTES or memory_id in ids):
                yield chunk
                chunk, ids, size = [], set(), 0
            size += line_bytes
            chunk.append((line.number, memory))
            if memory_id is not None:
                ids.add(memory_id)
        if chunk:
            yield chunk

    async def _parsed(self, line: Line) -> Parsed:
        if line.content is None:
            return InvalidInput(f"the line is longer than {MAX_MEMORY_BYTES:,} bytes", loc=("memories", line.number))
        return await self._api.decoded(line.content, partial(parse_memory, index=line.number))

    async def _add(self, chunk: list[tuple[int, Parsed]], request_id: str) -> bytes:
        """Add one chunk; its result lines."""
        results: list[AddResult] | None = None
        if self._failure is None:
            try:
                results = await self._engine.add(self._namespace, [memory for _, memory in chunk])
                self._added_any = True
            except Exception as exc:
                if not self._added_any:
                    raise
                log_failure(exc, request_id, self._api.settings.secrets)
                self._failure = describe(exc).detail
        if results is None:
            ids = [memory.id if isinstance(memory, MemoryInput) else None for _, memory in chunk]
            results = [AddResult(id=memory_id, status="rejected", error=self._failure) for memory_id in ids]
        return _encoder.encode_lines(
            BulkResult(line=number, **msgspec.structs.asdict(result))
            for (number, _), result in zip(chunk, results, strict=True)
        )


_START: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", NDJSON_TYPE.encode())],
}


class Line(NamedTuple):
    """One line that is not blank: its number from 1, blank lines counted, and its content, None if over the limit."""

    number: int
    content: bytes | None


async def lines(chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[Line]:
    """Split at line feeds, whatever the chunks' bounds; blank lines are skipped, overlong ones have no content."""
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
