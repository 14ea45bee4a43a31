"""Memories after they are written: export, history, forgetting."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from litestar import Controller, get, post
from litestar.params import JSONBody
from litestar.response import Stream

from retrieval.api.parameters import NDJSON_TYPE, MemoryName, NamespaceName
from retrieval.api.problems import problems
from retrieval.api.state import Api
from retrieval.types.memory import ForgetReceipt, ForgetRequest, MemoryHistory


class LifeCycleController(Controller):
    """Export, history and forgetting."""

    path = "/v1/namespaces/{ns:str}"
    tags = ("memories",)

    @get("/export", media_type=NDJSON_TYPE, responses=problems(404))
    async def export_namespace(self, api: Api, ns: NamespaceName) -> Stream:
        """Export a namespace as JSON lines.

        The first line has the version of the format, the number of memories and the namespace's settings. Each further
        line is a memory as of the start of the export, in insertion order, including superseded and expired ones.
        `trivet import` restores the namespace from it. If the export fails midway, or the client reads nothing for five
        minutes, the response ends without its last chunk.
        """
        pieces = api.engine.lifecycle.export(ns)
        return Stream(_resumed(await anext(pieces), pieces), media_type=NDJSON_TYPE)

    @get("/memories/{memory_id:str}/history", responses=problems(404))
    async def memory_history(self, api: Api, ns: NamespaceName, memory_id: MemoryName) -> MemoryHistory:
        """The history of a memory.

        The memory with all that it superseded or that superseded it, directly or through others, oldest first;
        `supersedes` and `superseded_by` show the branches. At most 1,000.
        """
        return await api.engine.lifecycle.history(ns, memory_id)

    @post("/forget", status_code=200, responses=problems(404))
    async def forget(self, api: Api, ns: NamespaceName, data: JSONBody[ForgetRequest]) -> ForgetReceipt:
        """Forget a speaker or an entity.

        Deletes what the `speaker` said, in one transaction, and lists others' memories that mention that name, for you
        to decide; or deletes everything that mentions the `entity`. A speaker matches by the name as stored, an entity
        by its name, its aliases and the entities merged with it; its manual aliases and merges are deleted, too. A name
        of several words also matches within a longer one: "Ana Sousa" in "Ana Sousa Lima", "New York" in "New York
        Times". With `dry_run` nothing is deleted.
        """
        return await api.engine.lifecycle.forget(ns, data)


async def _resumed(first: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """All pieces; the first is read beforehand, so that a failure before it becomes a problem response."""
    yield first
    async for piece in rest:
        yield piece
