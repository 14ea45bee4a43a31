"""A connection, and fetching all rows of a statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

Connection = AsyncConnection[TupleRow]


async def fetch(
    conn: Connection, statement: LiteralString, parameters: Mapping[str, Any] | None = None, *, binary: bool = False
) -> list[TupleRow]:
    """All rows of a statement."""
    return await (await conn.execute(statement, parameters, binary=binary)).fetchall()
