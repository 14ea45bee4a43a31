"""What the tables say of names: entities and aliases as columns, and the statements that select them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from retrieval.index.slots import Slots

_IS_NAME: LiteralString = "e.type <> all('{date,identifier,phrase,term}'::text[])"
"""Whether `entity e` is not of `TOKENIZED_TYPES`: literally as in the condition of the index that finds such."""

NAMES: LiteralString = (
    "string_agg(int8send(e.entity), ''), array_agg(e.key), array_agg(nullif(e.name, e.key)),"
    " array_agg(" + _IS_NAME + ")"
)  # fmt: skip
"""The select list of `entity e` that `Entities` decodes."""

_KEPT: LiteralString = (
    "(select * from entity e where ns = %(ns)s <mentioned> and (" + _IS_NAME + " or name <> key)"
    " union select * from entity where ns = %(ns)s and entity = any(array("
    "select root from entity_merge where ns = %(ns)s <merged> <given>))) as e"
)

ALL_KEPT = _KEPT.replace("<mentioned>", "").replace("<merged>", "").replace("<given>", "")
"""The entities to be kept of a whole namespace, but for those of aliases."""

KEPT_OF_CHANGED = (
    _KEPT.replace("<mentioned>", "and entity = any(array(<mentions>))")
    .replace("<merged>", "and -1 = any(n.changed)")
    .replace("<given>", "union all <mentions> and weight >= 1")
    .replace("<mentions>", "select entity from mention where ns = %(ns)s and doc = any(n.changed)")
)
"""Those that the memories `n.changed` mention, and roots if `ENTITIES` is among these.

What callers give is mentioned with a weight of 1: they alone can say of a name that it is none.
"""

ALIASES: LiteralString = (
    "select array_agg(a.key), array_agg(a.doc), " + NAMES
    + " from entity_alias a join entity e on e.ns = %(ns)s and e.entity = a.entity where a.ns = %(ns)s"
)  # fmt: skip
"""Selects what `Aliases` decodes."""


class Entities(NamedTuple):
    """Entities as columns: ids, keys, names where these are others, and whether they are proper names."""

    ids: NDArray[np.int64]
    keys: Sequence[str]
    names: Sequence[str | None]
    are_names: Sequence[bool]

    @classmethod
    def of(cls, ids: bytes | None, *columns: Any) -> Entities:
        """Decode the columns of `NAMES`, which are all None if there are no rows."""
        keys, names, are_names = (column or () for column in columns)
        return cls(np.frombuffer(ids or b"", ">i8").astype(np.int64), keys, names, are_names)

    def rows(self) -> dict[int, NameRow]:
        """The same by id."""
        return dict(zip(self.ids.tolist(), map(NameRow, self.keys, self.names, self.are_names), strict=True))

    def take(self, places: NDArray[np.intp]) -> Entities:
        """Some of them."""
        keys, names, are_names = ([column[place] for place in places.tolist()] for column in self[1:])
        return Entities(self.ids[places], keys, names, are_names)


class Aliases(NamedTuple):
    """Normalised aliases as columns, with the ordinals of the memories that give them, or `BY_HAND`."""

    keys: Sequence[str]
    docs: NDArray[np.int64]
    entities: Entities

    @classmethod
    def of(cls, keys: list[str] | None, docs: list[int] | None, *entities: Any) -> Aliases:
        """Decode the columns of `ALIASES`, which are all None if there are no rows."""
        return cls(keys or (), np.array(docs or (), np.int64), Entities.of(*entities))

    def given_by(self, docs: Collection[int]) -> Aliases:
        """Those that some memories give."""
        if not self.keys:
            return self
        places = np.isin(self.docs, [*docs]).nonzero()[0]
        return Aliases([self.keys[place] for place in places.tolist()], self.docs[places], self.entities.take(places))

    def rows(self, slots: Slots) -> set[tuple[str, int, int]]:
        """Each alias with its entity and the slot of the memory, or `BY_HAND`."""
        return {*zip(self.keys, self.entities.ids.tolist(), slots.of(self.docs).tolist(), strict=True)}


class NameRow(NamedTuple):
    """An entity: its key, its name if that is another, and whether it is a proper name."""

    key: str
    name: str | None
    is_name: bool


async def read_by_hand(conn: AsyncConnection[Any], ns: int) -> Aliases:
    """The aliases that callers gave the entities of a namespace."""
    by_hand: LiteralString = ALIASES + " and a.doc = -1"
    return Aliases.of(*await one_row(conn, by_hand, {"ns": ns}))


async def one_row(conn: AsyncConnection[Any], statement: LiteralString, params: Mapping[str, int]) -> tuple[Any, ...]:
    """The row of a statement that aggregates without groups."""
    row: tuple[Any, ...]
    [row] = await (await conn.execute(statement, params, binary=True)).fetchall()
    return row
