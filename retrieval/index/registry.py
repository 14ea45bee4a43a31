"""The indexes of a server process: loaded on first query, checked by every query, evicted to stay within a budget.

A query sees everything committed before it arrived. Queries that arrive while an index is checked share the next
check. An index that cannot be brought up to date is dropped and loaded again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from native.malloc import trim_heap
from postgres.connection import Connection
from retrieval.errors import NotFound, StoreError, VectorsReplaced
from retrieval.index import namespace_index, small_namespaces
from retrieval.index.files import IndexFiles
from retrieval.index.freshness import FollowedIndex, changed_since
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.index.rows import FEW_VECTORS
from retrieval.index.slots import NO_SLOT, slotted
from retrieval.index.snapshot import CheckedNamespace, NamespaceSnapshot
from retrieval.index.terms import Vocabulary
from retrieval.store import namespaces, vectors
from retrieval.store.bm25.segments import read_all
from retrieval.store.changes import one_snapshot
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.tasks import SingleFlight, cancel
from retrieval.types.namespace import NamespaceSettings
from retrieval.types.state import LoadedIndex

log = logging.getLogger(__name__)

WARMED_FROM = 5_000
"""Fewest memories for a namespace to be loaded at server start, and kept in a file."""

PATIENCE_S = 0.25
"""How long a query that can use a partial index waits for a large namespace to load, seconds."""

FILE_PATIENCE_S = 1.0
"""How much longer it waits if there is a file, from which a million memories load in a tenth of that, seconds."""

LARGE_FROM = 20_000
"""Fewest ordinals of a large namespace; a smaller one loads within the time of a query."""

SAVE_PAUSE_S = 60.0
"""Least time between two attempts to write an index to its file, seconds."""

BUSY_PAUSE_S = 5.0
"""Time until the next attempt if another process was writing the file, which that attempt maps, seconds."""

RELOAD_PAUSE_S = 30.0
"""Least time between two attempts to reload an index that needs it, seconds."""

Terms = Callable[[str], Sequence[int]]
"""The terms of a query, given the namespace's language of analysis."""

_USUAL = NamespaceSettings()


@dataclass(slots=True)
class _Entry:
    """An index with its checks and background tasks.

    Attributes:
        nbytes: its size as counted in the registry.
        current_check: the last check sent; a query that arrives now needs a later one.
        next_check: the check after that, if a query waits for one.
        reloaded_at: when loading a new index to replace this one was last started, in seconds.
        vector_load: the task that reads missing vectors.
    """

    followed: FollowedIndex
    nbytes: int
    current_check: asyncio.Task[CheckedNamespace | None] | None = None
    next_check: asyncio.Task[CheckedNamespace | None] | None = None
    reloaded_at: float = -math.inf
    vector_load: asyncio.Task[None] | None = None

    @property
    def index(self) -> NamespaceIndex:
        """The index as of the last check."""
        return self.followed.index


_Loaded = tuple[_Entry, CheckedNamespace | None]
"""A loaded index, and a check if the load included one."""


class StillReading(Exception):
    """A large namespace takes longer to load than a query waits."""

    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self.namespace = namespace


