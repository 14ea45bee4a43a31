"""Stored vectors of memories that were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

_OF: LiteralString = "select id, embedding from memory where ns = %(ns)s and id = any(%(ids)s)"


async def of(conn: AsyncConnection[Any], ns: int, ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
    """Unit vectors by id; a memory deleted meanwhile is absent."""
    rows = await (await conn.execute(_OF, {"ns": ns, "ids": list(ids)}, binary=True)).fetchall()
    return {id: embedding.to_numpy().astype(np.float32) for id, embedding in rows}
