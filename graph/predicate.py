"""Statements with the caller's predicate on what may be seen."""

from __future__ import annotations

from functools import lru_cache
from typing import LiteralString


@lru_cache(maxsize=16)
def with_predicate(sql: LiteralString, eligible: LiteralString) -> LiteralString:
    """The statement with `{eligible}` filled in, blanks squeezed: psycopg caches only short ones.

    >>> with_predicate("select doc from memory m   where {eligible}", "m.doc > 3")
    'select doc from memory m where m.doc > 3'
    """
    return " ".join(sql.replace("{eligible}", eligible).split())
