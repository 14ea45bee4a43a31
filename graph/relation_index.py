"""The relations that memories state, by the entities at their ends."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from graph.forward_chaining import StatedRelation
from graph.persistent import Persistent


class RelationTable:
    """Sorted rows of source, number of the name, target and memory, with indexes by source, target and memory.

    Used directly as mapped from a file, and never changed.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Use the `arrays` of another table."""
        self.arrays = arrays
        self._rows = arrays["rows"]
        self._entities = arrays["entities"].data
        """Read by `bisect`, which is faster than NumPy for the few entities of a query."""

    @classmethod
    def from_rows(cls, rows: NDArray[np.int64], types: Sequence[str]) -> RelationTable:
        """Sort rows, shape (n, 4), whose names are given as indices into the ascending `types`."""
        rows = rows[np.lexsort(rows.T[::-1])]
        source, _, target, doc = rows.T
        entities = np.union1d(source, target)
        by_target, by_doc = (np.argsort(column, kind="stable") for column in (target, doc))
        return cls(
            {
                "rows": rows,
                "types": np.frombuffer(msgspec.json.encode(types), np.uint8),
                "entities": entities,
                "outgoing": np.append(np.searchsorted(source, entities), len(rows)),
                "incoming": np.append(np.searchsorted(target[by_target], entities), len(rows)),
                "by_target": by_target,
                "docs": doc[by_doc],
                "by_doc": by_doc,
            }
        )

    @cached_property
    def types(self) -> list[str]:
        """The names, ascending."""
        return msgspec.json.decode(self.arrays["types"].data, type=list[str])

    @property
    def is_consistent(self) -> bool:
        """Whether its indexes match its rows."""
        rebuilt = self.from_rows(self._rows, self.types).arrays
        return all(np.array_equal(array, rebuilt[name]) for name, array in self.arrays.items())

    def __contains__(self, entity: int) -> bool:
        place = bisect_left(self._entities, entity)
        return place < len(self._entities) and bool(self._entities[place] == entity)

    def of_entity(self, entity: int) -> tuple[list[StatedRelation], list[StatedRelation]]:
        """The relations with the entity as source, and those with it as target, ascending."""
        if entity not in self:
            return [], []
        place = bisect_left(self._entities, entity)
        outgoing, incoming = (slice(*self.arrays[way][place : place + 2].tolist()) for way in ("outgoing", "incoming"))
        return self._stated(self._rows[outgoing]), self._stated(self._rows[self.arrays["by_target"][incoming]])

    def of_memories(self, docs: Collection[int]) -> list[StatedRelation]:
        """The relations that some memories state."""
        numbers = np.fromiter(docs, np.int64, len(docs))
        starts, ends = (self.arrays["docs"].searchsorted(numbers, side) for side in ("left", "right"))
        there = np.flatnonzero(ends > starts)
        spans = zip(starts[there].tolist(), ends[there].tolist(), strict=True)
        return [each for span in spans for each in self._stated(self._rows[self.arrays["by_doc"][slice(*span)]])]

    def _stated(self, rows: NDArray[np.int64]) -> list[StatedRelation]:
        types = self.types
        return [StatedRelation(source, types[number], target, doc) for source, number, target, doc in rows.tolist()]


_NONE = RelationTable.from_rows(np.empty((0, 4), np.int64), [])


class RelationIndex(Persistent):
    """The relations of a graph: a table, and those added and removed since.

    The relations of an entity become lists when they are first requested or changed; from then on the lists are valid
    and the table is not.
    """

    def __init__(self) -> None:
        self._table = _NONE
        self._removed: set[int] = set()
        """Memories whose relations in the table no longer count."""
        self._added: dict[int, list[StatedRelation]] = {}
        """Relations by memory."""
        self._lists: dict[int, tuple[list[StatedRelation], list[StatedRelation]]] = {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a table with all relations; they never change."""
        added = list(chain.from_iterable(self._added.values()))
        types = sorted({*self._table.types, *(stated.relation for stated in added)})
        number_of = {name: number for number, name in enumerate(types)}
        stored = self._table.arrays["rows"]
        former = stored[~np.isin(stored[:, 3], list(self._removed))]
        former[:, 1] = np.array([number_of[name] for name in self._table.types], np.int64)[former[:, 1]]
        new = [(stated.source, number_of[stated.relation], stated.target, stated.doc) for stated in added]
        rows = np.concatenate([former, np.array(new, np.int64).reshape(-1, 4)])
        return dict(RelationTable.from_rows(rows, types).arrays)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Use the `arrays` of another index as its table."""
        self._table = RelationTable(arrays)

    @property
    def is_consistent(self) -> bool:
        """Whether the table's indexes match its rows."""
        return self._table.is_consistent

    @property
    def nbytes(self) -> int:
        """Its approximate size in bytes."""
        listed = sum(len(outgoing) + len(incoming) for outgoing, incoming in self._lists.values())
        return sum(array.nbytes for array in self._table.arrays.values()) + 150 * listed

    def add(self, relations: Iterable[StatedRelation]) -> None:
        """Add relations; the same one stated by two memories counts as two."""
        for stated in relations:
            self._added.setdefault(stated.doc, []).append(stated)
            insort(self._listed(stated.source)[0], stated)
            insort(self._listed(stated.target)[1], stated)

    def remove(self, docs: Collection[int]) -> None:
        """Remove the relations that some memories state."""
        for stated in self.of_memories(docs):
            self._listed(stated.source)[0].remove(stated)
            self._listed(stated.target)[1].remove(stated)
        self._removed.update(docs)
        for doc in docs:
            self._added.pop(doc, None)

    def of_memories(self, docs: Collection[int]) -> list[StatedRelation]:
        """The relations that some memories state."""
        docs = set(docs)
        return [
            *self._table.of_memories(docs - self._removed),
            *chain.from_iterable(self._added.get(doc, ()) for doc in docs),
        ]

    def of_entity(self, entity: int) -> tuple[Sequence[StatedRelation], Sequence[StatedRelation]]:
        """The relations with the entity as source, and those with it as target, ascending."""
        return self._listed(entity) if self.related([entity]) else ((), ())

    def _listed(self, entity: int) -> tuple[list[StatedRelation], list[StatedRelation]]:
        """The lists of an entity, which from now on replace the table."""
        ways = self._lists.get(entity)
        if ways is None:
            ways = self._lists[entity] = self._table.of_entity(entity)
        return ways

    def related(self, entities: Collection[int]) -> list[int]:
        """The entities among these that have relations, in order."""
        return [
            entity
            for entity in entities
            if (any(self._lists[entity]) if entity in self._lists else entity in self._table)
        ]
