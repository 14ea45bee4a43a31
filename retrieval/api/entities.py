"""The entity graph: lists, pages, neighbours, paths; aliases and merges by hand."""

from __future__ import annotations

from typing import Annotated, Literal

from litestar import Controller, Response, delete, get, post
from litestar.params import JSONBody, QueryParameter
from msgspec import structs

from retrieval.api.memories import Time, parsed_filters
from retrieval.api.parameters import Cursor, EntityName, Limit, MergeName, NamespaceName
from retrieval.api.problems import problems
from retrieval.api.state import Api
from retrieval.types.entity import (
    AliasChange,
    EntityAliases,
    EntityGraph,
    EntityList,
    EntityPage,
    EntityPaths,
    MergeReceipt,
    MergeRequest,
    Neighborhood,
)
from retrieval.types.memory import Label
from retrieval.types.search import MAX_HOPS, SearchOptions
from retrieval.validation import converted

GRAPHML_TYPE = "application/graphml+xml"

_ITEM = "/entities/{entity_id:str}"
_Filters = Annotated[str | None, QueryParameter(description="which memories count, as one JSON document")]
_Superseded = Annotated[bool, QueryParameter(description="also count superseded memories")]
_Words = Annotated[bool, QueryParameter(description="include words, phrases, dates and identifiers, not only names")]
_Hops = Annotated[int, QueryParameter(ge=1, le=MAX_HOPS, description="maximum number of edges in a row")]
_Memories = Annotated[int, QueryParameter(ge=1, le=200, description="maximum number of memories per page")]
_Neighbors = Annotated[int, QueryParameter(ge=1, le=500, description="maximum number of neighbours")]
_Paths = Annotated[int, QueryParameter(ge=1, le=20, description="maximum number of paths")]
_Nodes = Annotated[int, QueryParameter(ge=1, le=500, description="maximum number of entities")]
_End = Annotated[str, QueryParameter(description="the id of an entity")]


