"""The entity graph as callers see it: entities, their pages, neighbours, paths, merges."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from retrieval.types.memory import Kind, Label, Zoned

EntityId = Annotated[
    str,
    Meta(
        pattern="^[0-9a-f]{16}$",
        description="opaque; it depends on the normalised name alone, so it stays the same when memories change",
    ),
]
Evidence = Annotated[list[str], Meta(description="ids of the latest memories that say so, at most 5")]
Truncated = Annotated[bool, Meta(description="whether a limit or the deadline left something out")]


class EntitySummary(Struct, frozen=True, kw_only=True):
    """An entity, and in how many memories it is mentioned."""

    id: EntityId
    name: str
    type: str
    mentions: int


class EntityList(Struct, frozen=True, kw_only=True):
    """A page of entities, the most mentioned first; `next_cursor` is null on the last."""

    entities: list[EntitySummary]
    next_cursor: str | None


class EntityName(Struct, frozen=True, kw_only=True):
    """An end of a relation."""

    id: EntityId
    name: str


class EntityRelation(Struct, frozen=True, kw_only=True):
    """A stated relation, and how many memories state it."""

    source: EntityName
    type: str
    target: EntityName
    memories: int
    evidence: Evidence


class MetEntity(Struct, frozen=True, kw_only=True):
    """An entity that is mentioned in the same memories, and in how many of them."""

    id: EntityId
    name: str
    type: str
    memories: int
    evidence: Evidence


class EntityMemory(Struct, frozen=True, kw_only=True):
    """A memory that mentions an entity, with the part of its text around the name."""

    id: str
    snippet: str
    kind: Kind
    speaker: str | None
    created_at: Zoned


class EntityMerge(Struct, frozen=True, kw_only=True):
    """An entity that was merged into this one, directly or through another."""

    merge_id: str
    id: EntityId
    name: str
    merged_at: Zoned


class EntityPage(Struct, frozen=True, kw_only=True):
    """What is known about an entity; `next_cursor` leads to earlier memories and is null after the earliest."""

    id: EntityId
    name: str
    type: str
    aliases: list[str]
    mentions: int
    first_mentioned_at: Zoned | None
    last_mentioned_at: Zoned | None
    profile: Annotated[list[str], Meta(description="the stated relations and the latest facts, a line each")]
    memories: Annotated[list[EntityMemory], Meta(description="the latest first")]
    next_cursor: str | None
    relations: Annotated[list[EntityRelation], Meta(description="the most often stated first")]
    met_with: Annotated[list[MetEntity], Meta(description="entities in its latest memories, the most frequent first")]
    merged: list[EntityMerge]
    truncated: Truncated


class EntityEdge(Struct, frozen=True, kw_only=True):
    """A stated relation from source to target; without a type, memories mention both."""

    source: EntityId
    target: EntityId
    type: str | None
    memories: int
    evidence: Evidence


class Neighbor(EntitySummary, frozen=True, kw_only=True):
    """An entity, its distance, and how strongly it is connected: in (0, 1], multiplied along the way."""

    hops: int
    strength: float


class Neighborhood(Struct, frozen=True, kw_only=True):
    """The entities around one, nearest and then most strongly connected first, and the edges between them.

    Edges between two entities of the last hop are not read.
    """

    entity: EntitySummary
    neighbors: list[Neighbor]
    edges: list[EntityEdge]
    truncated: Truncated


class EntityPath(Struct, frozen=True, kw_only=True):
    """Entities from the source to the target, and the edges from each to the next."""

    entities: list[EntitySummary]
    edges: list[EntityEdge]


class EntityPaths(Struct, frozen=True, kw_only=True):
    """The shortest paths; ties go to stronger edges. Empty if there is no path."""

    paths: list[EntityPath]
    truncated: Truncated


class GraphNode(EntitySummary, frozen=True, kw_only=True):
    """An entity with the number of its community, 0 for the largest, and its PageRank; these sum to 1."""

    community: int
    centrality: float


class EntityGraph(Struct, frozen=True, kw_only=True):
    """The most mentioned entities and the edges between them."""

    nodes: list[GraphNode]
    edges: list[EntityEdge]
    truncated: Truncated


class AliasChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Aliases to add to an entity, and manually added aliases to remove."""

    add: Annotated[list[Label], Meta(max_length=32)] = []
    remove: Annotated[list[Label], Meta(max_length=32)] = []


class EntityAliases(Struct, frozen=True, kw_only=True):
    """All aliases of an entity."""

    id: EntityId
    aliases: list[str]


class MergeRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The entity to merge into."""

    into: Annotated[str, Meta(max_length=256, description="the id of that entity, from a list or page")]


class MergeReceipt(Struct, frozen=True, kw_only=True):
    """The id for undoing the merge, and the merged entity."""

    merge_id: str
    entity: EntitySummary
