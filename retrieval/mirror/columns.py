"""What is known of every memory of a namespace without its text and vector, by ordinal."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from struct import Struct
from typing import Any, LiteralString

import msgspec
import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

import native
from classifier.traits import pack_traits
from graph.arrays import array_text
from retrieval.mirror.growing import Growing
from retrieval.mirror.spoken import Spoken
from retrieval.mirror.strings import NONE, Distinct, Interned, cut
from retrieval.speakers import named_speakers
from retrieval.text.wording import without_speaker
from retrieval.types import Filters

SHORT_CHARS = 160
"""A turn up to this long that ends with a question mark only asks."""

NEVER = np.iinfo(np.int64).max
"""The time that does not come, as PostgreSQL sends infinity."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MASKS_KEPT = 16
_LAYOUT = Struct("7q")
_INT32, _INT64 = np.dtype(">i4"), np.dtype(">i8")

# The columns of one row are the same memories in the same order; strings stand one after another.
COLUMNS: LiteralString = """
    string_agg(int4send(doc), ''), string_agg(int4send(length), ''),
        string_agg(timestamptz_send(created_at), ''),
        string_agg(timestamptz_send(coalesce(expires_at, 'infinity')), ''),
        string_agg(timestamptz_send(coalesce(superseded_at, 'infinity')), ''),
        string_agg(int4send(coalesce(traits, -1)), ''), string_agg(boolsend(asks), ''),
        string_agg(convert_to(id, 'UTF8'), ''), string_agg(int4send(octet_length(id)), ''),
        string_agg(convert_to(kind, 'UTF8'), ''), string_agg(int4send(octet_length(kind)), ''),
        string_agg(convert_to(speaker, 'UTF8'), ''), string_agg(int4send(coalesce(octet_length(speaker), -1)), ''),
        string_agg(convert_to(session_id, 'UTF8'), ''),
        string_agg(int4send(coalesce(octet_length(session_id), -1)), ''),
        string_agg(convert_to(document_id, 'UTF8'), ''),
        string_agg(int4send(coalesce(octet_length(document_id), -1)), ''),
        string_agg(convert_to(title, 'UTF8'), ''), string_agg(int4send(coalesce(octet_length(title), -1)), ''),
        string_agg(convert_to(tagged, 'UTF8'), ''), string_agg(int4send(coalesce(octet_length(tagged), -1)), '')
"""
"""What `Columns.put` takes in, of `MEMORIES`."""

MEMORIES: LiteralString = """
        select *, case when cardinality(tags) > 0 then to_json(tags)::text end as tagged,
            length(text) <= %(short)s and right(rtrim(text, E' \\n\\r\\t'), 1) in ('?', '\uff1f') as asks
        from memory
        where ns = %(ns)s
"""
"""The memories of a namespace; `short` is `SHORT_CHARS`."""

LINKS: LiteralString = """
    string_agg(int4send(doc), ''), string_agg(int4send(coalesce(previous, -1)), ''),
    string_agg(int4send(coalesce(next, -1)), '')
"""
"""What `Columns.link` takes in, of the table `turn`."""

_WITHIN: LiteralString = "doc >= %(first)s and doc < %(end)s"
_THESE: LiteralString = "doc = any(%(docs)s::integer[])"

_UNREAD: LiteralString = "select doc, text, speaker from memory where traits is null and ns = %(ns)s and "


