"""The mirrors of a server process: made when first asked for, checked by every query, dropped when there are many.

A query sees what was committed before it came. It asks the database which transactions are visible now that were not
in the mirror's snapshot, and the mirror follows them. Queries that come while such a question is on its way share the
next one.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from graph.arrays import array_text
from graph.prepared import Asked, Parameters, Prepared, rows_of_each
from retrieval.errors import NotFound, StoreError
from retrieval.heap import give_back
from retrieval.mirror import at_once
from retrieval.mirror import mirror as mirrors
from retrieval.mirror.mirror import Mirror
from retrieval.mirror.terms import Postings
from retrieval.store import namespaces, postings, vectors
from retrieval.store.changes import KEPT_S
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Connection, Pool
from retrieval.types import NamespaceSettings

log = logging.getLogger(__name__)

FILLED_AT_ONCE = 500
"""Memories whose vectors are read together; smaller namespaces get theirs by the queries that look at them."""

WARMED_FROM = 5_000
"""Memories from which a namespace is read when the server starts: it takes some 20 ms a thousand."""

Terms = Callable[[str], Sequence[int]]
"""The terms that a query looks for, given the namespace's language of analysis."""

# Microseconds since 2000, as PostgreSQL counts.
_CHECK = Prepared("""
    select n.ns, n.settings::text, n.next_doc, n.created_at, pg_current_snapshot()::text,
        (extract(epoch from clock_timestamp() - '2000-01-01Z'::timestamptz) * 1000000)::bigint,
        (
            select array_agg(distinct doc) from memory_change c cross join lateral unnest(c.docs) as changed (doc)
            where c.ns = n.ns and c.xid >= pg_snapshot_xmin(%(snapshot)s::pg_snapshot)
                and not pg_visible_in_snapshot(c.xid, %(snapshot)s::pg_snapshot)
        )
    from namespace n where n.name = %(name)s
""")

_FETCH = Prepared(postings.FETCH_TERMS)


_USUAL = NamespaceSettings()

_settings_decoder = msgspec.json.Decoder(NamespaceSettings)


class Standing(NamedTuple):
    """A namespace at the moment of a query.

    Attributes:
        namespace: its row.
        mirror: what is known of it; it goes on with the namespace.
        postings: of the query's terms.
        now: microseconds since 2000.
    """

    namespace: Namespace
    mirror: Mirror
    postings: Postings
    now: int


class _Checked(NamedTuple):
    """A mirror that is right, with what else was asked for."""

    namespace: Namespace
    mirror: Mirror
    now: int


@dataclass(slots=True)
class _Entry:
    """A mirror and the questions about it.

    Attributes:
        stored: the namespace's settings as the database has them, when last asked.
        settings: the same.
        checked_at: seconds; when the mirror was last known to be right.
        wanted: terms that the next question fetches.
        under_way: the question that was asked; who comes now needs a later one.
        coming: the next one, if anybody waits for it.
        remaking: the task that makes a fresh mirror to take the place of a worn one.
        filling: the task that reads its vectors.
    """

    mirror: Mirror
    stored: str
    settings: NamespaceSettings
    checked_at: float
    nbytes: int
    wanted: set[int] = field(default_factory=set)
    under_way: asyncio.Task[_Checked | None] | None = None
    coming: asyncio.Task[_Checked | None] | None = None
    remaking: asyncio.Task[None] | None = None
    filling: asyncio.Task[None] | None = None


class _Made(NamedTuple):
    """A mirror that was made, and how it was then, where that is known."""

    entry: _Entry
    checked: _Checked | None