class IndexRegistry:
    """Indexes by the name of their namespace."""

    def __init__(self, pool: Pool, *, most_bytes: int, files: IndexFiles | None = None) -> None:
        """Hold indexes of at most `most_bytes` in total, but at least one; keep large ones in `files` too."""
        self._pool = pool
        self._files = files
        self._most_bytes = most_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._loads: SingleFlight[str, _Loaded] = SingleFlight()
        self._reloads: SingleFlight[str, None] = SingleFlight()
        self._saves: SingleFlight[str, None] = SingleFlight()
        self._save_from: dict[str, float] = {}
        self.nbytes = 0
        """Approximate size of all indexes in bytes."""
        self.are_warm = True
        """False while the largest namespaces are being loaded at startup."""

    def last(self, name: str) -> NamespaceIndex | None:
        """The index of a namespace as of its last check; None if it is not loaded."""
        entry = self._entries.get(name)
        return None if entry is None else entry.index

    def expect_changes(self, name: str) -> None:
        """Make the next check of a namespace fetch the changes in one go, as this process has written to it."""
        if entry := self._entries.get(name):
            entry.followed.expects_changes = True

    async def current(
        self, name: str, terms: Terms, metadata: Mapping[str, Any] | None = None, *, waits: bool = True
    ) -> NamespaceSnapshot:
        """A namespace as of now, with the postings of some terms and the memories that match a metadata filter.

        Raises NotFound if it does not exist, StillReading if it is large, not yet loaded and `waits` is false.
        """
        former: NamespaceIndex | None = None
        while True:
            entry, checked = self._entries.get(name), None
            if entry is None:
                entry, checked = await self._loaded(name, terms, former, waits=waits)
            language = entry.followed.settings.language
            wanted = terms(language)
            if checked is None or checked.index.terms.missing(wanted) or metadata:
                entry.followed.want(wanted, metadata)
                checked = await self._next_check(name, entry)
            if checked is None or checked.namespace.settings.language != language:
                former = entry.index
                continue
            index = checked.index
            matching = index.with_metadata(metadata) if metadata else None
            if not index.terms.missing(wanted) and (matching is not None or not metadata):
                now, postings = checked.now, index.terms.postings(wanted)
                return NamespaceSnapshot(checked.namespace, index, now, checked.asked_at, postings, matching)

    async def read_vocabulary(self, index: NamespaceIndex) -> None:
        """Read the terms that occur, once per index, unless they are too many."""
        if index.terms.vocabulary is not None or index.memories.count > LARGE_FROM:
            return
        async with self._pool.connection() as conn, one_snapshot(conn):
            tables = [table async for table in read_all(conn, index.ns, memories=index.memories.count)]
        index.terms.vocabulary = Vocabulary.from_terms(np.concatenate([table.terms for table in tables]))

    def loaded(self) -> list[LoadedIndex]:
        """The loaded indexes, most recently used first."""
        return [
            LoadedIndex(namespace=name, memories=entry.index.memories.count, bytes=entry.nbytes)
            for name, entry in reversed(self._entries.items())
        ]

    async def warm(self, *, least: int = WARMED_FROM) -> None:
        """Load the largest namespaces before their first query, until half of the budget is used.

        Those with fewer than `least` memories are skipped, as they load within the time of a query.
        """
        self.are_warm = False
        try:
            async with self._pool.connection() as conn:
                names = await namespaces.largest(conn, least=least)
            for name in names:
                if self.nbytes > self._most_bytes / 2:
                    break
                await self.load(name)
        finally:
            self.are_warm = True

    async def load(self, name: str) -> None:
        """Load a namespace unless it is loaded; raises NotFound if it does not exist."""
        if name not in self._entries:
            await self._loaded(name, lambda _: ())

    async def aclose(self) -> None:
        """Cancel all loads and checks."""
        entries = self._entries.values()
        tasks = [task for each in entries for task in (each.vector_load, each.current_check, each.next_check) if task]
        flights = self._loads, self._reloads, self._saves
        await asyncio.gather(*(each.aclose() for each in flights), cancel(*tasks))

    async def _loaded(
        self, name: str, terms: Terms, former: NamespaceIndex | None = None, *, waits: bool = True
    ) -> _Loaded:
        """Load a namespace, or wait for the running load.

        The caller that starts the load arrived before its snapshot and skips the freshness check. A small namespace is
        loaded with the caller's terms, provided that its language is the default. Vectors are copied from a `former`
        index.
        """
        task = self._loads.get(name)
        is_new = task is None
        if task is None:
            task = self._loads.start(name, self._load(name, terms(_USUAL.language), former, files=self._files))
        if not waits and not (await asyncio.wait([task], timeout=PATIENCE_S))[0]:
            async with self._pool.connection() as conn:
                namespace = await namespaces.find(conn, name)
            if namespace.next_doc >= LARGE_FROM:
                patience_s = FILE_PATIENCE_S if self._files and self._files.path(namespace.ns) else 0.0
                if not (await asyncio.wait([task], timeout=patience_s))[0]:
                    raise StillReading(namespace)
        entry, checked = await asyncio.shield(task)
        return entry, checked if is_new else None

    async def _load(
        self, name: str, terms: Sequence[int] = (), former: NamespaceIndex | None = None, *, files: IndexFiles | None
    ) -> _Loaded:
        """Load a namespace from `files`, or from the tables."""
        async with self._pool.connection() as conn:
            small = await small_namespaces.read(conn, name, terms)
            followed, checked = small or (await _large(conn, name, files), None)
            index = followed.index
            if former is not None and small is None and not index.file:
                index.replaces = former.file
                await _take_over_vectors(conn, name, former, index)
        entry = _Entry(followed, index.nbytes)
        if small is None and index.memories.count > FEW_VECTORS:
            await asyncio.to_thread(trim_heap)
        if name in self._entries:
            self._drop(name, self._entries[name])
        self._entries[name] = entry
        self.nbytes += entry.nbytes
        self._make_room()
        self._start_vector_load(name, entry)
        self._start_saving(name, entry)
        return entry, checked

    def _start_vector_load(self, name: str, entry: _Entry) -> None:
        """Start reading the vectors in the background if many are missing."""
        missing = entry.index.memories.count - entry.index.vectors.count
        if missing > FEW_VECTORS and (entry.vector_load is None or entry.vector_load.done()):
            entry.vector_load = asyncio.create_task(self._load_vectors(name, entry))

    async def _load_vectors(self, name: str, entry: _Entry) -> None:
        """Read the missing vectors in parts, so that queries need not."""
        index = entry.index
        docs = index.vectors.eligible_rows(index.memories.alive.values.copy()).missing
        for first in range(0, docs.size, FEW_VECTORS):
            some = docs[first : first + FEW_VECTORS]
            missing = some[~index.vectors.knows(some)]
            version = index.vectors.version
            try:
                async with self._pool.connection() as conn:
                    ordinals = index.memories.slots.to_ordinals(missing).tolist()
                    found = await vectors.read(conn, index.ns, ordinals, generation=index.generation)
            except VectorsReplaced:  # the next check drops the index
                return
            except StoreError as exc:
                log.warning("loading vectors failed, queries read what they need: %s", exc)
                return
            index.vectors.put(*slotted(index.memories.slots, found), version=version)
        self._account_bytes(name, entry, index.nbytes)
        self._start_saving(name, entry)
        await asyncio.to_thread(trim_heap)

    async def _next_check(self, name: str, entry: _Entry) -> CheckedNamespace | None:
        """The result of a check that has not yet started; several queries may share it."""
        if entry.next_check is None:
            entry.next_check = asyncio.create_task(self._check(name, entry, entry.current_check))
        return await asyncio.shield(entry.next_check)

    async def _check(
        self, name: str, entry: _Entry, before: asyncio.Task[CheckedNamespace | None] | None
    ) -> CheckedNamespace | None:
        """Bring an index up to date; None if that is impossible and it was dropped."""
        if before is not None and not before.done():
            await asyncio.wait([before])
        entry.current_check, entry.next_check = entry.next_check, None
        index = entry.index
        before_check = index.changed, index.terms.nbytes
        try:
            checked = await entry.followed.check(self._pool, name)
        except NotFound:
            self._drop(name, entry)
            self._save_from.pop(name, None)
            raise
        if checked is None:
            self._drop(name, entry)
            return None
        if (index.changed, index.terms.nbytes) != before_check:
            self._account_bytes(name, entry, index.nbytes)
        if name in self._entries:
            self._entries.move_to_end(name)
        self._make_room()
        if self._entries.get(name) is entry:  # otherwise another was loaded meanwhile
            self._start_vector_load(name, entry)
            self._start_reload(name, entry)
            self._start_saving(name, entry)
        return checked

    def _start_reload(self, name: str, entry: _Entry) -> None:
        """Start loading a new index in the background if this one needs it."""
        is_due = time.monotonic() - entry.reloaded_at >= RELOAD_PAUSE_S
        if entry.index.needs_reload and is_due and self._reloads.get(name) is None:
            entry.reloaded_at = time.monotonic()
            self._reloads.start(name, self._reload(name, entry.index))

    async def _reload(self, name: str, old: NamespaceIndex) -> None:
        """Load a new index while the old one keeps answering; if that fails, the old one stays.

        It is loaded from the tables and then saved, unless another process has already done so or is doing so: its
        file is loaded once it is there.
        """
        files = self._files
        try:
            if files is not None and files.has_other(old.ns, old.file, old.replaces):
                await self._load(name, former=old, files=files)
                return
            with files.lock(old.ns) if files is not None else nullcontext(True) as is_mine:
                if is_mine:
                    self._save_from.pop(name, None)
                    await self._load(name, former=old, files=None)
        except (StoreError, NotFound, OSError) as exc:
            log.warning("reloading the index of a namespace failed: %s", exc)

    def _start_saving(self, name: str, entry: _Entry) -> None:
        """Start writing the index to a file in the background if that is worth it."""
        if (
            self._files is not None
            and self._saves.get(name) is None
            and (entry.index.memories.count >= WARMED_FROM or entry.index.replaces)  # else the former file would stay
            and entry.index.needs_saving
            and time.monotonic() >= self._save_from.get(name, -math.inf)
        ):
            self._save_from[name] = time.monotonic() + SAVE_PAUSE_S
            self._saves.start(name, self._save(name, entry.index, self._files))

    async def _save(self, name: str, index: NamespaceIndex, files: IndexFiles) -> None:
        """Write an index to a file and switch to that file, whose memory all processes share."""
        try:
            is_saved = await files.save(self._pool, index)
            if is_saved:
                await self._load(name, former=index, files=files)
            elif is_saved is None:
                self._save_from[name] = time.monotonic() + BUSY_PAUSE_S
        except (StoreError, NotFound, OSError) as exc:
            log.warning("the index of a namespace cannot be kept in %s: %s", files.folder, exc)

    def _drop(self, name: str, entry: _Entry) -> None:
        if self._entries.get(name) is entry:
            del self._entries[name]
            self.nbytes -= entry.nbytes
        if entry.vector_load is not None:
            entry.vector_load.cancel()

    def _account_bytes(self, name: str, entry: _Entry, nbytes: int) -> None:
        """Update the size of an index."""
        before, entry.nbytes = entry.nbytes, nbytes
        if self._entries.get(name) is entry:
            self.nbytes += entry.nbytes - before

    def _make_room(self) -> None:
        """Evict the least recently used indexes until the rest fits the budget."""
        while len(self._entries) > 1 and self.nbytes > self._most_bytes:
            self._drop(*next(iter(self._entries.items())))


