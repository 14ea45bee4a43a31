"""The feedback table: judgements with the rankings they refer to, at most `MAX_ROWS` per namespace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

import msgspec
from psycopg.types.json import Jsonb

from postgres.connection import Connection, fetch
from retrieval.store.visibility import seen_by
from retrieval.types.journal import Feedback, FeedbackRequest
from retrieval.types.search import SearchOptions

MAX_ROWS = 100_000
"""Most rows of feedback per namespace; the oldest are deleted first."""

# The update changes nothing: it locks the row against other writers of feedback until the transaction ends.
_LOCK: LiteralString = """
    insert into journal as j (ns) values (%(ns)s) on conflict (ns) do update set feedback = j.feedback
"""

_FIND: LiteralString = "select fingerprint from feedback where ns = %(ns)s and id = %(id)s"

_INSERT: LiteralString = """
    with numbered as (
        update journal set feedback = feedback + 1 where ns = %(ns)s returning feedback as number
    ), outlived as (
        delete from feedback where ns = %(ns)s and number <= (select number from numbered) - %(most)s
    )
    insert into feedback (ns, number, id, query, shown, relevant, irrelevant, clicked, ratings, intent, profile,
        search_id, filters, as_of, query_timestamp, fingerprint)
    select %(ns)s, number, %(id)s, %(query)s, %(shown)s::text[], %(relevant)s::text[], %(irrelevant)s::text[],
        %(clicked)s::text[], %(ratings)s::jsonb, %(intent)s, %(profile)s, %(search_id)s, %(filters)s::jsonb, %(as_of)s,
        %(query_timestamp)s, %(fingerprint)s
    from numbered
"""

_EXISTING: LiteralString = """
    select m.id, <visible> from memory m where m.ns = %(ns)s and m.id = any(%(ids)s::text[])
""".replace("<visible>", seen_by(SearchOptions()).sql)

# In the order of `Feedback`'s fields, after the number.
_COLUMNS: LiteralString = """
    number, id, at, query, shown, relevant, irrelevant, clicked, ratings, intent, profile, search_id, filters, as_of,
    query_timestamp
"""

_PAGE: LiteralString = (
    "select " + _COLUMNS + " from feedback where ns = %(ns)s and number > %(after)s order by number limit %(limit)s"
)

_DELETE: LiteralString = "delete from feedback where ns = %(ns)s"


async def lock(conn: Connection, ns: int) -> None:
    """Block other writers of the namespace's feedback until the transaction ends."""
    await conn.execute(_LOCK, {"ns": ns})


async def find(conn: Connection, ns: int, feedback_id: str) -> bytes | None:
    """The fingerprint of the stored feedback with that id, or None."""
    rows = await fetch(conn, _FIND, {"ns": ns, "id": feedback_id})
    return rows[0][0] if rows else None


async def existing(conn: Connection, ns: int, ids: Iterable[str]) -> dict[str, bool]:
    """The subset of `ids` that are memories of the namespace; False for one that is superseded or has expired."""
    return {id_: current for id_, current in await fetch(conn, _EXISTING, {"ns": ns, "ids": sorted(set(ids))})}


async def insert(conn: Connection, ns: int, feedback_id: str, request: FeedbackRequest, *, fingerprint: bytes) -> None:
    """Insert a row, after `lock` in the same transaction; deletes the oldest rows beyond `MAX_ROWS`.

    `feedback_id` must be new; `fingerprint` is a hash of what the caller sent.
    """
    filters = request.filters
    parameters = {
        **{name: getattr(request, name) for name in FeedbackRequest.__struct_fields__},
        "ns": ns,
        "id": feedback_id,
        "intent": request.intent and request.intent.value,
        "most": MAX_ROWS,
        "ratings": Jsonb(request.ratings),
        "filters": None if filters is None else Jsonb(msgspec.to_builtins(filters)),
        "fingerprint": fingerprint,
    }
    await conn.execute(_INSERT, parameters)


async def read(
    conn: Connection, ns: int, *, after: int = 0, limit: int | None = None
) -> Sequence[tuple[int, Feedback]]:
    """Feedback with numbers above `after`, oldest first, as (number in the namespace, feedback)."""
    return [_numbered(row) for row in await fetch(conn, _PAGE, {"ns": ns, "after": after, "limit": limit})]


async def delete(conn: Connection, ns: int) -> int:
    """Delete all feedback of the namespace; returns the number of rows."""
    return (await conn.execute(_DELETE, {"ns": ns})).rowcount


def _numbered(row: Sequence[Any]) -> tuple[int, Feedback]:
    """Decode a row of `_COLUMNS`."""
    number, *values = row
    return number, msgspec.convert(dict(zip(Feedback.__struct_fields__, values, strict=True)), Feedback)
