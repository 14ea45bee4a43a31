"""The data of a namespace's memories except texts and vectors, as columns by slot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import compress, islice
from typing import Any, LiteralString

import msgspec
import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

import native
from graph.persistent import Persistent
from postgres.arrays import array_text, integers
from postgres.connection import Connection, fetch
from retrieval.index.slots import NO_SLOT, GrowableArray, Slots
from retrieval.index.strings import NONE, CategoryColumn, NameMatcher, StringColumn, cut
from retrieval.text.speakers import named_speakers
from retrieval.types.search import Exclude, Filters, SearchOptions

SHORT_CHARS = 160
"""Longest turn that counts as a mere question if it ends with a question mark."""

NEVER = np.iinfo(np.int64).max
"""A time that never comes, as PostgreSQL sends infinity."""

_VISIBLE_NOW = (None, False), (None, True)
"""Keys of the masks of all memories visible now, without and with superseded ones."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MASKS_KEPT = 16
_QUERIES_KEPT = 1_024  # as many as query embeddings by default
_FEW_BEARERS = 24
"""Looking for the memories of so many speakers, one by one, takes as long as counting those of all speakers."""

_STRING: LiteralString = (
    ", string_agg(convert_to(<it>, 'UTF8'), ''), string_agg(int4send(coalesce(octet_length(<it>), -1)), '')"
)
_STRINGS: tuple[LiteralString, ...] = ("id", "kind", "speaker", "session_id", "document_id", "title", "tagged")

# One row holds all memories, each column in the same order; strings are concatenated.
COLUMNS: LiteralString = """
    string_agg(int4send(doc), ''), string_agg(int4send(length), ''),
        string_agg(timestamptz_send(created_at), ''),
        string_agg(timestamptz_send(coalesce(expires_at, 'infinity')), ''),
        string_agg(timestamptz_send(coalesce(superseded_at, 'infinity')), ''),
        string_agg(int4send(traits), ''), string_agg(boolsend(asks), '')
""" + "".join(_STRING.replace("<it>", name) for name in _STRINGS)
"""Input of `Columns.put`, selected from `MEMORIES`."""

MEMORIES: LiteralString = """
        select *, case when cardinality(tags) > 0 then to_json(tags)::text end as tagged,
            length(text) <= %(short)s and right(rtrim(text, E' \\n\\r\\t'), 2)
                ~ '[?\uff1f\u061f\u037e]$|[\u0370-\u03ff\u1f00-\u1fff];$' as asks  -- full-width, Arabic, Greek
        from memory
        where ns = %(ns)s
"""
"""The memories of a namespace; `short` is `SHORT_CHARS`."""

LINKS: LiteralString = """
    string_agg(int4send(doc), ''), string_agg(int4send(coalesce(previous, -1)), ''),
    string_agg(int4send(coalesce(next, -1)), '')
"""
"""Input of `Columns.link`, selected from the table `turn`."""

_READ: LiteralString = (
    "select " + COLUMNS + " from (" + MEMORIES + " and doc = any(%(docs)s::integer[]) order by doc) as m"
)
_READ_LINKS: LiteralString = "select " + LINKS + " from turn where ns = %(ns)s and doc = any(%(docs)s::integer[])"


_ARRAYS = ("alive", "length", "created", "expires", "superseded", "traits", "asks", "previous", "next")
CATEGORIES = ("kinds", "speakers", "sessions", "documents", "titles", "tags")