class Columns:
    """The memories of a namespace, those that were deleted since included but not alive.

    Attributes:
        alive: whether it is there.
        length: its number of terms.
        created, expires, superseded: microseconds since 2000 in UTC, `NEVER` for never.
        traits: as `pack_traits` makes them.
        asks: whether it is short and a question.
        previous, next: ordinals of the turns beside it in its session, -1 for none.
        ids, kinds, speakers, sessions, documents, titles, tags: strings; tags as JSON, equal lists having one code.
        count, total_length: of the memories that are alive.
    """

    def __init__(self) -> None:
        self.alive = Growing(np.bool_, False)
        self.length = Growing(np.int32, 0)
        self.created = Growing(np.int64, 0)
        self.expires = Growing(np.int64, NEVER)
        self.superseded = Growing(np.int64, NEVER)
        self.traits = Growing(np.int32, 0)
        self.asks = Growing(np.bool_, False)
        self.previous = Growing(np.int32, NONE)
        self.next = Growing(np.int32, NONE)
        self.ids = Distinct()
        self.kinds, self.speakers, self.sessions = Interned(), Interned(), Interned()
        self.documents, self.titles, self.tags = Interned(), Interned(), Interned()
        self._spoken = Spoken(self.speakers.values)
        self.count = 0
        self.total_length = 0
        self._interned = (self.kinds, self.speakers, self.sessions, self.documents, self.titles, self.tags)
        self._arrays = (self.alive, self.length, self.created, self.expires, self.superseded, self.traits, self.asks,
                        self.previous, self.next, *(column.codes for column in self._interned))  # fmt: skip
        self._masks: OrderedDict[tuple[Any, ...], NDArray[np.bool_]] = OrderedDict()
        self._next_expiry = NEVER
        self._laid_out: tuple[NDArray[Any], ...] = ()
        self._addressed: list[int] = []
        self._layout = b""

    @property
    def nbytes(self) -> int:
        """Memory that they take, about."""
        strings = sum(column.nbytes - column.codes.nbytes for column in self._interned) + self.ids.nbytes
        return sum(column.nbytes for column in self._arrays) + strings

    def put(self, row: Sequence[Any]) -> NDArray[np.int64]:
        """Take in memories as the statement gives them; their ordinals."""
        docs = _integers(row[0], _INT32).astype(np.int64)
        if not docs.size:
            return docs
        known = docs[docs < len(self.alive.values)]
        if known.size:
            self.total_length -= int(self.length[known][self.alive[known]].sum())
            self.count -= int(self.alive[known].sum())
        lengths = _integers(row[1], _INT32)
        self._reach(int(docs.max()) + 1)
        self.alive.values[docs] = True
        self.length.values[docs] = lengths
        self.created.values[docs] = _integers(row[2], _INT64)
        self.expires.values[docs] = _integers(row[3], _INT64)
        self.superseded.values[docs] = _integers(row[4], _INT64)
        self.traits.values[docs] = _integers(row[5], _INT32)
        self.asks.values[docs] = np.frombuffer(row[6], np.bool_)
        self.ids.put(docs, row[7], _integers(row[8], _INT32))
        for column, at in zip(self._interned, range(9, 21, 2), strict=True):
            if row[at] is None:
                column.codes.values[docs] = NONE
            else:
                column.put(docs, cut(row[at], _integers(row[at + 1], _INT32).tolist()))
        self._spoken.read()
        self.count += len(docs)
        self.total_length += int(lengths.sum())
        self._masks.clear()
        return docs

    def speakers_named(self, text: str) -> list[int]:
        """The codes of the speakers whom a text names."""
        likely = self._spoken.of(text)
        return self.speakers.codes_of(named_speakers(text, likely)) if likely else []

    def link(self, docs: bytes | None, previous: bytes | None, next_: bytes | None) -> None:
        """Take in the neighbours of turns, those included that are not known yet."""
        turns, beside = (
            _integers(docs, _INT32).astype(np.int64),
            (_integers(previous, _INT32), _integers(next_, _INT32)),
        )
        self._reach(1 + max(int(links.max(initial=NONE)) for links in beside))
        for column, links in zip((self.previous, self.next), beside, strict=True):
            column.put(turns, links)

    def read_traits(self, unread: Iterable[tuple[int, str, str | None]]) -> None:
        """Find out the traits of memories that were written when none were stored, given their texts and speakers."""
        for doc, text, speaker in unread:
            self.traits.values[doc] = pack_traits(without_speaker(text, speaker))

    def _reach(self, ordinals: int) -> None:
        """Have room for so many memories, in every array alike, and in masks that are made from now on."""
        if ordinals >= len(self.alive.values):
            self._masks.clear()
        for column in self._arrays:
            column.reach(ordinals)

    def remove(self, docs: Collection[int]) -> None:
        """Note that some memories are gone."""
        gone = [doc for doc in docs if doc < len(self.alive.values) and self.alive[doc]]
        self.total_length -= int(self.length[gone].sum())
        self.count -= len(gone)
        self.alive.values[gone] = False
        self._masks.clear()

    def masks(
        self, filters: Filters, *, as_of: datetime | None, include_superseded: bool, now: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which memories a query may see at all, and which of them meet its filters; by ordinal, not to be changed.

        The conditions of `store.visibility`, but for the filter by `metadata`, which only the database knows.

        Args:
            filters: the caller's.
            as_of: the moment as of which the namespace is read; None for now.
            include_superseded: whether superseded memories count.
            now: microseconds since 2000.
        """
        if not self._masks or now >= self._next_expiry:
            self._masks.clear()
            self._next_expiry = int(self.expires.values[self.expires.values > now].min(initial=NEVER))
        moment = None if as_of is None else microseconds(as_of)
        seen = (moment, include_superseded)
        visible = self._kept(seen, lambda: self._visible(moment, include_superseded, now))
        if filters.is_empty:
            return visible, visible
        asked = (*seen, msgspec.json.encode(filters))
        return visible, self._kept(asked, lambda: self._matching(visible, filters))

    def _visible(self, moment: int | None, include_superseded: bool, now: int) -> NDArray[np.bool_]:
        mask = self.alive.values & (self.expires.values > (now if moment is None else moment))
        if moment is not None:
            mask &= self.created.values <= moment
        if not include_superseded:
            mask &= self.superseded.values > (NEVER - 1 if moment is None else moment)
        return mask

    def _matching(self, visible: NDArray[np.bool_], filters: Filters) -> NDArray[np.bool_]:
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
        return mask

    def layout(self) -> bytes:
        """Where its arrays are, as `struct memories` of native/bm25.h; good until it is asked for anew."""
        speakers, sessions = self.speakers.codes.values, self.sessions.codes.values
        now = (self.previous.values, self.next.values, self.length.values, sessions, speakers, self.asks.values)
        if [*map(id, now)] != self._addressed:
            self._laid_out, self._addressed = now, [*map(id, now)]
            self._layout = _LAYOUT.pack(min(map(len, now)), *map(native.at, now))
        return self._layout

    def _tagged(self, filters: Filters) -> NDArray[np.bool_]:
        every, some = set(filters.tags_all), set(filters.tags_any)
        fits = [
            code
            for code, tags in enumerate(map(set, map(msgspec.json.decode, self.tags.values)))
            if every <= tags and (not some or some & tags)
        ]
        return np.isin(self.tags.codes.values, fits)

    def _kept(self, key: tuple[Any, ...], compute: Callable[[], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """The mask of a key, computed once until something changes."""
        if key in self._masks:
            self._masks.move_to_end(key)
            return self._masks[key]
        mask = compute()
        mask.flags.writeable = False
        self._masks[key] = mask
        if len(self._masks) > _MASKS_KEPT:
            self._masks.popitem(last=False)
        return mask


def microseconds(moment: datetime) -> int:
    """A time as PostgreSQL counts: microseconds since 2000 in UTC."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


async def read_range(conn: AsyncConnection[Any], ns: int, columns: Columns, *, first: int, end: int) -> None:
    """Read the memories with ordinals from `first` up to `end`."""
    await _read(conn, columns, _WITHIN, {"ns": ns, "first": first, "end": end})


async def read_some(conn: AsyncConnection[Any], ns: int, columns: Columns, docs: Collection[int]) -> NDArray[np.int64]:
    """Read some memories anew; the ordinals of those that are there."""
    return await _read(conn, columns, _THESE, {"ns": ns, "docs": array_text(docs)})


async def _read(
    conn: AsyncConnection[Any], columns: Columns, which: LiteralString, params: dict[str, Any]
) -> NDArray[np.int64]:
    read: LiteralString = "select " + COLUMNS + " from (" + MEMORIES + " and " + which + " order by doc) as m"
    linked: LiteralString = "select " + LINKS + " from turn where ns = %(ns)s and " + which
    row = await (await conn.execute(read, params | {"short": SHORT_CHARS}, binary=True)).fetchone()
    links = await (await conn.execute(linked, params, binary=True)).fetchone()
    unread = await (await conn.execute(_UNREAD + which, params, binary=True)).fetchall()
    if row is None or links is None:
        raise RuntimeError("an aggregate without groups gave no row")
    docs = columns.put(row)
    columns.link(*links)
    columns.read_traits(unread)
    return docs


def _integers(sent: bytes | None, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers as PostgreSQL sends them, in this machine's order."""
    return np.frombuffer(sent or b"", dtype).astype(dtype.newbyteorder("="))
