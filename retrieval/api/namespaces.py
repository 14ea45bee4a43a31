"""Namespaces: list, create or change, statistics, delete."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, delete, get, put

from retrieval.api.bodies import read_json
from retrieval.api.operation import Operation
from retrieval.api.paths import namespace_of
from retrieval.api.state import engine_of
from retrieval.types import NamespaceInfo, NamespaceReceipt, NamespaceSettings

_settings_decoder = msgspec.json.Decoder(NamespaceSettings)

PATH = "/v1/namespaces/{ns:str}"

_INFO = {
    "name": "caroline",
    "settings": {"language": "en", "profile": None},
    "created_at": "2026-01-05T09:30:00Z",
    "memories": 419,
    "entities": 63,
    "mentions": 880,
    "relations": 12,
}


class NamespaceList(msgspec.Struct, frozen=True, kw_only=True):
    """All namespaces."""

    namespaces: list[NamespaceInfo]


_LIST = Operation(
    id="list_namespaces", tag="namespaces", summary="List namespaces", response=NamespaceList,
    answer={"namespaces": [_INFO]},
)  # fmt: skip
_PUT = Operation(
    id="put_namespace",
    tag="namespaces",
    summary="Create a namespace or change its settings",
    description="The language of analysis cannot be changed once there are memories: that is a 409. "
    "Adding memories to a namespace that does not exist creates it, so this is only for settings.",
    request=NamespaceSettings,
    response=NamespaceInfo,
    errors=(409,),
    example={
        "language": "en",
        "rules": [
            {"kind": "symmetric", "relation": "married_to"},
            {
                "kind": "custom",
                "name": "grandparent",
                "when": [["x", "parent_of", "y"], ["y", "parent_of", "z"]],
                "then": ["x", "grandparent_of", "z"],
            },
        ],
    },
    answer=_INFO,
)
_GET = Operation(
    id="get_namespace", tag="namespaces", summary="Settings and statistics of a namespace",
    response=NamespaceInfo, errors=(404,), answer=_INFO,
)  # fmt: skip
_DELETE = Operation(
    id="delete_namespace",
    tag="namespaces",
    summary="Delete a namespace with everything in it",
    description="One transaction; the receipt counts what is gone.",
    response=NamespaceReceipt,
    errors=(404,),
    answer={"namespace": "caroline", "deleted": {"memories": 419, "entities": 63, "mentions": 880, "relations": 12}},
)


@get("/v1/namespaces", opt=_LIST.as_opt)
async def list_namespaces(request: Request[Any, Any, Any]) -> NamespaceList:
    """All namespaces."""
    return NamespaceList(namespaces=await engine_of(request).list_namespaces())


@put(PATH, opt=_PUT.as_opt)
async def put_namespace(request: Request[Any, Any, Any]) -> NamespaceInfo:
    """Create, or change the settings."""
    name = namespace_of(request)
    return await engine_of(request).put_namespace(name, await read_json(request, _settings_decoder))


@get(PATH, opt=_GET.as_opt)
async def get_namespace(request: Request[Any, Any, Any]) -> NamespaceInfo:
    """Settings and counts."""
    return await engine_of(request).get_namespace(namespace_of(request))


@delete(PATH, status_code=200, opt=_DELETE.as_opt)
async def delete_namespace(request: Request[Any, Any, Any]) -> NamespaceReceipt:
    """Everything goes."""
    return await engine_of(request).delete_namespace(namespace_of(request))