class Mirrors:
    """Mirrors by the name of their namespace."""

    def __init__(self, pool: Pool, *, most_bytes: int) -> None:
        """Hold mirrors of at most `most_bytes` altogether, and one in any case."""
        self._pool = pool
        self._most_bytes = most_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._making: dict[str, asyncio.Task[_Made]] = {}
        self._nbytes = 0

    @property
    def nbytes(self) -> int:
        """Memory that all mirrors take, about."""
        return self._nbytes

    def last(self, name: str) -> Mirror | None:
        """The mirror of a namespace as it was when it was last asked for, if it was."""
        entry = self._entries.get(name)
        return None if entry is None else entry.mirror

    async def current(self, name: str, terms: Terms) -> Standing:
        """A namespace as of now, with the postings of some terms.

        Raises:
            NotFound: there is none of that name.
        """
        while True:
            entry, checked = self._entries.get(name), None
            if entry is None:
                entry, checked = await self._made(name, terms)
            language = entry.settings.language
            wanted = terms(language)
            if checked is None or checked.mirror.terms.missing(wanted):
                entry.wanted.update(wanted)
                checked = await self._next_check(name, entry)
            if checked is None or checked.namespace.settings.language != language:
                continue
            namespace, mirror, now = checked
            if not mirror.terms.missing(wanted):
                return Standing(namespace, mirror, mirror.terms.postings(wanted), now)

    async def warm(self, *, least: int = WARMED_FROM) -> None:
        """Make the mirrors of the largest namespaces ahead of their first query, up to half of what may be held.

        Smaller ones than `least` memories are read in the time of a query.
        """
        async with self._pool.connection() as conn:
            names = await namespaces.largest(conn, least=least)
        for name in names:
            if self.nbytes > self._most_bytes / 2:
                break
            if name not in self._entries:
                await self._made(name, lambda _: ())

    async def aclose(self) -> None:
        """Stop what is being made."""
        entries = self._entries.values()
        beside = [
            task
            for entry in entries
            for task in (entry.remaking, entry.filling, entry.under_way, entry.coming)
            if task is not None
        ]
        tasks: list[asyncio.Task[Any]] = [*self._making.values(), *beside]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _made(self, name: str, terms: Terms) -> _Made:
        """The mirror that is being made for all who ask for the namespace meanwhile.

        Whom it is made for has come before it was read, so that he need not check it. That of a small namespace has
        the terms that he looks for, unless its language is another than most have.
        """
        task = self._making.get(name)
        if task is not None:
            return _Made((await asyncio.shield(task)).entry, None)
        task = self._making[name] = asyncio.create_task(self._make(name, terms(_USUAL.language)))
        task.add_done_callback(lambda _: self._making.pop(name, None))
        return await asyncio.shield(task)

    async def _make(self, name: str, terms: Sequence[int] = ()) -> _Made:
        began_at = time.monotonic()
        async with self._pool.connection() as conn:
            made = await _small(conn, name, terms, began_at) or await _large(conn, name, began_at)
        entry = made.entry
        if made.checked is None and entry.mirror.memories.count > FILLED_AT_ONCE:
            await asyncio.to_thread(give_back)
        if name in self._entries:
            self._drop(name, self._entries[name])
        self._entries[name] = entry
        self._nbytes += entry.nbytes
        self._make_room()
        self._have_filled(name, entry)
        return made

    def _have_filled(self, name: str, entry: _Entry) -> None:
        """See to it that the vectors are being read, if many are missing."""
        missing = entry.mirror.memories.count - entry.mirror.vectors.count
        if missing > FILLED_AT_ONCE and (entry.filling is None or entry.filling.done()):
            entry.filling = asyncio.create_task(self._fill(name, entry))

    async def _fill(self, name: str, entry: _Entry) -> None:
        """Read the vectors that are missing, some at a time, so that queries need not."""
        mirror = entry.mirror
        docs = mirror.vectors.among(mirror.memories.alive.values.copy()).missing
        for first in range(0, docs.size, FILLED_AT_ONCE):
            some = docs[first : first + FILLED_AT_ONCE]
            missing = some[~mirror.vectors.knows(some)].tolist()
            version = mirror.vectors.version
            try:
                async with self._pool.connection() as conn:
                    found = await vectors.read(conn, mirror.ns, missing)
            except StoreError as exc:
                log.warning("vectors are left to the queries to read: %s", exc)
                return
            mirror.vectors.put(*found, version=version)
        self._weigh(name, entry, mirror.nbytes)
        await asyncio.to_thread(give_back)

    async def _next_check(self, name: str, entry: _Entry) -> _Checked | None:
        """The answer to a question that is asked from now on; several may share it."""
        if entry.coming is None:
            entry.coming = asyncio.create_task(self._check(name, entry, entry.under_way))
        return await asyncio.shield(entry.coming)

    async def _check(self, name: str, entry: _Entry, before: asyncio.Task[_Checked | None] | None) -> _Checked | None:
        """Bring a mirror up to date; None if it cannot be and is dropped."""
        if before is not None and not before.done():
            await asyncio.wait([before])
        entry.under_way, entry.coming = entry.coming, None
        mirror = entry.mirror
        if time.monotonic() - entry.checked_at > KEPT_S / 2:
            self._drop(name, entry)
            return None
        async with self._pool.connection() as conn:
            asked_at, terms = time.monotonic(), mirror.terms
            wanted, entry.wanted = entry.wanted, set()  # from now on they are the next question's
            missing, epoch, additions = terms.missing(wanted), terms.epoch, terms.additions
            asked: list[Asked] = [(_CHECK, {"name": name, "snapshot": mirror.snapshot})]
            if missing:
                asked.append((_FETCH, _fetching(mirror, missing)))
            checked, *fetched = await rows_of_each(conn, asked)
            row = checked[0] if checked else None
            if row is None or row[0] != mirror.ns:
                self._drop(name, entry)
                if row is None:
                    raise NotFound(f"there is no namespace {name!r}")
                return None
            ns, stored, next_doc, created_at, snapshot, now, changed = row
            if changed and len(changed) > mirror.most_followed:  # to read all is faster
                self._drop(name, entry)
                return None
            if changed:
                try:
                    await mirrors.follow(conn, mirror, changed, snapshot)
                except BaseException:
                    entry.checked_at = -math.inf  # what is half done is not to be used: the next question drops it
                    raise
            else:
                mirror.snapshot = snapshot
            if terms.epoch != epoch:
                missing, additions = terms.missing(wanted), terms.additions
                fetched = [await _FETCH.rows(conn, _fetching(mirror, missing))]
        if missing:  # what was added since they were asked for is told apart by its number
            held = terms.nbytes
            terms.put(postings.decode_terms(fetched[0], missing), missing, additions=additions)
            terms.shrink(spare=wanted)
            self._weigh(name, entry, entry.nbytes + terms.nbytes - held)
        if stored != entry.stored:
            entry.stored, entry.settings = stored, _settings_decoder.decode(stored)
        entry.checked_at = asked_at
        if changed:
            self._weigh(name, entry, mirror.nbytes)
        if changed or missing:
            self._make_room()
            self._have_filled(name, entry)
        if name in self._entries:
            self._entries.move_to_end(name)
        if mirror.is_worn and entry.remaking is None:
            entry.remaking = asyncio.create_task(self._remake(name))
        return _Checked(Namespace(ns, name, entry.settings, next_doc, created_at), mirror, now)

    async def _remake(self, name: str) -> None:
        """Make a fresh mirror while the worn one answers; a failure leaves that in its place."""
        try:
            await self._make(name)
        except (StoreError, NotFound) as exc:
            log.warning("the mirror of a namespace could not be made anew: %s", exc)

    def _drop(self, name: str, entry: _Entry) -> None:
        if self._entries.get(name) is entry:
            del self._entries[name]
            self._nbytes -= entry.nbytes
        if entry.filling is not None:
            entry.filling.cancel()

    def _weigh(self, name: str, entry: _Entry, nbytes: int) -> None:
        """Note what a mirror takes by now."""
        before, entry.nbytes = entry.nbytes, nbytes
        if self._entries.get(name) is entry:
            self._nbytes += entry.nbytes - before

    def _make_room(self) -> None:
        """Drop the mirrors asked for longest ago until the others are within their bounds."""
        while len(self._entries) > 1 and self._nbytes > self._most_bytes:
            self._drop(*next(iter(self._entries.items())))


async def _small(conn: Connection, name: str, terms: Sequence[int], began_at: float) -> _Made | None:
    """The mirror of a small namespace, with the postings of some terms; None if it is none."""
    read = await at_once.read(conn, name, terms)
    if read is None:
        return None
    row, mirror = read
    entry = _Entry(mirror, row.settings, _settings_decoder.decode(row.settings), began_at, mirror.nbytes)
    namespace = Namespace(row.ns, name, entry.settings, row.next_doc, row.created_at)
    return _Made(entry, _Checked(namespace, mirror, row.now))


async def _large(conn: Connection, name: str, began_at: float) -> _Made:
    """The mirror of any other namespace; raises NotFound if there is none of that name."""
    namespace = await namespaces.find(conn, name)
    mirror = await mirrors.read(conn, namespace.ns)
    if mirror is None:
        raise NotFound(f"there is no namespace {name!r}")
    return _Made(_Entry(mirror, "", namespace.settings, began_at, mirror.nbytes), None)


def _fetching(mirror: Mirror, terms: Collection[int]) -> Parameters:
    return {"ns": mirror.ns, "terms": array_text(terms)}
