"""What becomes of memories after they were written: export, history, forgetting."""

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
    """Many memories at once, and what became of one."""

    path = "/v1/namespaces/{ns:str}"
    tags = ("memories",)

    @get("/export", media_type=NDJSON_TYPE, responses=problems(404))
    async def export_namespace(self, api: Api, ns: NamespaceName) -> Stream:
        """Export a namespace as JSON lines.

        The first line has the version of the format, the number of memories and the namespace's settings; a memory
        follows on each line, superseded and expired ones too, in the order of insertion and as it stood when the export
        began. `trivet import` makes the same namespace of it. An export that fails on the way ends without its last
        chunk, and so does one of which nothing was taken for five minutes.
        """
        pieces = api.engine.lifecycle.export(ns)
        return Stream(_resumed(await anext(pieces), pieces), media_type=NDJSON_TYPE)

    @get("/memories/{memory_id:str}/history", responses=problems(404))
    async def memory_history(self, api: Api, ns: NamespaceName, memory_id: MemoryName) -> MemoryHistory:
        """What became of a memory.

        The memory with those that it superseded and those that superseded it, in turn, the oldest first;
        `supersedes` and `superseded_by` tell the branches. At most 1,000.
        """
        return await api.engine.lifecycle.history(ns, memory_id)

    @post("/forget", status_code=200, responses=problems(404))
    async def forget(self, api: Api, ns: NamespaceName, data: JSONBody[ForgetRequest]) -> ForgetReceipt:
        """Forget a speaker or an entity.

        Deletes what the `speaker` said, in one transaction, and tells which memories of others mention that name, for a
        decision; or deletes all that mentions the `entity`. A speaker is found by the name as stored, an entity by its
        name, its aliases and what was merged with it; aliases and merges of it that were made by hand go, too. A name
        of several words is also found within a longer one: "Ana Sousa" in "Ana Sousa Lima", "New York" in "New York
        Times". With `dry_run` nothing is deleted.
        """
        return await api.engine.lifecycle.forget(ns, data)


async def _resumed(first: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The piece that was already read, so that a failure before it is a problem, and those after it."""
    yield first
    async for piece in rest:
        yield piece
