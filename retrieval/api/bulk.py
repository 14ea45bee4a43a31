"""Add memories as newline-delimited JSON, streamed in and out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec
from litestar import Request, post
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from retrieval.api.batches import Parsed
from retrieval.api.bodies import NDJSON_TYPE, require_media_type
from retrieval.api.ndjson import ClientGone, Line, body_chunks, lines
from retrieval.api.operation import Operation
from retrieval.api.paths import namespace_of
from retrieval.api.problems import describe, log_failure, secrets_of
from retrieval.api.state import engine_of, shared_of
from retrieval.errors import InvalidInput
from retrieval.parsing import parse_memory
from retrieval.types import AddResult, MemoryInput

if TYPE_CHECKING:
    from retrieval.engine import Trivet

CHUNK_LINES = 256
MAX_LINE_BYTES = 1024 * 1024

CHUNKS_AT_ONCE = 4
"""While one is written the next are embedded; those that share an id or a session are written in their order."""


class BulkResult(AddResult, frozen=True, kw_only=True):
    """What became of the memory of one line; lines count from 1."""

    line: int


_encoder = msgspec.json.Encoder()

_BULK = Operation(
    id="bulk_add_memories",
    tag="memories",
    summary="Add or replace memories from a stream",
    description=f"One memory per line, one result per line that is not blank, in the same order; results are sent "
    f"while lines still arrive, after every {CHUNK_LINES}. A broken line is rejected and the rest goes on. A line has "
    f"at most {MAX_LINE_BYTES:,} bytes; the body has no limit. Should the database fail on the way, all lines that it "
    "did not take are rejected. Lines with ids can be sent again after that: those that are there are `unchanged`.",
    request=MemoryInput,
    request_type=NDJSON_TYPE,
    response=BulkResult,
    response_type=NDJSON_TYPE,
    errors=(409, 503),
    example={"id": "m1", "text": "Caroline: I went to the support group yesterday."},
    answer={"id": "m1", "status": "created", "error": None, "line": 1},
)


@post(
    "/v1/namespaces/{ns:str}/memories/bulk", status_code=200, request_max_body_size=None, opt=_BULK.as_opt
)  # fmt: skip
async def bulk_add_memories(request: Request[Any, Any, Any]) -> ASGIApp:
    """Add line by line."""
    name = namespace_of(request)
    require_media_type(request, NDJSON_TYPE, body_is_empty=False)
    settings = shared_of(request).settings
    return _BulkAnswer(engine_of(request), name, secrets_of(settings))


class _BulkAnswer:
    """The streamed answer.

    Reading and sending run side by side and results wait in memory, so that a client that sends
    its whole body before it reads anything cannot block both sides.
    """

    def __init__(self, engine: Trivet, namespace: str, secrets: tuple[str, ...]) -> None:
        self._engine = engine
        self._namespace = namespace
        self._secrets = secrets
        self._failure: str | None = None
        self._added_any = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; a failure before the first result is a problem, one after it rejects lines."""
        under_way: asyncio.Queue[asyncio.Task[bytes] | None] = asyncio.Queue()
        unsent: set[asyncio.Task[bytes]] = set()
        room = asyncio.Semaphore(CHUNKS_AT_ONCE)

        async def work() -> None:
            try:
                async for chunk in _chunked(lines(body_chunks(receive), MAX_LINE_BYTES)):
                    await room.acquire()
                    task = asyncio.create_task(self._add(chunk, scope["state"]["request_id"]))
                    task.add_done_callback(lambda _: room.release())
                    unsent.add(task)
                    under_way.put_nowait(task)
                    if not self._added_any:  # nothing is begun beside the first, so that its failure leaves nothing
                        await asyncio.wait([task])
                        if task.exception():
                            return
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
        except ClientGone:
            return
        finally:
            for left in (worker, *unsent):
                left.cancel()
            await asyncio.gather(worker, *unsent, return_exceptions=True)

    async def _add(self, chunk: list[tuple[int, Parsed]], request_id: str) -> bytes:
        """Add one chunk; its result lines."""
        if self._failure is None:
            try:
                results = await self._engine.add(self._namespace, [memory for _, memory in chunk])
            except Exception as exc:
                if not self._added_any:
                    raise
                found = describe(exc)
                log_failure(exc, found.status, request_id, self._secrets)
                self._failure = found.detail
            else:
                self._added_any = True
                return _encoder.encode_lines(
                    [
                        BulkResult(id=result.id, status=result.status, error=result.error, line=number)
                        for (number, _), result in zip(chunk, results, strict=True)
                    ]
                )
        return _encoder.encode_lines(
            [
                BulkResult(
                    id=memory.id if isinstance(memory, MemoryInput) else None,
                    status="rejected",
                    error=self._failure,
                    line=number,
                )
                for number, memory in chunk
            ]
        )


_START: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", NDJSON_TYPE.encode())],
}


async def _chunked(source: AsyncIterator[Line]) -> AsyncIterator[list[tuple[int, Parsed]]]:
    """At most `CHUNK_LINES` parsed lines at a time; an id comes once in a chunk, so that the later line wins."""
    chunk: list[tuple[int, Parsed]] = []
    ids: set[str] = set()
    async for line in source:
        memory = _parsed(line)
        memory_id = memory.id if isinstance(memory, MemoryInput) else None
        if len(chunk) == CHUNK_LINES or memory_id in ids:
            yield chunk
            chunk, ids = [], set()
        chunk.append((line.number, memory))
        if memory_id is not None:
            ids.add(memory_id)
    if chunk:
        yield chunk


def _parsed(line: Line) -> Parsed:
    if line.content is None:
        return InvalidInput(f"the line is longer than {MAX_LINE_BYTES:,} bytes", loc=("memories", line.number))
    return parse_memory(line.content, line.number)
