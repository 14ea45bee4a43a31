"""Writing: check -> analyse and embed -> one transaction that changes all three legs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from classifier.traits import pack_traits
from graph.extraction import extract
from graph.statements import find_relations
from graph.store import DocGraph, GivenEntity, GivenRelation
from retrieval import writes
from retrieval.drafts import Draft, drafts_of, fingerprint, problem_of
from retrieval.embedding.base import Embedder
from retrieval.errors import Collided, Conflict, InvalidInput, NotFound
from retrieval.parsing import check_storable
from retrieval.precedence import Precedence
from retrieval.shared_writes import SharedWrites, WriteBatch
from retrieval.store import locking, memories, namespaces
from retrieval.store.pool import Pool
from retrieval.text.analysis import TermBag, bag
from retrieval.text.calendar_terms import calendar_terms
from retrieval.text.wording import without_speaker
from retrieval.types import AddResult, Filters, Memory, MemoryInput, MemoryPatch
from retrieval.writes import Analysed

T = TypeVar("T")

TITLE_WEIGHT = 3
"""How often a title's term counts in BM25, against once for the text's."""

_ATTEMPTS = 4

_ANALYSED_AT_ONCE = 32

# Another writer added one of the ids, waits for what this one holds, or deleted the namespace.
_MET_ANOTHER_WRITER = (Collided, NotFound)


class Ingest:
    """Adds, replaces and deletes memories. Every change is one transaction over all legs."""

    def __init__(self, pool: Pool, embedder: Embedder) -> None:
        self._pool = pool
        self._embedder = embedder
        self._writes = SharedWrites(pool)
        self._precedence = Precedence()
        # Two analyses at once would only fight each other and the event loop for the interpreter.
        self._analysis = asyncio.Lock()

    async def add(self, name: str, batch: Sequence[MemoryInput | InvalidInput]) -> list[AddResult]:
        """Add or replace memories, all that are accepted or none; one result each, in order.

        Calls of one process that share an id or a session are written in the order in which they came, however
        many are analysed at a time.
        """
        results: dict[int, AddResult] = {}
        drafts = drafts_of(batch, results)
        if drafts:
            with self._precedence.entered(_touched(name, drafts)) as turn:
                results.update(await _retried(lambda: self._write(name, drafts, turn), _MET_ANOTHER_WRITER))
        return [results[at] for at in range(len(batch))]

    async def patch(self, name: str, memory_id: str, patch: MemoryPatch) -> Memory:
        """Change some fields of a memory; all legs follow.

        Raises:
            NotFound: no such namespace or memory.
            InvalidInput: the changed memory is not a valid one.
        """
        check_storable(patch)
        changes = {name: value for name, value in msgspec.structs.asdict(patch).items() if value is not msgspec.UNSET}
        for _ in range(_ATTEMPTS):
            async with self._pool.connection() as conn:
                namespace = await namespaces.find(conn, name)
                stored = await memories.get(conn, namespace, memory_id)
            current = stored.memory
            unchanged = {field: getattr(current, field) for field in MemoryInput.__struct_fields__}
            changed = msgspec.structs.replace(MemoryInput(**unchanged), **changes)
            if problem := problem_of(changed):
                raise problem
            draft = Draft(at=0, id=memory_id, input=changed, fingerprint=fingerprint(changed))
            try:
                await self._write(name, [draft], _at_once, expected={memory_id: stored.fingerprint})
            except (*_MET_ANOTHER_WRITER, Conflict):
                continue
            async with self._pool.connection() as conn:
                return (await memories.get(conn, namespace, memory_id)).memory
        raise Conflict("other writers kept changing the same memory")

    async def delete(self, name: str, memory_id: str) -> None:
        """Delete one memory and all traces of it.

        Raises:
            NotFound: no such namespace or memory.
        """

        async def attempt() -> None:
            async with self._pool.connection() as conn:
                await writes.delete(conn, name, memory_id)

        await _retried(attempt, (Collided,))

    async def delete_matching(self, name: str, filters: Filters) -> int:
        """Delete all memories that meet the filters; how many.

        Raises:
            NotFound: no such namespace.
            InvalidInput: filters that every memory meets.
        """
        if filters.is_empty:
            raise InvalidInput("must not be empty; delete the namespace to delete all", loc=("filters",))

        async def attempt() -> int:
            async with self._pool.connection() as conn:
                return await writes.delete_matching(conn, name, filters)

        return await _retried(attempt, (Collided,))

    async def _write(
        self,
        name: str,
        drafts: Sequence[Draft],
        turn: Callable[[], Awaitable[None]],
        *,
        expected: Mapping[str, bytes] | None = None,
    ) -> dict[int, AddResult]:
        async with self._pool.connection() as conn:
            namespace = await namespaces.find_or_create(conn, name)
            known = await locking.versions(conn, namespace.ns, [draft.id for draft in drafts if draft.may_be_stored])
        fingerprints = {memory_id: version.fingerprint for memory_id, version in known.items()}
        unchanged = [draft for draft in drafts if fingerprints.get(draft.id) == draft.fingerprint]
        changed = [draft for draft in drafts if fingerprints.get(draft.id) != draft.fingerprint]
        results = {draft.at: AddResult(id=draft.id, status="unchanged") for draft in unchanged}
        if changed:
            analysed = await self._analyse(changed, namespace.settings.language)
            before = [known[draft.id] for draft in changed if draft.id in known]
            now = [draft.input for draft in changed]
            batch = WriteBatch(
                analysed=analysed,
                sessions=_given([*(old.session_id for old in before), *(new.session_id for new in now)]),
                superseded=_given([*(old.supersedes for old in before), *(new.supersedes for new in now)]),
            )
            await turn()
            replaced = await self._writes.store(namespace, batch, expected=expected or {})
            for draft in changed:
                results[draft.at] = AddResult(id=draft.id, status="updated" if draft.id in replaced else "created")
        return results

    async def _analyse(self, drafts: Sequence[Draft], language: str) -> list[Analysed]:
        now = datetime.now(UTC)
        texts = [_embedded_text(draft.input) for draft in drafts]
        # The embedder leaves the interpreter to others while it computes.
        embeddings, analyses = await asyncio.gather(
            self._embedder.embed_documents(texts), self._analyses(drafts, language, now)
        )
        return [
            Analysed(
                draft=draft,
                created_at=draft.input.created_at or now,
                bag=terms,
                graph=graph,
                traits=traits,
                embedding=embedding,
            )
            for draft, (terms, graph, traits), embedding in zip(drafts, analyses, embeddings, strict=True)
        ]

    async def _analyses(
        self, drafts: Sequence[Draft], language: str, now: datetime
    ) -> list[tuple[TermBag, DocGraph, int]]:
        """What `_analysed` gives for each; callers take turns, so that a small batch does not wait for a large one."""

        def of(some: Sequence[Draft]) -> list[tuple[TermBag, DocGraph, int]]:
            return [_analysed(draft.input, language, draft.input.created_at or now) for draft in some]

        analyses: list[tuple[TermBag, DocGraph, int]] = []
        for start in range(0, len(drafts), _ANALYSED_AT_ONCE):
            async with self._analysis:
                analyses += await asyncio.to_thread(of, drafts[start : start + _ANALYSED_AT_ONCE])
        return analyses


async def _at_once() -> None:
    """Wait for nobody."""


def _touched(name: str, drafts: Sequence[Draft]) -> frozenset[tuple[str, str, str]]:
    """The ids and sessions of some memories of a namespace."""
    ids = {(name, "id", draft.id) for draft in drafts}
    return frozenset(ids | {(name, "session", draft.input.session_id) for draft in drafts if draft.input.session_id})


def _given(values: Iterable[str | None]) -> frozenset[str]:
    return frozenset(value for value in values if value is not None)


def _spoken(memory: MemoryInput) -> str:
    """What was said with who said it, so that a speaker is found by all legs; many chats write it so anyway."""
    if not memory.speaker or without_speaker(memory.text, memory.speaker) != memory.text:
        return memory.text
    return f"{memory.speaker}: {memory.text}"


def _embedded_text(memory: MemoryInput) -> str:
    return f"{memory.title}\n{_spoken(memory)}" if memory.title else _spoken(memory)


def _analysed(memory: MemoryInput, language: str, created_at: datetime) -> tuple[TermBag, DocGraph, int]:
    """The terms, the graph and the traits of a memory."""
    dates = calendar_terms(created_at)
    stated = [GivenRelation(item.source, item.type, item.target) for item in memory.relations]
    found = find_relations(memory.text, speaker=memory.speaker, title=memory.title)
    stated += [GivenRelation(item.source, item.relation, item.target) for item in found]
    return (
        bag(_spoken(memory), memory.title, language, title_weight=TITLE_WEIGHT, labels=dates),
        DocGraph(
            doc=0,
            mentions=tuple(extract(memory.text, title=memory.title, speaker=memory.speaker)),
            entities=tuple(GivenEntity(item.name, item.type, tuple(item.aliases)) for item in memory.entities),
            relations=tuple(dict.fromkeys(stated)),
        ),
        pack_traits(without_speaker(memory.text, memory.speaker)),
    )


async def _retried(attempt: Callable[[], Awaitable[T]], met: tuple[type[Exception], ...]) -> T:
    """What an attempt gives, tried a few times while it meets another writer."""
    for _ in range(_ATTEMPTS):
        try:
            return await attempt()
        except met:
            continue
    raise Conflict("other writers kept changing the same memories")
