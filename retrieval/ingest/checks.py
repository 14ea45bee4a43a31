"""Checks of a memory before anything is written; no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import product
from typing import Any

import msgspec

from graph.names import normalize
from retrieval.errors import InvalidInput, InvalidMemory
from retrieval.ids import uuid7
from retrieval.store.locking import MemoryVersion
from retrieval.store.sessions import DOCUMENT
from retrieval.types.memory import AddResult, MemoryInput, as_superseded
from retrieval.validation import check_names, check_storable


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A memory that passed its own checks; `position` is its index in the caller's batch."""

    position: int
    id: str
    input: MemoryInput
    fingerprint: bytes

    def is_among(self, versions: Mapping[str, MemoryVersion]) -> bool:
        """Whether the memory is among these versions, by id, with the same content."""
        return self.id in versions and versions[self.id].fingerprint == self.fingerprint

    def as_stored(self, version: MemoryVersion | None) -> Draft:
        """With the stored fingerprint, if they differ only in whether id, time and position were given.

        A memory sent without `id`, `created_at` or `position` gets them when stored, and an export includes them.
        """
        if version is None or version.fingerprint == self.fingerprint:
            return self
        if self.input.created_at not in (times := (version.created_at, None)):
            return self
        position = self.input.position
        positions = places if position in (places := (version.place, None)) else (position,)
        same = (
            msgspec.structs.replace(self.input, id=id_, created_at=time, position=place)
            for id_, time, place in product((self.id, None), times, positions)
        )
        return replace(self, fingerprint=version.fingerprint) if version.fingerprint in map(fingerprint, same) else self


def drafts_of(batch: Sequence[MemoryInput | InvalidInput], results: dict[int, AddResult]) -> list[Draft]:
    """The memories that can be written; rejected ones are added to `results`."""
    drafts: dict[str, Draft] = {}
    for position, item in enumerate(batch):
        try:
            if isinstance(item, InvalidInput):
                raise item
            check_storable(item)
            item = canonical(item)  # some times that cannot be stored have no equivalent in UTC
            check_names(id=item.id, session_id=item.session_id, document_id=item.document_id)
            check_meaning(item)
            if item.id in drafts:
                raise InvalidInput(f"{item.id!r} is used twice in this batch; the first is kept", loc=("id",))
        except InvalidInput as exc:
            known = item.id if isinstance(item, (MemoryInput, InvalidMemory)) else None
            results[position] = AddResult(id=known, status="rejected", error=_reason(exc))
            continue
        memory_id = item.id or uuid7()
        drafts[memory_id] = Draft(position=position, id=memory_id, input=item, fingerprint=fingerprint(item))
    return list(drafts.values())


def check_meaning(memory: MemoryInput) -> None:
    """Check what the types cannot.

    Raises InvalidInput, naming the field, for a blank text or name, a session named like a document, or a memory that
    supersedes itself or ends before it begins.
    """
    if not memory.text.strip():
        raise InvalidInput("must not be blank", loc=("text",))
    for loc, name in _names(memory):
        if not normalize(name):
            raise InvalidInput("must have a visible character", loc=loc)
    if memory.session_id is not None and memory.session_id.startswith(DOCUMENT):
        raise InvalidInput("must not begin with U+001F", loc=("session_id",))
    if memory.id in memory.superseded_ids:
        raise InvalidInput("a memory cannot supersede itself", loc=("supersedes",))
    if memory.created_at and memory.expires_at and memory.expires_at < memory.created_at:
        raise InvalidInput("must not be before `created_at`", loc=("expires_at",))


def _names(memory: MemoryInput) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The names, aliases and types of entities and relations, as pairs of the field's path and the name."""
    for place, entity in enumerate(memory.entities):
        yield ("entities", place, "name"), entity.name
        yield ("entities", place, "type"), entity.type
        for number, alias in enumerate(entity.aliases):
            yield ("entities", place, "aliases", number), alias
    for place, relation in enumerate(memory.relations):
        yield ("relations", place, "source"), relation.source
        yield ("relations", place, "type"), relation.type
        yield ("relations", place, "target"), relation.target


def canonical(memory: MemoryInput) -> MemoryInput:
    """The memory as stored: no empty title, speaker, session or document, and a single superseded id as text."""
    changes: dict[str, Any] = {
        name: None for name in ("title", "speaker", "session_id", "document_id") if getattr(memory, name) == ""
    }
    if isinstance(memory.supersedes, list):
        changes["supersedes"] = as_superseded(memory.superseded_ids)
    for name in ("created_at", "expires_at"):
        time = getattr(memory, name)
        if time is not None and time.utcoffset():
            changes[name] = time.astimezone(UTC)
    return msgspec.structs.replace(memory, **changes) if changes else memory


def _reason(error: InvalidInput) -> str:
    """The message prefixed with its field, without the memory's index, which the result's position gives."""
    field = error.loc[2:] if error.loc[:1] == ("memories",) else error.loc
    return InvalidInput(str(error), loc=field).located


def fingerprint(memory: MemoryInput) -> bytes:
    """A hash of everything the caller sent; an equal hash means that nothing has changed."""
    return hashlib.blake2b(msgspec.json.encode(memory, order="sorted"), digest_size=16).digest()