async def _large(conn: Connection, name: str, files: IndexFiles | None) -> FollowedIndex:
    """Load a namespace that is not small; raises NotFound if it does not exist."""
    namespace = await namespaces.find(conn, name)
    index = await files.load(conn, namespace.ns, namespace.generation) if files else None
    return FollowedIndex(index or await namespace_index.read(conn, namespace), namespace.settings)


async def _take_over_vectors(conn: Connection, name: str, former: NamespaceIndex, index: NamespaceIndex) -> None:
    """Copy the vectors of a former index to a new one, except those of memories changed since."""
    changed = await changed_since(conn, name, former)
    if changed is None or index.ns != former.ns or index.generation != former.generation:
        return
    slots, former_slots = index.memories.slots, former.memories.slots
    ordinals = slots.to_ordinals(np.flatnonzero(index.memories.alive.values))
    ordinals = np.setdiff1d(ordinals, changed, assume_unique=True)
    ordinals = ordinals[former_slots.from_ordinals(ordinals) != NO_SLOT]
    for first in range(0, ordinals.size, namespace_index.MEMORIES_AT_ONCE):
        some = ordinals[first : first + namespace_index.MEMORIES_AT_ONCE]
        index.vectors.take_over(slots.from_ordinals(some), former.vectors, former_slots.from_ordinals(some))
        await asyncio.sleep(0)  # let other queries run
