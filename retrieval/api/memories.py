"""Memories: add a batch, list, read, change, delete."""

from __future__ import annotations

import math
from typing import Annotated, Any

import msgspec
from litestar import Controller, delete, get, patch, post
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from retrieval.api.parameters import MAX_BYTES, Batch, Cursor, Limit, MemoryName, NamespaceName
from retrieval.api.problems import faults_of, problems
from retrieval.api.state import Api
from retrieval.errors import InvalidInput
from retrieval.types.memory import (
    MAX_COMPARED,
    MOST_UPDATED,
    AddResponse,
    AddResult,
    Deleted,
    Kind,
    Label,
    Memory,
    MemoryId,
    MemoryInput,
    MemoryPage,
    MemoryPatch,
    SharedPatch,
    UpdateReceipt,
)
from retrieval.types.search import Filters
from retrieval.validation import Parsed, check_storable, converted, decode

ITEM = "/{memory_id:str}"
Time = Annotated[
    str | None,
    QueryParameter(description="RFC 3339 with a zone; write + as %2B", schema_extra={"format": "date-time"}),
]
_filters_decoder = msgspec.json.Decoder(Filters)


class DeleteRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which memories to delete, by `ids` or by `filters`."""

    ids: Annotated[list[MemoryId], Meta(max_length=MOST_UPDATED)] = []
    filters: Filters = Filters()


class UpdateRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which memories to change, by `ids` or by `filters`, and what to set."""

    ids: Annotated[list[MemoryId], Meta(max_length=MOST_UPDATED)] = []
    filters: Filters = Filters()
    set: SharedPatch


class MemoriesController(Controller):
    """Stored memories."""

    path = "/v1/namespaces/{ns:str}/memories"
    tags = ("memories",)

    @post(status_code=201, opt={MAX_BYTES: math.inf}, responses=problems(409))
    async def add_memories(
        self,
        api: Api,
        ns: NamespaceName,
        data: JSONBody[Batch],
        may_supersede: Annotated[
            bool, QueryParameter(description=f"name memories that may be outdated now; batches of up to {MAX_COMPARED}")
        ] = False,
    ) -> AddResponse:
        """Add or replace memories.

        Only `text` is required. When the call returns, all three legs see the memories. The same id with the same
        content is `unchanged`. A bad memory is `rejected` and the others are stored; if all are bad, the response is a
        422. The namespace is created on first use. With `may_supersede`, each created or updated memory names up to
        three older memories of the same speaker, from other sessions and about the same thing, for `supersedes`.
        """
        memories: list[Parsed] = data.memories
        results = await api.engine.add(ns, memories, may_supersede=may_supersede)
        if all(result.status == "rejected" for result in results):
            pairs = zip(memories, results, strict=True)
            raise InvalidInput(errors=[_fault(index, memory, result) for index, (memory, result) in enumerate(pairs)])
        return AddResponse(results=results)

    @get(responses=problems(404))
    async def list_memories(
        self,
        api: Api,
        ns: NamespaceName,
        filters: Annotated[str | None, QueryParameter(description="all filters as one JSON document")] = None,
        kind: Annotated[list[Kind] | None, QueryParameter(description="any of these kinds")] = None,
        session_id: Annotated[list[str] | None, QueryParameter(description="any of these sessions")] = None,
        document_id: Annotated[list[str] | None, QueryParameter(description="any of these documents")] = None,
        speaker: Annotated[list[str] | None, QueryParameter(description="any of these speakers")] = None,
        tags_all: Annotated[list[Label] | None, QueryParameter(description="all of these tags")] = None,
        tags_any: Annotated[list[Label] | None, QueryParameter(description="any of these tags")] = None,
        created_after: Time = None,
        created_before: Time = None,
        cursor: Cursor = None,
        limit: Limit = 100,
    ) -> MemoryPage:
        """List memories.

        Oldest insertion first, without expired memories. Follow `next_cursor` until it is null. A memory that is
        changed meanwhile appears again at the end.
        """
        given = {
            "kind": kind,
            "session_id": session_id,
            "document_id": document_id,
            "speaker": speaker,
            "tags_all": tags_all,
            "tags_any": tags_any,
            "created_after": created_after,
            "created_before": created_before,
        }
        wanted = parsed_filters(filters, {name: value for name, value in given.items() if value is not None})
        return await api.engine.list(ns, wanted, cursor=cursor or None, limit=limit)

    @get(ITEM, responses=problems(404))
    async def get_memory(self, api: Api, ns: NamespaceName, memory_id: MemoryName) -> Memory:
        """One memory."""
        return await api.engine.get(ns, memory_id)

    @patch(ITEM, responses=problems(404, 409))
    async def patch_memory(
        self, api: Api, ns: NamespaceName, memory_id: MemoryName, data: JSONBody[MemoryPatch]
    ) -> Memory:
        """Change a memory.

        Fields that are left out stay as they are; `null` clears an optional field.
        """
        return await api.engine.patch(ns, memory_id, data)

    @delete(ITEM, status_code=204, responses=problems(404))
    async def delete_memory(self, api: Api, ns: NamespaceName, memory_id: MemoryName) -> None:
        """Delete a memory.

        It is removed from every leg.
        """
        await api.engine.delete(ns, memory_id)

    @post("/update", status_code=200, responses=problems(404, 409))
    async def update_memories(self, api: Api, ns: NamespaceName, data: JSONBody[UpdateRequest]) -> UpdateReceipt:
        """Change the same fields of many memories.

        In one transaction, by `ids` (unknown ones are ignored) or by `filters`, which skip expired memories as the list
        does. Fields that are left out stay as they are; `null` clears an optional field.
        """
        return await api.engine.update(ns, data.set, ids=data.ids, filters=data.filters)

    @post("/delete", status_code=200, responses=problems(404))
    async def delete_memories(self, api: Api, ns: NamespaceName, data: JSONBody[DeleteRequest]) -> Deleted:
        """Delete many memories.

        In one transaction, by `ids` (unknown ones are ignored) or by `filters`. One of the two is required: to delete
        everything, delete the namespace.
        """
        return Deleted(deleted=await api.engine.delete_many(ns, ids=data.ids, filters=data.filters))


def parsed_filters(document: str | None, given: dict[str, Any]) -> Filters:
    """Filters given as JSON, one by one, or both ways, as long as no filter is given twice.

    Raises:
        InvalidInput: a bad value, or a filter given twice; `loc` names the parameter.
    """
    simple = converted(given, Filters)
    check_storable(simple)
    if document is None:
        return simple
    try:
        filters = decode(document.encode(), _filters_decoder)
        check_storable(filters)
    except InvalidInput as exc:
        raise InvalidInput(str(exc), loc=("filters", *exc.loc)) from exc
    for name in given:
        if getattr(filters, name):
            raise InvalidInput(f"`{name}` is given twice", loc=(name,))
    return msgspec.structs.replace(filters, **{name: getattr(simple, name) for name in given})


def _fault(index: int, memory: Parsed, result: AddResult) -> tuple[tuple[str | int, ...], str]:
    """Where in the body a memory of the batch was rejected, and why."""
    if isinstance(memory, InvalidInput):
        [fault] = faults_of(memory)
        return tuple(fault.loc), fault.msg
    field, separator, reason = (result.error or "").partition(": ")
    if separator and field.split(".")[0] in MemoryInput.__struct_fields__:
        steps = (int(step) if step.isdecimal() else step for step in field.split("."))
        return ("memories", index, *steps), reason
    return ("memories", index), result.error or "rejected"
