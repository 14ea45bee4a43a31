"""Entities and aliases as columns, and the statements that select them from the tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.adjacency import id_ranges
from postgres.arrays import integers
from postgres.connection import Connection, fetch
from retrieval.index.slots import Slots
from retrieval.store import changes

_IS_NAME: LiteralString = "e.type <> all('{date,identifier,phrase,term}'::text[])"
"""Whether `entity e` is not of `TOKENIZED_TYPES`; must match the condition of the partial index literally."""

NAMES: LiteralString = (
    "string_agg(int8send(e.entity), ''), array_agg(e.key), array_agg(nullif(e.name, e.key)),"
    " array_agg(coalesce(" + _IS_NAME + ", false))"
)  # fmt: skip
"""The select list of `entity e` that `Entities` decodes."""

_ROOTS: LiteralString = (
    "select entity, key, name, type from entity where ns = %(ns)s and entity = any(array("
    "select root from entity_merge where ns = %(ns)s <merged>))"
)

ALL_KEPT: LiteralString = (
    "(select entity, key, name, type from entity e where ns = %(ns)s and (" + _IS_NAME + " or name <> key) union "
    + _ROOTS.replace("<merged>", "") + ") as e"
)  # fmt: skip
"""The entities of a whole namespace to keep, except those of aliases."""

DESCRIBED: LiteralString = (
    "(select d.entity, e.key, e.name, e.type from unnest(" + changes.DESCRIBED + ") as d (entity)"
    " left join entity e on e.ns = %(ns)s and e.entity = d.entity union "
    + _ROOTS.replace("<merged>", "and -1 = any(n.changed)") + ") as e"
)  # fmt: skip
"""Entities changed since the snapshot of a `namespace n`, without a key if deleted; includes roots with `ENTITIES`."""

_SOME: LiteralString = "select " + NAMES + " from " + ALL_KEPT + " where entity >= %(least)s and entity <= %(most)s"

ALIASES: LiteralString = (
    "select array_agg(a.key), array_agg(a.doc), " + NAMES
    + " from entity_alias a join entity e on e.ns = %(ns)s and e.entity = a.entity where a.ns = %(ns)s"
)  # fmt: skip
"""Selects what `Aliases` decodes."""


class Entities(NamedTuple):
    """Entities as columns: ids, keys, names if other than the key, and whether they are proper names.

    A deleted entity has no key.
    """

    ids: NDArray[np.int64]
    keys: Sequence[str | None]
    names: Sequence[str | None]
    are_names: Sequence[bool]

    @classmethod
    def from_columns(cls, ids: bytes | None, *columns: Any) -> Entities:
        """Decode the columns of `NAMES`, which are all None if there are no rows."""
        keys, names, are_names = (column or () for column in columns)
        return cls(integers(ids, ">i8"), keys, names, are_names)

    def rows(self) -> dict[int, NameRow]:
        """The entities that are not deleted, by id."""
        columns = zip(self.ids.tolist(), self.keys, self.names, self.are_names, strict=True)
        return {entity: NameRow(key, name, is_name) for entity, key, name, is_name in columns if key is not None}

    def take(self, positions: NDArray[np.intp]) -> Entities:
        """The entities at some positions."""
        keys, names, are_names = ([column[position] for position in positions.tolist()] for column in self[1:])
        return Entities(self.ids[positions], keys, names, are_names)


class Aliases(NamedTuple):
    """Normalised aliases as columns, with the ordinals of the memories that give them, or `BY_HAND`."""

    keys: Sequence[str]
    docs: NDArray[np.int64]
    entities: Entities

    @classmethod
    def from_columns(cls, keys: list[str] | None, docs: list[int] | None, *entities: Any) -> Aliases:
        """Decode the columns of `ALIASES`, which are all None if there are no rows."""
        return cls(keys or (), np.array(docs or (), np.int64), Entities.from_columns(*entities))

    def given_by(self, docs: Collection[int]) -> Aliases:
        """The aliases given by these memories."""
        return self.take(np.isin(self.docs, [*docs]).nonzero()[0])

    def take(self, positions: NDArray[np.intp]) -> Aliases:
        """The aliases at some positions."""
        return Aliases(
            [self.keys[position] for position in positions.tolist()],
            self.docs[positions],
            self.entities.take(positions),
        )

    def rows(self, slots: Slots) -> set[tuple[str, int, int]]:
        """Each alias with its entity and the slot of the memory, or `BY_HAND`."""
        return {*zip(self.keys, self.entities.ids.tolist(), slots.from_ordinals(self.docs).tolist(), strict=True)}


class NameRow(NamedTuple):
    """An entity: its key, its name if other than the key, and whether it is a proper name."""

    key: str
    name: str | None
    is_name: bool

    @property
    def is_shown_otherwise(self) -> bool:
        """Whether it is not a common phrase whose name is its key."""
        return self.is_name or self.name is not None


async def read_kept(conn: Connection, ns: int, *, parts: int) -> AsyncIterator[Entities]:
    """The entities of a whole namespace to keep, except those of aliases, with `parts` statements."""
    for least, most in id_ranges(parts):
        [row] = await fetch(conn, _SOME, {"ns": ns, "least": least, "most": most}, binary=True)
        yield Entities.from_columns(*row)
