"""What is checked of a memory before anything of it is written; no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from retrieval.errors import InvalidInput
from retrieval.ids import uuid7
from retrieval.parsing import check_storable
from retrieval.types import AddResult, MemoryInput


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A memory that passed its own checks; `at` is its place in the caller's batch."""

    at: int
    id: str
    input: MemoryInput
    fingerprint: bytes

    @property
    def may_be_stored(self) -> bool:
        """Whether there may be a memory of this id, or one that supersedes it: not if the id was made for it."""
        return self.input.id is not None


def drafts_of(batch: Sequence[MemoryInput | InvalidInput], results: dict[int, AddResult]) -> list[Draft]:
    """The memories that can be written; the others get their result."""
    drafts: dict[str, Draft] = {}
    for at, item in enumerate(batch):
        if isinstance(item, InvalidInput):
            results[at] = AddResult(id=None, status="rejected", error=_reason(item))
            continue
        problem = problem_of(item)
        if problem is None and item.id in drafts:
            problem = InvalidInput(f"{item.id!r} is used twice in this batch; the first is kept", loc=("id",))
        if problem is not None:
            results[at] = AddResult(id=item.id, status="rejected", error=_reason(problem))
            continue
        memory_id = item.id or uuid7()
        drafts[memory_id] = Draft(at=at, id=memory_id, input=item, fingerprint=fingerprint(item))
    return list(drafts.values())


def problem_of(memory: MemoryInput) -> InvalidInput | None:
    """What the types do not say about a memory."""
    try:
        check_storable(memory)
    except InvalidInput as exc:
        return exc
    if not memory.text.strip():
        return InvalidInput("must not be blank", loc=("text",))
    if memory.supersedes is not None and memory.supersedes == memory.id:
        return InvalidInput("a memory cannot supersede itself", loc=("supersedes",))
    return None


def _reason(error: InvalidInput) -> str:
    """The complaint with the field it is about; the place in the batch is known from the result's."""
    where = ".".join(str(part) for part in error.loc if part != "memories" and not isinstance(part, int))
    return f"{where}: {error}" if where else str(error)


def fingerprint(memory: MemoryInput) -> bytes:
    """A hash of all that the caller sent: equal means that there is nothing to do."""
    return hashlib.blake2b(msgspec.json.encode(memory, order="sorted"), digest_size=16).digest()