class Columns(Persistent):
    """The memories of a namespace; deleted ones keep their slots but are not alive.

    Attributes:
        slots: maps ordinals to the slots of all arrays.
        alive: whether a memory exists.
        length: its number of terms.
        created, expires, superseded: microseconds since 2000 in UTC, `NEVER` for never.
        traits: as `pack_traits` encodes them.
        asks: whether it is a short question.
        previous, next: slots of the adjacent turns of its session, -1 for none.
        ids, kinds, speakers, sessions, documents, titles, tags: strings; tags are JSON, equal lists share a code.
        names: finds speakers' names in queries.
        count, total_length: of the memories that are alive.
    """

    PARTS = ("slots", *_ARRAYS, *CATEGORIES, "ids", "names")

    def __init__(self, slots: Slots | None = None) -> None:
        self.slots = slots or Slots()
        self.alive = GrowableArray(np.bool_, False)
        self.length = GrowableArray(np.int32, 0)
        self.created = GrowableArray(np.int64, 0)
        self.expires = GrowableArray(np.int64, NEVER)
        self.superseded = GrowableArray(np.int64, NEVER)
        self.traits = GrowableArray(np.int32, 0)
        self.asks = GrowableArray(np.bool_, False)
        self.previous = GrowableArray(np.int32, NONE)
        self.next = GrowableArray(np.int32, NONE)
        self.ids = StringColumn()
        self.kinds, self.speakers, self.sessions = CategoryColumn(), CategoryColumn(), CategoryColumn()
        self.documents, self.titles, self.tags = CategoryColumn(), CategoryColumn(), CategoryColumn()
        self.names = NameMatcher(self.speakers.values)
        self._named: LRUCache[str, list[int]] = LRUCache(_QUERIES_KEPT)
        """By query text, as several stages of a search need them."""
        self.count = 0
        self.total_length = 0
        self._categories: tuple[CategoryColumn, ...] = tuple(getattr(self, name) for name in CATEGORIES)
        self._arrays: tuple[GrowableArray, ...] = (
            *(getattr(self, name) for name in _ARRAYS), *(column.codes for column in self._categories)
        )  # fmt: skip
        self._masks: LRUCache[tuple[Any, ...], NDArray[np.bool_]] = LRUCache(_MASKS_KEPT)
        self._next_expiry = NEVER
        self._masked_at = 0

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Use the `arrays` of another instance from now on."""
        super().restore(arrays)
        self.count = int(np.count_nonzero(self.alive.values))
        self.total_length = int(self.length.values[self.alive.values].sum())

    def take(self, row: Sequence[Any], links: Sequence[Any]) -> None:
        """Add or replace memories, given the input of `put` and `link`."""
        self.put(row)
        self.link(*links)

    def put(self, row: Sequence[Any]) -> NDArray[np.int64]:
        """Add or replace memories, given a row of `COLUMNS`; returns their slots."""
        docs = self.slots.from_ordinals(integers(row[0]))
        if not docs.size:
            return docs
        if docs.min() == NO_SLOT:
            raise IndexError("a memory has an ordinal without a slot")
        lengths = integers(row[1])
        self.ensure(int(docs.max()) + 1)
        former = docs[self.alive[docs]]
        self.count += docs.size - former.size
        self.total_length += int(lengths.sum() - self.length[former].sum())
        ids = cut(row[7], integers(row[8]).tolist())
        is_new = ~self.alive.values[docs]  # the ids of the others have not changed
        self.ids.put(docs[is_new], [each for each in compress(ids, is_new) if each is not None])
        self.alive.values[docs] = True
        self.length.values[docs] = lengths
        self.created.values[docs] = integers(row[2], ">i8")
        self.expires.values[docs] = integers(row[3], ">i8")
        self.superseded.values[docs] = integers(row[4], ">i8")
        self.traits.values[docs] = integers(row[5])
        self.asks.values[docs] = np.frombuffer(row[6], np.bool_)
        for column, position in zip(self._categories, range(9, 21, 2), strict=True):
            if row[position] is None:
                column.codes.values[docs] = NONE
            else:
                column.put(docs, cut(row[position], integers(row[position + 1]).tolist()))
        self.names.read()
        self._refresh_masks(docs)
        return docs

    def speakers_named(self, text: str) -> list[int]:
        """Codes of the speakers that a text names.

        Speakers without memories do not count, though the table keeps their names: a deleted "Mary Ann" would hide Ann.
        """
        named = self._named.get(text)
        if named is None:
            codes, alive = self.speakers.codes.values, self.alive.values
            speaks = cache(lambda code: bool((alive & (codes == code)).any()))
            found = [code for code in self.names.names_in(text).values() if speaks(code)]
            memories_of = cache(lambda: np.bincount(codes[alive] + 1, minlength=len(self.speakers.values) + 1)[1:])
            for bearers in self.names.bearers_in(text):
                if len(bearers) > _FEW_BEARERS:  # if all are deleted, each would be looked for
                    bearers = bearers[memories_of()[bearers] > 0]
                found += islice(filter(speaks, map(int, bearers)), 2)  # a short name of two names neither
            likely = {self.speakers.values[code]: code for code in found}
            named = self._named[text] = [likely[name] for name in named_speakers(text, likely)]
        return named

    def link(self, docs: bytes | None, previous: bytes | None, next_: bytes | None) -> None:
        """Set the neighbours of turns, including neighbours that are not yet loaded."""
        turns, *neighbours = (self.slots.from_ordinals(integers(each)) for each in (docs, previous, next_))
        self.ensure(1 + max(int(links.max(initial=NONE)) for links in neighbours))
        for column, links in zip((self.previous, self.next), neighbours, strict=True):
            column.put(turns, links)

    def ensure(self, slots: int) -> None:
        """Make room for that many slots in every array and in all future masks."""
        if slots >= len(self.alive.values):
            self._masks.clear()
        for column in self._arrays:
            column.ensure(slots)

    def remove(self, docs: Collection[int]) -> None:
        """Mark the memories at some slots as deleted."""
        gone = [doc for doc in docs if doc < len(self.alive.values) and self.alive[doc]]
        self.total_length -= int(self.length[gone].sum())
        self.count -= len(gone)
        self.alive.values[gone] = False
        self._refresh_masks(np.array(gone, np.int64))

    def masks(self, request: SearchOptions, *, now: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The masks of visible and of eligible memories for a query, by slot; read-only.

        Implements the conditions of `store.visibility`, except for the filter by `metadata`, which needs the database,
        and excluded ids, which are left out where texts are read. `now` is in microseconds since 2000.
        """
        if not self._masks or not self._masked_at <= now < self._next_expiry:  # the clock may have been set back
            self._masks.clear()
            self._masked_at, self._next_expiry = now, self._first_expiry(slice(None), now)
        filters, exclude = request.filters, request.exclude
        moment = None if request.as_of is None else microseconds(request.as_of)
        seen = (moment, request.include_superseded)
        visible = self._cached_mask(seen, lambda: self._visible(moment, request.include_superseded, now))
        if filters.is_empty and not exclude.session_id and exclude.created_after is None:
            return visible, visible
        key = (*seen, msgspec.json.encode((filters, exclude.session_id, exclude.created_after)))
        return visible, self._cached_mask(key, lambda: self._matching(visible, filters, exclude))

    def _visible(
        self, moment: int | None, include_superseded: bool, now: int, docs: NDArray[np.int64] | slice = slice(None)
    ) -> NDArray[np.bool_]:
        """A new mask of which memories, of all or some, may be seen."""
        mask: NDArray[np.bool_] = self.alive.values[docs] & (
            self.expires.values[docs] > (now if moment is None else moment)
        )
        if moment is not None:
            mask &= self.created.values[docs] <= moment
        if not include_superseded:
            mask &= self.superseded.values[docs] > (NEVER - 1 if moment is None else moment)
        return mask

    def _first_expiry(self, docs: NDArray[np.int64] | slice, now: int) -> int:
        """The earliest expiry after `now` among some memories."""
        expires = self.expires.values[docs]
        return int(expires[expires > now].min(initial=NEVER))

    def _refresh_masks(self, docs: NDArray[np.int64]) -> None:
        """Update the masks of all memories visible now for changed memories; drop all other cached masks."""
        self._named.clear()
        kept = [(key, mask) for key in _VISIBLE_NOW if (mask := self._masks.get(key)) is not None]
        self._masks.clear()
        for (moment, include_superseded), mask in kept:
            mask = mask.copy()  # running searches hold the old one
            mask[docs] = self._visible(moment, include_superseded, self._masked_at, docs)
            mask.flags.writeable = False
            self._masks[moment, include_superseded] = mask
        self._next_expiry = min(self._next_expiry, self._first_expiry(docs, self._masked_at))

    def _matching(self, visible: NDArray[np.bool_], filters: Filters, exclude: Exclude) -> NDArray[np.bool_]:
        mask = visible.copy()
        for column, wanted in (
            (self.kinds, filters.kind),
            (self.sessions, filters.session_id),
            (self.documents, filters.document_id),
            (self.speakers, filters.speaker),
        ):
            if wanted:
                mask &= np.isin(column.codes.values, column.codes_of(list(wanted)))
        if filters.tags_all or filters.tags_any:
            mask &= self._tagged(filters)
        if filters.created_after is not None:
            mask &= self.created.values > microseconds(filters.created_after)
        if filters.created_before is not None:
            mask &= self.created.values < microseconds(filters.created_before)
        if exclude.session_id:
            mask &= ~np.isin(self.sessions.codes.values, self.sessions.codes_of(exclude.session_id))
        if exclude.created_after is not None:
            mask &= self.created.values <= microseconds(exclude.created_after)
        return mask

    def layout(self) -> bytes:
        """The arrays as `struct memories` of native/bm25.h; valid until one of them grows."""
        speakers, sessions = self.speakers.codes.values, self.sessions.codes.values
        arrays = (self.previous.values, self.next.values, self.length.values, sessions, speakers, self.asks.values)
        return native.structure(min(map(len, arrays)), *arrays)

    def _tagged(self, filters: Filters) -> NDArray[np.bool_]:
        every, some = set(filters.tags_all), set(filters.tags_any)
        fits = [
            code
            for code, tags in enumerate(map(set, map(msgspec.json.decode, self.tags.values)))
            if every <= tags and (not some or some & tags)
        ]
        return np.isin(self.tags.codes.values, fits)

    def _cached_mask(self, key: tuple[Any, ...], compute: Callable[[], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """The mask of a key, cached until something changes."""
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks[key] = compute()
            mask.flags.writeable = False
        return mask


def microseconds(moment: datetime) -> int:
    """A time as PostgreSQL stores it: microseconds since 2000 in UTC."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_microseconds(since: int) -> datetime:
    """The inverse of `microseconds`."""
    return _EPOCH + timedelta(microseconds=since)


async def read(conn: Connection, ns: int, columns: Columns, docs: Collection[int]) -> None:
    """Read the memories with some ordinals."""
    parameters = {"ns": ns, "docs": array_text(docs), "short": SHORT_CHARS}
    [row] = await fetch(conn, _READ, parameters, binary=True)
    [links] = await fetch(conn, _READ_LINKS, parameters, binary=True)
    columns.take(row, links)
