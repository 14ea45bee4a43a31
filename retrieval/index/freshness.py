"""Keeping an index up to date: every query asks what has been written since, and that is applied.

One statement asks which transactions are visible now that the index's snapshot does not include, and reads what they
changed. If that can no longer be determined, the index is discarded and loaded again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, LiteralString

import numpy as np
from numpy.typing import NDArray

from postgres.arrays import array_text
from postgres.connection import Connection
from postgres.prepared import BoundStatement, Parameters, PreparedStatement, fetch_pipelined
from retrieval.errors import NamespaceNotFound
from retrieval.index import namespace_index, rows
from retrieval.index.namespace_index import NamespaceIndex, metadata_key
from retrieval.index.rows import MemoryRows
from retrieval.index.slots import NO_SLOT
from retrieval.index.snapshot import CheckedNamespace
from retrieval.store import changes, memories, namespaces
from retrieval.store.bm25 import postings
from retrieval.store.changes import ENTITIES, DatabaseSnapshot, one_snapshot
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.types.namespace import NamespaceSettings

_CHECKED: LiteralString = (
    "select " + namespaces.CURRENT + ", pg_current_snapshot()::text, " + changes.IS_CONTINUED + ", " + changes.CHANGED
    + " as changed from namespace n where n.name = %(name)s"
)  # fmt: skip

_CHECK = PreparedStatement(_CHECKED)

_FOLLOW = PreparedStatement("with n as materialized (" + _CHECKED + ") select * from n" + rows.OF_CHANGED)
"""Like `_CHECK`, with all data of the changed memories."""

_CHECK_WIDTH = 8
_CHANGED = _CHECK_WIDTH - 1

_FETCH = PreparedStatement(postings.FETCH_TERMS)


class FollowedIndex:
    """An index that follows the writes to its namespace.

    Attributes:
        settings: the namespace's, as of the last check.
        expects_changes: whether the next check is likely to find changes.
    """

    def __init__(self, index: NamespaceIndex, settings: NamespaceSettings) -> None:
        """Follow from the index's snapshot on."""
        self.index = index
        self.settings = settings
        self.expects_changes = False
        self._is_broken = False
        """Whether changes were only partly applied, so that the index must not be used."""
        self._extras = _CheckExtras(index)
        """What the next check fetches."""

    def want(self, terms: Collection[int], metadata: Mapping[str, Any] | None) -> None:
        """Make the next check fetch the postings of some terms, and the matches of a metadata filter."""
        self._extras.terms.update(terms)
        if metadata:
            self._extras.filters[metadata_key(metadata)] = metadata

    async def check(self, pool: Pool, name: str) -> CheckedNamespace | None:
        """Bring the index up to date; None if that is impossible, and it must no longer be used.

        Raises NotFound if the namespace no longer exists.
        """
        index = self.index
        extras, self._extras = self._extras, _CheckExtras(index)
        if self._is_broken:
            return None
        snapshot, later = index.snapshot, list[BoundStatement]()
        if snapshot.on_standby:
            later = [changes.next_snapshot(snapshot)]
        async with pool.connection() as conn:
            asked_at = time.monotonic()
            asked: Parameters = {"name": name, **snapshot.parameters, **rows.PARAMETERS}
            # After a change another one is likely: a chat is written and searched in turns.
            check: BoundStatement = (_FOLLOW if self.expects_changes else _CHECK, asked)
            # The check comes last, so that it reports every change that the other statements did not see.
            *answers, checked = await fetch_pipelined(conn, [*later, *extras.questions(), check])
            if later:
                (standby,), *answers = answers
            if not checked:
                raise NamespaceNotFound(name)
            [row] = checked
            if not _can_apply(index, row):
                return None
            if row[_CHANGED]:
                extras.take_in(answers)
                followed = await self._follow(conn, extras, asked, row)
                if followed is None:
                    return None
                row, answers = followed
        index.drop_removed()
        ns, stored, next_doc, generation, now, transactions, _, changed = row[:_CHECK_WIDTH]
        self.expects_changes = bool(changed)
        index.snapshot = DatabaseSnapshot(*standby) if later else snapshot._replace(transactions=transactions)
        extras.take_in(answers)
        self.settings = namespaces.settings_of(stored)
        namespace = Namespace(ns, name, self.settings, next_doc, generation)
        return CheckedNamespace(namespace, index, now, asked_at)

    async def _follow(
        self, conn: Connection, extras: _CheckExtras, asked: Parameters, row: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], list[list[tuple[Any, ...]]]] | None:
        """Apply the changes that a check found.

        Returns the check as of the applied snapshot, and the answers to what `extras` now asks; None if the changes
        cannot be applied.
        """
        needs_snapshot = bool(extras.filters)
        while True:
            # Metadata and the edges of merged entities are read in the snapshot of the changes.
            needs_snapshot = needs_snapshot or ENTITIES in row[_CHANGED]
            async with one_snapshot(conn) if needs_snapshot else nullcontext():
                if needs_snapshot or len(row) == _CHECK_WIDTH:
                    checked = await _FOLLOW.rows(conn, asked)
                    if not checked:
                        return None
                    [row] = checked
                if not _can_apply(self.index, row):
                    return None
                changed = sorted(set(row[_CHANGED]))
                if ENTITIES in changed and not needs_snapshot:
                    continue
                self._is_broken = True
                read = MemoryRows.from_row(row[_CHECK_WIDTH:])
                if not await namespace_index.apply_changes(conn, self.index, changed, read):
                    return None
                self._is_broken = False
                again = extras.questions()
                return row, await fetch_pipelined(conn, again) if again else []


