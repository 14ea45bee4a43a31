"""Memories as callers send and receive them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs

MAX_TEXT_CHARS = 1_000_000
"""Longest text of a memory, some 170,000 words. Text beyond the embedder's window is found better if added as a
document."""

MAX_BATCH = 1_000
"""Most memories of one JSON batch; the bulk endpoint has no such limit."""

MAX_COMPARED = 100
"""Most memories of one batch that are compared with older ones."""

MOST_UPDATED = 10_000
"""Most memories that one request changes, as all are written in one transaction."""


Kind = Literal["memory", "message", "chunk"]
Zoned = Annotated[datetime, Meta(tz=True)]
MemoryId = Annotated[str, Meta(min_length=1, max_length=256)]
Label = Annotated[str, Meta(min_length=1, max_length=256)]
Superseded = MemoryId | Annotated[list[MemoryId], Meta(max_length=64, description="several ids")] | None
Metadata = Annotated[dict[str, Any], Meta(description="free JSON of at most 64 KB; filters test containment")]


def superseded_ids(supersedes: str | list[str] | None) -> list[str]:
    """The ids of a field `supersedes`, each once, in the order given.

    >>> superseded_ids(None), superseded_ids("a"), superseded_ids(["b", "a", "b"])
    ([], ['a'], ['b', 'a'])
    """
    return [supersedes] if isinstance(supersedes, str) else list(dict.fromkeys(supersedes or ()))


def as_superseded(ids: list[str]) -> str | list[str] | None:
    """Ids as the field `supersedes` has them: null for none, one alone as text.

    >>> as_superseded([]), as_superseded(["a"]), as_superseded(["b", "a"])
    (None, 'a', ['b', 'a'])
    """
    return ids if len(ids) > 1 else next(iter(ids), None)


class EntityInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entity mentioned in a memory, stated by the caller."""

    name: Label
    type: Label = "thing"
    aliases: Annotated[list[Label], Meta(max_length=32)] = []


class RelationInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A typed edge between two entities, with the memory as its evidence."""

    source: Label
    type: Label
    target: Label


class MemoryInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A memory as a caller sends it; only `text` is required."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)]
    id: MemoryId | None = None
    kind: Kind = "memory"
    title: Annotated[str, Meta(max_length=1_000)] | None = None
    speaker: Annotated[str, Meta(max_length=256)] | None = None
    session_id: Annotated[str, Meta(max_length=256)] | None = None
    position: Annotated[int, Meta(ge=0, le=2_147_483_647)] | None = None
    document_id: Annotated[str, Meta(max_length=256)] | None = None
    created_at: Zoned | None = None
    expires_at: Zoned | None = None
    tags: Annotated[list[Label], Meta(max_length=64)] = []
    metadata: Metadata = {}
    entities: Annotated[list[EntityInput], Meta(max_length=256)] = []
    relations: Annotated[list[RelationInput], Meta(max_length=256)] = []
    supersedes: Superseded = None

    @property
    def superseded_ids(self) -> list[str]:
        """The ids that it supersedes, each once, in the order given."""
        return superseded_ids(self.supersedes)


class SharedPatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields to change that several memories may share; missing ones are kept, `null` clears an optional one."""

    kind: Kind | UnsetType = UNSET
    title: Annotated[str, Meta(max_length=1000)] | UnsetType | None = UNSET
    speaker: Annotated[str, Meta(max_length=256)] | UnsetType | None = UNSET
    session_id: Annotated[str, Meta(max_length=256)] | UnsetType | None = UNSET
    document_id: Annotated[str, Meta(max_length=256)] | UnsetType | None = UNSET
    created_at: Zoned | UnsetType = UNSET
    expires_at: Zoned | UnsetType | None = UNSET
    tags: Annotated[list[Label], Meta(max_length=64)] | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET

    @property
    def changes(self) -> dict[str, Any]:
        """The given fields."""
        return {name: value for name, value in structs.asdict(self).items() if value is not UNSET}


class MemoryPatch(SharedPatch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields to change; missing ones are kept, `null` clears an optional one."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)] | UnsetType = UNSET
    position: Annotated[int, Meta(ge=0, le=2147483647)] | UnsetType | None = UNSET
    entities: Annotated[list[EntityInput], Meta(max_length=256)] | UnsetType = UNSET
    relations: Annotated[list[RelationInput], Meta(max_length=256)] | UnsetType = UNSET
    supersedes: Superseded | UnsetType = UNSET


class UpdateReceipt(Struct, frozen=True, kw_only=True):
    """How many memories matched, and how many of them changed."""

    matched: int
    updated: int


class Memory(Struct, frozen=True, kw_only=True):
    """A memory as stored and returned."""

    id: str
    text: str
    kind: Kind
    title: str | None
    speaker: str | None
    session_id: str | None
    position: int | None
    document_id: str | None
    created_at: Zoned
    expires_at: Zoned | None
    tags: list[str]
    metadata: dict[str, Any]
    entities: list[EntityInput]
    relations: list[RelationInput]
    supersedes: str | list[str] | None
    superseded_by: list[str]


AddStatus = Literal["created", "updated", "unchanged", "rejected"]


class AddResult(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """The outcome for one memory of a batch."""

    id: str | None
    status: AddStatus
    error: str | None = None
    warning: Annotated[str | UnsetType, Meta(description="stored, but possibly not as intended")] = UNSET
    may_supersede: Annotated[
        list[str] | UnsetType,
        Meta(description="ids of older memories that it may make outdated, best first; only on request"),
    ] = UNSET


class AddResponse(Struct, frozen=True, kw_only=True):
    """The outcome for each memory, in the order of the batch."""

    results: list[AddResult]


class Deleted(Struct, frozen=True, kw_only=True):
    """How many entries were deleted."""

    deleted: int


class ForgetRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to forget: what a speaker said, or everything that mentions an entity."""

    speaker: Annotated[Label | None, Meta(description="what this speaker said is deleted")] = None
    entity: Annotated[
        Label | None, Meta(description="what mentions it, by its name, an alias or a merged entity, is deleted")
    ] = None
    dry_run: Annotated[bool, Meta(description="delete nothing, only list what would be deleted")] = False


class ForgetReceipt(Struct, frozen=True, kw_only=True):
    """What was deleted, and what others said about the speaker, which is kept."""

    deleted: Annotated[list[str], Meta(description="ids; with `dry_run` those that would be deleted")]
    mentioned_by: Annotated[list[str], Meta(description="ids of others' memories that mention the speaker")]


class MemoryHistory(Struct, frozen=True, kw_only=True):
    """A memory with all that it superseded or that superseded it, directly or through others; oldest first.

    `supersedes` and `superseded_by` of each show the branches.
    """

    memories: list[Memory]


class MemoryPage(Struct, frozen=True, kw_only=True):
    """A page of memories, oldest insertion first; `next_cursor` is null on the last."""

    memories: list[Memory]
    next_cursor: str | None
