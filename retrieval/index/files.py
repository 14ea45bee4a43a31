"""Indexes kept in files: a new process maps one and reads what has changed since, instead of the whole namespace.

PostgreSQL remains the source of truth. A file that is damaged, of another version, or too old to be brought up to date
is not used; all of them may be deleted at any time. All processes that map a file share its memory; a process that
changes a page gets its own copy.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from graph.persistent import named
from postgres.connection import Connection
from retrieval.ids import uuid7
from retrieval.index import array_file, namespace_index, packed_postings, rows
from retrieval.index.array_file import DamagedFile
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.installation import installed_version
from retrieval.store import index_files
from retrieval.store.changes import ENTITIES, DatabaseSnapshot, one_snapshot
from retrieval.store.pool import Pool

_FORMAT = 16
"""Raised when the arrays of an index, or the meaning of one, change."""

log = logging.getLogger(__name__)


class _About(msgspec.Struct, frozen=True):
    """The metadata in a file."""

    format: str
    ns: int
    generation: int
    snapshot: DatabaseSnapshot
    read_at: float
    written_at: float


class IndexFiles:
    """The files of one database in a folder, at most one per namespace: `<ns>.<token>.index`."""

    def __init__(self, cache: Path, origin: str) -> None:
        """Files in `cache` of the database with the `store.index_files.origin` given; its folder may not exist yet."""
        self._origin = origin
        database, _, _ = origin.rpartition("/")
        of_database, of_tables = (hashlib.sha256(each.encode()).hexdigest()[:16] for each in (database, origin))
        self.folder = cache / f"{of_database}-{of_tables}"
        self._of_database = f"{of_database}-*"
        """Pattern of this folder and those of the database's former tables."""
        self._unusable: set[Path] = set()
        """Unusable files that cannot be removed."""

    @classmethod
    async def open(cls, cache: Path, conn: Connection) -> IndexFiles:
        """The files of a database, in its own folder in `cache`; raises OSError if that cannot be created.

        Removes those of its tables as they were before VACUUM FULL or a restored dump, which are of no use.
        """
        files = cls(cache, await index_files.origin(conn))
        files.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in set(files.folder.parent.glob(files._of_database)) - {files.folder}:
            try:
                await asyncio.to_thread(shutil.rmtree, folder)
            except FileNotFoundError:  # another process that starts removes it
                continue
            except OSError as exc:
                log.warning("the index files in %s are of no use and cannot be removed: %s", folder, exc)
        await files.tidy(conn)
        return files

    async def tidy(self, conn: Connection) -> None:
        """Remove files that can no longer be brought up to date, such as those of deleted namespaces.

        Also removes partial files of killed processes.
        """
        # List files before rows: a file written in between would seem to have no row.
        found = set(self.folder.glob("*.index")) - self._unusable
        known = await index_files.tokens(conn)
        for path in found:
            if _token(path) not in known:
                self._remove(path)
        for part in self.folder.glob("*.part"):
            with self.lock(int(part.name.split(".")[0])) as is_abandoned:
                if is_abandoned:
                    part.unlink(missing_ok=True)

    def has_other(self, ns: int, *tokens: str) -> bool:
        """Whether a namespace's file has none of these tokens."""
        path = self.path(ns)
        return path is not None and _token(path) not in tokens

    def path(self, ns: int) -> Path | None:
        """The file of a namespace; the latest if a process ended before removing the previous one."""
        found = set(self.folder.glob(f"{ns}.*.index")) - self._unusable
        return max(found, key=_token, default=None)

    async def load(self, conn: Connection, ns: int, generation: int) -> NamespaceIndex | None:
        """The index of a namespace from its file, brought up to date; None without a usable file."""
        path = self.path(ns)
        if path is None:
            return None
        index = await self.map(path, ns, generation)
        if index is not None:
            async with one_snapshot(conn):
                if await self.catch_up(conn, index):
                    return index
        self._remove(path)
        return None

    def _remove(self, path: Path) -> None:
        """Remove an unusable file; if that fails, ignore it from now on."""
        try:
            path.unlink(missing_ok=True)
        except OSError as exc:
            log.warning("the index file %s is of no use and cannot be removed: %s", path, exc)
            self._unusable.add(path)

    async def map(self, path: Path, ns: int, generation: int) -> NamespaceIndex | None:
        """The index in a file, as written; None if it is damaged or of another namespace, version or generation."""
        try:
            encoded, arrays = await asyncio.to_thread(array_file.read, path)
            about = msgspec.json.decode(encoded, type=_About)
        except FileNotFoundError:  # replaced meanwhile
            return None
        except (DamagedFile, OSError, msgspec.ValidationError) as exc:  # the last: from another version
            log.warning("the index file %s is not used: %s", path, exc)
            return None
        if (about.format, about.ns, about.generation) != (_format(), ns, generation):
            return None
        index = await asyncio.to_thread(NamespaceIndex.from_arrays, arrays, ns, about.snapshot, generation)
        index.file, index.changed_in_file = _token(path), index.changed
        index.filed_at, index.read_at = about.written_at, about.read_at
        return index

    async def catch_up(self, conn: Connection, index: NamespaceIndex) -> bool:
        """Bring an index that `map` returned up to date with the snapshot of `conn`; false if that is impossible."""
        before = index.snapshot.transactions
        since = await index_files.since(conn, self._origin, index.file, index.ns, index.generation, before)
        if since is None or len(since[1]) > index.max_incremental:
            return False
        snapshot, changed = since
        index.withdraw([doc for doc in changed if doc != ENTITIES])
        if changed:
            read = await rows.read(conn, index.ns, changed, since=before)
            if not await namespace_index.apply_changes(conn, index, changed, read):
                return False
        index.snapshot = snapshot
        return True

    async def save(self, pool: Pool, index: NamespaceIndex) -> bool | None:
        """Write an index to a file, unless another process did so since this one, or the one it replaces, was loaded.

        Returns whether there is now a newer file; False if the namespace is gone, the database is a different one, or
        changes since the index's snapshot have been trimmed; None if another process is writing it. Raises OSError if
        it cannot be written.
        """
        with self.lock(index.ns) as is_mine:
            if not is_mine:
                return None
            if self.has_other(index.ns, index.file, index.replaces):
                return True
            former = self.path(index.ns)
            token, snapshot, known = uuid7(), index.snapshot, index.memories.alive.values.copy()
            about = _About(_format(), index.ns, index.generation, snapshot, index.read_at, time.time())
            path = self.folder / f"{index.ns}.{token}.index"
            part = path.with_suffix(".part")
            try:
                async with pool.connection() as conn, one_snapshot(conn):
                    # After a restored dump or VACUUM FULL, recording the file would fail once all is written.
                    if await index_files.origin(conn) != self._origin:
                        return False
                    packed = await packed_postings.pack(conn, index.ns, index.memories.slots, known, self.folder)
                arrays = index.arrays() | named(packed._asdict(), "postings")
                await asyncio.to_thread(array_file.write, part, msgspec.json.encode(about), arrays)
                async with pool.connection() as conn:
                    if not await index_files.record(conn, self._origin, token, index.ns, snapshot.transactions):
                        return False
                    part.rename(path)
                    if former is not None:
                        former.unlink(missing_ok=True)
                        await index_files.delete(conn, _token(former), index.ns)
            finally:
                part.unlink(missing_ok=True)
        return True

    @contextmanager
    def lock(self, ns: int) -> Iterator[bool]:
        """A block in which no other process writes the file of a namespace; yields False if one already does.

        Yields True even if no lock can be created: then no process can write the file either.
        """
        is_mine = True
        with ExitStack() as stack:
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # may have been removed
                file = stack.enter_context((self.folder / f"{ns}.lock").open("a"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                is_mine = False
            except OSError as exc:
                log.warning("indexes cannot be kept in %s: %s", self.folder, exc)
            yield is_mine


def _format() -> str:
    return f"{_FORMAT} of {installed_version()}"


def _token(path: Path) -> str:
    """The token in a file's name; ordered by time, so that the latest is the greatest."""
    return path.name.split(".")[1]