class _CheckExtras:
    """What a check fetches besides the changes: postings of terms, and matches of metadata filters.

    Attributes:
        filters: by `metadata_key`.
    """

    def __init__(self, index: NamespaceIndex) -> None:
        self._index = index
        self.terms: set[int] = set()
        self.filters: dict[bytes, Mapping[str, Any]] = {}

    def questions(self) -> list[BoundStatement]:
        """The statements needed for the index in its current state."""
        index = self._index
        self._missing, self._additions = index.terms.missing(self.terms), index.terms.additions
        self._unknown = [each for each in self.filters.values() if index.with_metadata(each) is None]
        questions: list[BoundStatement] = []
        if self._missing:
            questions.append((_FETCH, {"ns": index.ns, "terms": array_text(self._missing)}))
        return questions + [memories.asking_metadata(index.ns, metadata) for metadata in self._unknown]

    def take_in(self, answers: Sequence[list[tuple[Any, ...]]]) -> None:
        """Store the answers in the index, which must be of the same snapshot."""
        index, found = self._index, iter(answers)
        if self._missing:  # later additions are told apart by `additions`
            fetched = postings.decode_terms(next(found), self._missing)
            index.terms.put(fetched, self._missing, additions=self._additions)
            index.terms.shrink(spare=self.terms)
        for metadata, matches in zip(self._unknown, found, strict=True):
            docs = index.memories.slots.from_ordinals(np.array([doc for (doc,) in matches], np.int64))
            index.keep_metadata(metadata, docs[docs != NO_SLOT], changed=index.changed)


async def changed_since(conn: Connection, name: str, index: NamespaceIndex) -> NDArray[np.int64] | None:
    """Ordinals of the memories changed after an index's snapshot; None if that is no longer known."""
    checked = await _CHECK.rows(conn, {"name": name, **index.snapshot.parameters})
    return np.array(checked[0][_CHANGED], np.int64) if checked and _is_continued(index, checked[0]) else None


def _is_continued(index: NamespaceIndex, row: tuple[Any, ...]) -> bool:
    """Whether the row of a check has all changes since an index's snapshot."""
    ns, _, _, generation, _, _, is_continued, _ = row[:_CHECK_WIDTH]
    return bool(ns == index.ns and generation == index.generation and is_continued)


def _can_apply(index: NamespaceIndex, row: tuple[Any, ...]) -> bool:
    """Whether an index can apply the changes of a check; if there are too many, loading it again is faster."""
    return _is_continued(index, row) and len(set(row[_CHANGED])) <= index.max_incremental