class EntitiesController(Controller):
    """The entity graph."""

    path = "/v1/namespaces/{ns:str}"
    tags = ("entities",)

    @get("/entities", responses=problems(404))
    async def list_entities(
        self,
        api: Api,
        ns: NamespaceName,
        q: Annotated[str | None, QueryParameter(description="part of the name or of an alias")] = None,
        type: Annotated[list[Label] | None, QueryParameter(description="any of these types")] = None,
        words: _Words = False,
        filters: _Filters = None,
        as_of: Time = None,
        include_superseded: _Superseded = False,
        cursor: Cursor = None,
        limit: Limit = 100,
    ) -> EntityList:
        """List entities.

        Those that memories mention, most mentioned first. Only memories that a search may see count, here and in all
        other reads of entities. Words, phrases, dates and identifiers are left out unless `words`, `q` or `type` ask
        for them. Follow `next_cursor` until it is null; an entity whose mentions change meanwhile may appear twice or
        not at all.
        """
        return await api.engine.entities.list(
            ns,
            _options(filters, as_of, include_superseded),
            q=q,
            types=type,
            words=words,
            cursor=cursor or None,
            limit=limit,
        )

    @get(_ITEM, responses=problems(404))
    async def get_entity(
        self,
        api: Api,
        ns: NamespaceName,
        entity_id: EntityName,
        words: _Words = False,
        filters: _Filters = None,
        as_of: Time = None,
        include_superseded: _Superseded = False,
        cursor: Cursor = None,
        limit: _Memories = 20,
    ) -> EntityPage:
        """What is known about an entity.

        Its names, its memories (latest first), the relations that they state, the entities mentioned with it, and a
        profile of a few lines. The id of an entity that was merged into another returns the other. `next_cursor` leads
        to earlier memories.
        """
        options = _options(filters, as_of, include_superseded)
        return await api.engine.entities.page(ns, entity_id, options, words=words, cursor=cursor or None, limit=limit)

    @get(_ITEM + "/neighbors", responses=problems(404))
    async def list_neighbors(
        self,
        api: Api,
        ns: NamespaceName,
        entity_id: EntityName,
        hops: _Hops = 1,
        limit: _Neighbors = 50,
        words: _Words = False,
        filters: _Filters = None,
        as_of: Time = None,
        include_superseded: _Superseded = False,
    ) -> Neighborhood:
        """The neighbours of an entity.

        Two entities are neighbours if a memory states a relation between them or mentions both. Only each entity's
        latest 200 memories are read; `truncated` tells whether limits or the deadline left anything out.
        """
        options = _options(filters, as_of, include_superseded)
        return await api.engine.entities.neighbors(ns, entity_id, options, hops=hops, limit=limit, words=words)

    @post(_ITEM + "/aliases", status_code=200, responses=problems(404, 409))
    async def change_aliases(
        self, api: Api, ns: NamespaceName, entity_id: EntityName, data: JSONBody[AliasChange]
    ) -> EntityAliases:
        """Add or remove aliases of an entity.

        Searches find the entity by an alias at once, and later texts that use it count as mentions, until it is
        removed. A name that belongs to another entity is a 409: merge the two. An entity with an added alias stays,
        even when no memory mentions it any more, until the alias is removed.
        """
        return await api.engine.entities.change_aliases(ns, entity_id, data)

    @post(_ITEM + "/merge", status_code=201, responses=problems(404, 409))
    async def merge_entity(
        self, api: Api, ns: NamespaceName, entity_id: EntityName, data: JSONBody[MergeRequest]
    ) -> MergeReceipt:
        """Merge an entity into another.

        From then on the two are one, also in searches, whichever name later memories use. `DELETE …/merges/{merge_id}`
        undoes it: each memory then counts again for the entity that it names, including memories written in between.
        """
        return await api.engine.entities.merge(ns, entity_id, data.into)

    @delete("/merges/{merge_id:str}", status_code=204, responses=problems(404))
    async def undo_merge(self, api: Api, ns: NamespaceName, merge_id: MergeName) -> None:
        """Undo a merge.

        Earlier and later merges stay. An entity's page lists its merges.
        """
        await api.engine.entities.separate(ns, merge_id)

    @get("/paths", responses=problems(404))
    async def list_paths(
        self,
        api: Api,
        ns: NamespaceName,
        source: _End,
        target: _End,
        max_hops: _Hops = 3,
        limit: _Paths = 3,
        words: _Words = False,
        filters: _Filters = None,
        as_of: Time = None,
        include_superseded: _Superseded = False,
    ) -> EntityPaths:
        """The shortest paths between two entities.

        Shortest first; ties go to stronger edges. Only the strongest neighbours of both ends are searched; `truncated`
        tells whether limits or the deadline left anything out.
        """
        options = _options(filters, as_of, include_superseded)
        return await api.engine.entities.paths(ns, source, target, options, max_hops=max_hops, limit=limit, words=words)

    @get("/graph", responses=problems(404))
    async def get_graph(
        self,
        api: Api,
        ns: NamespaceName,
        format: Annotated[Literal["json", "graphml"], QueryParameter(description="format of the response")] = "json",
        limit: _Nodes = 200,
        words: _Words = False,
        filters: _Filters = None,
        as_of: Time = None,
        include_superseded: _Superseded = False,
    ) -> Response[EntityGraph]:
        """The graph of the most mentioned entities.

        Each with its community (Louvain) and centrality (PageRank). An edge without a type means that memories mention
        both ends; with `format=graphml`, which Gephi, yEd and networkx read, its type is `met_with`.
        """
        options = _options(filters, as_of, include_superseded)
        if format == "graphml":
            text = await api.engine.entities.graphml(ns, options, limit=limit, words=words)
            return Response(text, media_type=GRAPHML_TYPE)  # type: ignore[arg-type]  # encoded already
        return Response(await api.engine.entities.graph(ns, options, limit=limit, words=words))


def _options(filters: str | None, as_of: str | None, include_superseded: bool) -> SearchOptions:
    """Which memories count; raises InvalidInput for bad filters or a bad time."""
    options = converted({"as_of": as_of, "include_superseded": include_superseded}, SearchOptions)
    return structs.replace(options, filters=parsed_filters(filters, {}))
