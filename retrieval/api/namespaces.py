"""Namespaces: list, create or change, statistics, delete."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from litestar import Controller, delete, get, put
from litestar.params import JSONBody, QueryParameter

from retrieval.api.parameters import NamespaceName, TypedRequest
from retrieval.api.problems import problems
from retrieval.api.state import Api
from retrieval.api.tokens import READS, token_in
from retrieval.errors import InvalidInput
from retrieval.types.namespace import NamespaceInfo, NamespaceInput, NamespaceList, NamespaceReceipt

ITEM = "/{ns:str}"


class NamespacesController(Controller):
    """The tenants."""

    path = "/v1/namespaces"
    tags = ("namespaces",)

    @get(opt={READS: True})
    async def list_namespaces(self, api: Api, request: TypedRequest) -> NamespaceList:
        """List namespaces.

        With a token, only those that it opens.
        """
        token = token_in(request.scope)
        names = None if token is None else token.namespaces
        return NamespaceList(namespaces=await api.engine.list_namespaces(names))

    @put(ITEM, responses=problems(409))
    async def put_namespace(self, api: Api, ns: NamespaceName, data: JSONBody[NamespaceInput]) -> NamespaceInfo:
        """Create a namespace or change its settings.

        Settings that are left out stay as they are, or get their defaults in a new namespace. The language and the
        embedder cannot be changed once there are memories: that is a 409; `reembed` changes the embedder. Adding
        memories to a namespace that does not exist creates it, so this is only needed for settings.
        """
        return await api.engine.put_namespace(ns, data)

    @get(ITEM, responses=problems(404))
    async def get_namespace(self, api: Api, ns: NamespaceName) -> NamespaceInfo:
        """Settings and statistics of a namespace."""
        return await api.engine.get_namespace(ns)

    @delete(ITEM, status_code=200, responses=problems(404))
    async def delete_namespace(
        self,
        api: Api,
        ns: NamespaceName,
        confirm: Annotated[str | None, QueryParameter(description="the name of the namespace", required=True)] = None,
    ) -> NamespaceReceipt:
        """Delete a namespace with everything in it.

        In one transaction; the receipt counts what was deleted. `confirm` must repeat the namespace's name, so that no
        shortened path, such as that of a memory called `..`, can delete everything.
        """
        if confirm != ns:
            raise InvalidInput(f"Deletes everything in {ns!r}; to confirm, add ?confirm={quote(ns)}", loc=("confirm",))
        return await api.engine.delete_namespace(ns)
