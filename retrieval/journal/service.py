"""API operations on feedback and logged searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from postgres.connection import Connection
from retrieval.errors import Conflict, InvalidInput
from retrieval.ids import uuid7
from retrieval.journal.feedback import (
    by_question,
    by_search,
    check_feedback,
    completed,
    fingerprint,
    judged_by_id,
    limited,
    merged,
)
from retrieval.journal.query_log import contains
from retrieval.journal.writer import JournalWriter
from retrieval.store import feedback, namespaces, query_log
from retrieval.store.pool import Pool
from retrieval.types.journal import Feedback, FeedbackPage, FeedbackReceipt, FeedbackRequest, QueryPage, asked_at
from retrieval.validation import check_storable, cursor_position

RELEVANT_FROM = 0.5
"""Lowest rating that counts as relevant when relevance is binary."""

_LAST_NUMBER = 2**63 - 1
_MOST_NAMED = 5
_ENTRIES_AT_ONCE = 1_000


class JournalService:
    """Feedback and logged queries of all namespaces; every method raises `NotFound` if the namespace does not exist."""

    def __init__(self, pool: Pool, journal_writer: JournalWriter) -> None:
        self._pool = pool
        self._journal_writer = journal_writer

    async def add_feedback(self, name: str, request: FeedbackRequest) -> FeedbackReceipt:
        """Store feedback; idempotent for the same id and content.

        Raises:
            InvalidInput: it is empty, contradicts itself, leaves out what the query log does not have, or names
                memories that do not exist; names the field.
            Conflict: other feedback has this id.
        """
        check_storable(request)
        check_feedback(request)
        feedback_id, content = request.id or uuid7(), fingerprint(request)
        if request.search_id:
            await self._journal_writer.flush()  # the search may have been answered just now
        async with namespaces.opened(self._pool, name) as (conn, found), conn.transaction():
            await namespaces.lock(conn, found.ns)
            await feedback.lock(conn, found.ns)
            stored = await feedback.find(conn, found.ns, feedback_id)
            if stored is not None and stored != content:
                raise Conflict(f"there is other feedback with the id {feedback_id!r}")
            if stored is None:
                logged = await query_log.find(conn, found.ns, request.search_id) if request.search_id else None
                whole = completed(request, logged)
                await _check_existing(conn, found.ns, whole)
                await feedback.insert(conn, found.ns, feedback_id, whole, fingerprint=content)
        return FeedbackReceipt(id=feedback_id, stored=stored is None)

    async def list_feedback(self, name: str, *, cursor: str | None, limit: int) -> FeedbackPage:
        """A page of feedback, oldest first; raises InvalidInput if the cursor is not from an earlier page."""
        after = cursor_position(cursor, first=0, last=_LAST_NUMBER)
        async with namespaces.opened(self._pool, name) as (conn, found):
            rows = await feedback.read(conn, found.ns, after=after, limit=limit + 1)
        cursor = str(rows[limit - 1][0]) if len(rows) > limit else None
        return FeedbackPage(feedback=[each for _, each in rows[:limit]], next_cursor=cursor)

    async def delete_feedback(self, name: str) -> int:
        """Delete all feedback; returns the number deleted."""
        async with namespaces.opened(self._pool, name) as (conn, found):
            return await feedback.delete(conn, found.ns)

    async def list_queries(self, name: str, *, cursor: str | None, limit: int) -> QueryPage:
        """A page of the query log, oldest first; raises like `list_feedback`."""
        after = cursor_position(cursor, first=0, last=_LAST_NUMBER)
        await self._journal_writer.flush()
        async with namespaces.opened(self._pool, name) as (conn, found):
            rows = await query_log.read(conn, found.ns, after=after, limit=limit + 1)
        cursor = str(rows[limit - 1][0]) if len(rows) > limit else None
        return QueryPage(queries=[each for _, each in rows[:limit]], next_cursor=cursor)

    async def delete_queries(self, name: str, *, ids: Sequence[str] | None = None) -> int:
        """Delete the entries of these searches, or all; returns the number deleted."""
        await self._journal_writer.flush()
        async with namespaces.opened(self._pool, name) as (conn, found):
            return await query_log.delete(conn, found.ns, ids=ids)

    async def redact_queries(self, name: str, containing: str) -> int:
        """Remove text and filters of entries that contain `containing` in either; returns the number changed.

        Neither case nor the encoding of accents matters. Raises InvalidInput for an empty text.
        """
        check_storable(containing, ("redact",))
        if not containing:
            raise InvalidInput("must not be empty", loc=("redact",))
        after = changed = 0
        await self._journal_writer.flush()
        async with namespaces.opened(self._pool, name) as (conn, found):
            while rows := await query_log.read(conn, found.ns, after=after, limit=_ENTRIES_AT_ONCE):
                ids = [entry.id for _, entry in rows if contains(entry, containing)]
                changed += await query_log.redact(conn, found.ns, ids)
                after = rows[-1][0]
        return changed

    async def judged_queries(self, name: str) -> list[Feedback]:
        """The queries with a findable memory that feedback judges relevant, each once, those judged last at the end.

        `relevant` has all such memories: a rating of at least `RELEVANT_FROM` counts, a click does not. Later feedback
        overrides earlier. `query_timestamp` is always set, even if callers left it out.
        """
        found = [
            structs.replace(judged, relevant=relevant_of(judged), query_timestamp=asked_at(judged))
            for judged in await self._merged(name, by_question)
        ]
        return [judged for judged in found if judged.relevant]

    async def judged_searches(self, name: str) -> list[Feedback]:
        """The feedback merged per search, on memories that it can still find; later feedback overrides earlier."""
        return await self._merged(name, by_search)

    async def _merged(self, name: str, key: Callable[[Feedback], str | bytes]) -> list[Feedback]:
        """The feedback on the memories that the same search may find today, merged by key."""
        async with namespaces.opened(self._pool, name) as (conn, found):
            searches = merged([each for _, each in await feedback.read(conn, found.ns)], key)
            named = {memory_id for judged in searches for _, memory_id in judged_by_id(judged)}
            clicked = {memory_id for judged in searches for memory_id in judged.clicked}
            existing = await feedback.existing(conn, found.ns, named | clicked)
        current = {memory_id for memory_id, is_current in existing.items() if is_current}
        return [limited(judged, existing if judged.as_of else current) for judged in searches]


def relevant_of(judged: Feedback) -> list[str]:
    """The memories judged relevant, sorted: a rating of at least `RELEVANT_FROM` counts, a click does not."""
    rated = {memory_id: rating >= RELEVANT_FROM for memory_id, rating in judged.ratings.items()}
    verdicts = rated | dict.fromkeys(judged.relevant, True) | dict.fromkeys(judged.irrelevant, False)
    return sorted(memory_id for memory_id, relevant in verdicts.items() if relevant)


async def _check_existing(conn: Connection, ns: int, request: FeedbackRequest) -> None:
    """Reject judgements of memories that do not exist."""
    named = list(judged_by_id(request))
    existing = await feedback.existing(conn, ns, (memory_id for _, memory_id in named))
    missing = [(field, memory_id) for field, memory_id in named if memory_id not in existing]
    if missing:
        ids = list(dict.fromkeys(memory_id for _, memory_id in missing))
        more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
        raise InvalidInput(
            f"the namespace has no memory {', '.join(map(repr, ids[:_MOST_NAMED]))}{more}", loc=(missing[0][0],)
        )
