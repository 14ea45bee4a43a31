"""Memories: add a batch, list, read, change, delete."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Request, delete, get, patch, post
from msgspec import Meta, Struct

from retrieval.api.batches import Parsed, parse_batch
from retrieval.api.bodies import JSON_TYPE, read_json, require_media_type
from retrieval.api.listing import PARAMETERS, read_listing
from retrieval.api.operation import Operation
from retrieval.api.paths import memory_id_of, namespace_of
from retrieval.api.problems import BatchRejected, ProblemField, faults_of
from retrieval.api.state import engine_of
from retrieval.errors import InvalidInput
from retrieval.types import MAX_BATCH, AddResult, Filters, Memory, MemoryInput, MemoryPage, MemoryPatch

COLLECTION = "/v1/namespaces/{ns:str}/memories"
ITEM = COLLECTION + "/{memory_id:str}"
ITEM_PATHS = [ITEM, COLLECTION + "/bulk", COLLECTION + "/delete"]
"""Where one memory is: an id may be any string, so also the names of the two POST routes beside it."""
DOCUMENTED_ITEM = "/v1/namespaces/{ns}/memories/{memory_id}"


class AddRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch. Each memory is taken or rejected by itself."""

    memories: Annotated[list[MemoryInput], Meta(min_length=1, max_length=MAX_BATCH)]


class AddResponse(Struct, frozen=True, kw_only=True):
    """What became of each memory, in the order of the batch."""

    results: list[AddResult]


class DeleteRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which memories to delete; at least one filter must be given."""

    filters: Filters


class DeleteResponse(Struct, frozen=True, kw_only=True):
    """How many memories were deleted."""

    deleted: int


_patch_decoder = msgspec.json.Decoder(MemoryPatch)
_delete_decoder = msgspec.json.Decoder(DeleteRequest)

_MEMORY_IN = {
    "id": "m1",
    "text": "Caroline: I went to the support group yesterday.",
    "kind": "message",
    "speaker": "Caroline",
    "session_id": "s1",
    "position": 3,
    "created_at": "2023-05-08T13:56:00Z",
    "tags": ["chat"],
    "metadata": {"channel": "web"},
    "entities": [{"name": "Caroline", "type": "person", "aliases": ["Caro"]}],
    "relations": [{"source": "Caroline", "type": "attends", "target": "support group"}],
}
_MEMORY_OUT = {
    "title": None,
    "document_id": None,
    "expires_at": None,
    "supersedes": None,
    "superseded_by": [],
    **_MEMORY_IN,
}

_ADD = Operation(
    id="add_memories",
    tag="memories",
    summary="Add or replace memories",
    description="Only `text` is required. When the call returns, all three legs see the memories. The same id with "
    "the same content is `unchanged`. A bad memory is `rejected` and the others are taken; when all are bad the "
    "answer is 422. The namespace is created on first use.",
    request=AddRequest,
    response=AddResponse,
    status=201,
    errors=(409, 503),
    example={"memories": [_MEMORY_IN]},
    answer={"results": [{"id": "m1", "status": "created", "error": None}]},
)
_LIST = Operation(
    id="list_memories",
    tag="memories",
    summary="List memories",
    description="Oldest insertion first. Follow `next_cursor` until it is null.",
    response=MemoryPage,
    errors=(404,),
    answer={"memories": [_MEMORY_OUT], "next_cursor": None},
    query=PARAMETERS,
)
_GET = Operation(
    id="get_memory", tag="memories", summary="One memory", response=Memory, errors=(404,), answer=_MEMORY_OUT,
    description="Percent-encode the id, slashes included.", path=DOCUMENTED_ITEM,
)  # fmt: skip
_PATCH = Operation(
    id="patch_memory",
    tag="memories",
    summary="Change a memory",
    description="A field that is left out stays; `null` clears one that may be empty.",
    request=MemoryPatch,
    response=Memory,
    errors=(404, 409),
    example={"tags": ["chat", "health"], "expires_at": None},
    answer={**_MEMORY_OUT, "tags": ["chat", "health"]},
    path=DOCUMENTED_ITEM,
)
_DELETE = Operation(
    id="delete_memory",
    tag="memories",
    summary="Delete a memory",
    description="Nothing of it is left in any leg.",
    status=204,
    errors=(404,),
    path=DOCUMENTED_ITEM,
)
_DELETE_MATCHING = Operation(
    id="delete_memories",
    tag="memories",
    summary="Delete all memories that meet the filters",
    description="Empty filters are refused: to delete everything, delete the namespace.",
    request=DeleteRequest,
    response=DeleteResponse,
    errors=(404,),
    example={"filters": {"session_id": ["s1"]}},
    answer={"deleted": 17},
)


@post(COLLECTION, status_code=201, opt=_ADD.as_opt)
async def add_memories(request: Request[Any, Any, Any]) -> AddResponse:
    """Add a batch; 422 when nothing of it could be taken."""
    name = namespace_of(request)
    body = await request.body()
    require_media_type(request, JSON_TYPE, body_is_empty=not body)
    memories = parse_batch(body)
    results = await engine_of(request).add(name, memories)
    if all(result.status == "rejected" for result in results):
        faults = [
            _fault(index, memory, result) for index, (memory, result) in enumerate(zip(memories, results, strict=True))
        ]
        raise BatchRejected(faults)
    return AddResponse(results=results)


@get(COLLECTION, opt=_LIST.as_opt)
async def list_memories(request: Request[Any, Any, Any]) -> MemoryPage:
    """One page."""
    name = namespace_of(request)
    listing = read_listing(request.scope["query_string"])
    return await engine_of(request).list(name, listing.filters, cursor=listing.cursor, limit=listing.limit)


@get(ITEM_PATHS, opt=_GET.as_opt)
async def get_memory(request: Request[Any, Any, Any]) -> Memory:
    """One memory."""
    return await engine_of(request).get(namespace_of(request), memory_id_of(request))


@patch(ITEM_PATHS, opt=_PATCH.as_opt)
async def patch_memory(request: Request[Any, Any, Any]) -> Memory:
    """Change some fields."""
    name, memory_id = namespace_of(request), memory_id_of(request)
    return await engine_of(request).patch(name, memory_id, await read_json(request, _patch_decoder))


@delete(ITEM_PATHS, status_code=204, opt=_DELETE.as_opt)
async def delete_memory(request: Request[Any, Any, Any]) -> None:
    """Delete one."""
    await engine_of(request).delete(namespace_of(request), memory_id_of(request))


@post(COLLECTION + "/delete", status_code=200, opt=_DELETE_MATCHING.as_opt)
async def delete_memories(request: Request[Any, Any, Any]) -> DeleteResponse:
    """Delete by filter."""
    name = namespace_of(request)
    wanted = await read_json(request, _delete_decoder)
    return DeleteResponse(deleted=await engine_of(request).delete_matching(name, wanted.filters))


def _fault(index: int, memory: Parsed, result: AddResult) -> ProblemField:
    """Why a memory of the batch was rejected, with the place in the body."""
    if isinstance(memory, InvalidInput):
        return faults_of(memory)[0]
    field, separator, reason = (result.error or "").partition(": ")
    if separator and field.split(".")[0] in MemoryInput.__struct_fields__:
        return ProblemField(loc=["memories", index, *field.split(".")], msg=reason)
    return ProblemField(loc=["memories", index], msg=result.error or "rejected")
