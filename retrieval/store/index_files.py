"""Which index files can still be brought up to date.

A file holds a namespace as of a PostgreSQL snapshot, and its row here was committed after that. A database that has
the row has every transaction that the snapshot shows, as PostgreSQL loses and replays commits only in order; and none
of its later transactions reuses one of their numbers. So a file survives restarts, crashes and promotions; one that is
newer than a restored backup has no row. A dump copies the rows too, but the restored database has another `origin`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from postgres.connection import Connection, fetch
from postgres.prepared import Parameters, PreparedStatement
from retrieval.store.changes import ARE_KEPT, CHANGED, SNAPSHOT, DatabaseSnapshot

_ORIGIN: LiteralString = (
    "concat_ws(' ', (select system_identifier from pg_control_system()), pg_relation_filepath('memory_change'))"
)

_RECORD: LiteralString = (
    """
    insert into index_file (token, ns, transactions)
    select %(token)s::uuid, ns, %(transactions)s::pg_snapshot from namespace
    where ns = %(ns)s and """ + _ORIGIN + " = %(origin)s and " + ARE_KEPT + "for key share returning true"
)  # fmt: skip

_DELETE: LiteralString = "delete from index_file where ns = %(ns)s and token = %(token)s::uuid"

_TOKENS: LiteralString = "select token::text from index_file"

_SINCE = PreparedStatement(
    "select " + SNAPSHOT + ", " + CHANGED + """
    from namespace n join index_file f on f.ns = n.ns
    where n.ns = %(ns)s and n.generation = %(generation)s and f.token = %(token)s::uuid
        and f.transactions::text = %(transactions)s::text and """ + _ORIGIN + " = %(origin)s"
)  # fmt: skip


async def origin(conn: Connection) -> str:
    """Identifies the database, whatever its address; a restored dump is a different one."""
    [(found,)] = await fetch(conn, "select " + _ORIGIN)
    return str(found)


async def tokens(conn: Connection) -> set[str]:
    """The tokens of the files that can still be brought up to date."""
    return {token for (token,) in await fetch(conn, _TOKENS)}


async def record(conn: Connection, origin: str, token: str, ns: int, transactions: str) -> bool:
    """Record a file written as of a snapshot; False if it could no longer be brought up to date."""
    return bool(await fetch(conn, _RECORD, {"origin": origin, "token": token, "ns": ns, "transactions": transactions}))


async def delete(conn: Connection, token: str, ns: int) -> None:
    """Delete the row of a file that was replaced."""
    await conn.execute(_DELETE, {"token": token, "ns": ns})


async def since(
    conn: Connection, origin: str, token: str, ns: int, generation: int, transactions: str
) -> tuple[DatabaseSnapshot, Sequence[int]] | None:
    """The current snapshot and the ordinals that changed since a file was written.

    None if that is no longer known, or another file has its name. `conn` is in a transaction with one snapshot.
    """
    parameters: Parameters = {
        "origin": origin, "token": token, "ns": ns, "generation": generation, "transactions": transactions
    }  # fmt: skip
    rows = await _SINCE.rows(conn, parameters)
    if not rows:
        return None
    *snapshot, changed = rows[0]
    return DatabaseSnapshot(*snapshot), sorted(set(changed))
