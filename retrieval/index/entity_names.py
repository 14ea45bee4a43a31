"""The names and aliases of a namespace's entities, and which of them a query may mention.

Most entities are common phrases, whose name is their key: a query that contains one has its name, and the graph knows
whether a memory mentions it. So only the others are kept: those with proper names, and those shown otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import Any, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph.adjacency import Adjacency, id_ranges
from graph.extraction import TOKENIZED_TYPES
from graph.merges import Roots
from graph.named_arrays import named, part_of
from graph.names import entity_id, name_tokens
from graph.resolution import EntityCandidate
from graph.spellings import Spellings
from postgres.arrays import array_text, transposed
from retrieval.index.array_file import Extended, FileArray
from retrieval.index.hash_index import HashIndex, hashes_of
from retrieval.index.slots import GrowableArray, Slots
from retrieval.index.strings import NONE, StringColumn
from retrieval.store.entities import BY_HAND

MOST_BEARERS = 64
"""Names with a word of the query that are looked at, by ascending id: a word of more tells nothing."""

MOST_SIMILAR = 16
"""Names with most of the query's words that are candidates."""

MOST_RIVALS = 16
"""Names with a full given name that a nickname in the query may stand for that are looked at."""

NAMES: LiteralString = (
    "array_agg(e.key), array_agg(nullif(e.name, e.key)), array_agg(e.type <> all(%(tokenized)s::text[]))"
)
"""The select list of `entity e`, which `NameRow` decodes; with `PARAMETERS`."""

SHOWN_OTHERWISE: LiteralString = """(
    e.type <> all(%(tokenized)s::text[]) or e.name <> e.key
    or e.entity = any(array(select root from entity_merge where ns = %(ns)s))
)"""
"""The entities to be kept of a whole namespace, but for those of aliases."""

ALIASES: LiteralString = (
    "select array_agg(a.key), array_agg(a.doc), " + NAMES
    + " from entity_alias a join entity e on e.ns = %(ns)s and e.entity = a.entity where a.ns = %(ns)s"
)  # fmt: skip
"""Selects the columns of `AliasRow`."""

_FORGOTTEN = -2
"""In the place of the memory that gives an alias: nobody gives it any more."""

PARAMETERS = {"tokenized": array_text(sorted(TOKENIZED_TYPES))}

_NAMES: LiteralString = (
    "select " + NAMES + " from entity e where ns = %(ns)s and " + SHOWN_OTHERWISE
    + " and entity >= %(least)s::bigint and entity <= %(most)s::bigint"
)  # fmt: skip


class NameRow(NamedTuple):
    """An entity: its key, its name if that is another, and whether it is a proper name."""

    key: str
    name: str | None
    is_name: bool


class AliasRow(NamedTuple):
    """The normalised alias of an entity, the ordinal of the memory that gives it or `BY_HAND`, and the entity."""

    alias: str
    doc: int
    entity: NameRow

    @classmethod
    def of(cls, alias: str, doc: int, *entity: Any) -> AliasRow:
        """Decode a row of `ALIASES`."""
        return cls(alias, doc, NameRow(*entity))


REPLACED = ("are_names", "names.starts", "names.sizes", "aliases.docs")
"""The arrays in which an entity that is described anew, or an alias that is taken away, replaces something."""


class EntityNames:
    """Names by code, in the order in which they came; none is removed, but one that no memory mentions is not found."""

    def __init__(self) -> None:
        self._ids = GrowableArray(np.int64, 0)
        self._are_names = GrowableArray(np.bool_, False)
        self._keys, self._names = StringColumn(), StringColumn()
        self._by_id, self._by_word = HashIndex(), HashIndex()
        self._aliases = _Aliases()
        self._count = 0

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> EntityNames:
        """The names whose `arrays` these are, which they use from now on."""
        names = cls()
        names._ids.values, names._are_names.values = arrays["ids"], arrays["are_names"]
        for name, part in names._parts().items():
            part.restore(part_of(arrays, name))
        [names._count] = arrays["count"].tolist()
        return names

    def arrays(self) -> dict[str, FileArray]:
        """All that there is to them; arrays in use, but copies of those in which something may be replaced."""
        arrays: dict[str, FileArray] = {
            "ids": self._ids.roomy, "are_names": self._are_names.roomy, "count": np.array([self._count]),
        }  # fmt: skip
        for name, part in self._parts().items():
            arrays |= named(part.arrays(), name)
        return arrays | {name: Extended.of(arrays[name]).copied() for name in REPLACED}

    def _parts(self) -> dict[str, StringColumn | HashIndex | _Aliases]:
        return {"keys": self._keys, "names": self._names, "by_id": self._by_id, "by_word": self._by_word,
                "aliases": self._aliases}  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Bytes that they take, approximately."""
        return self._ids.nbytes + self._are_names.nbytes + sum(part.nbytes for part in self._parts().values())

    def put(self, rows: Sequence[NameRow]) -> None:
        """Add entities, or say anew what they are called; a common phrase is left out unless it is here."""
        rows = [*{row.key: row for row in rows}.values()]
        ids = _ids([row.key for row in rows])
        codes = self._codes(ids)
        needed = [code != NONE or row.is_name or row.name is not None for code, row in zip(codes, rows, strict=True)]
        self._put([*compress(rows, needed)], ids[needed], [*compress(codes, needed)])

    def put_aliases(self, rows: Sequence[AliasRow], slots: Slots) -> None:
        """Add aliases with their entities; an alias counts as long as its memory is there."""
        if not rows:
            return
        entities = [*{row.entity.key: row.entity for row in rows}.values()]
        ids = _ids([row.key for row in entities])
        self._put(entities, ids, self._codes(ids))
        given_to = _ids([row.entity.key for row in rows])
        docs = slots.of(np.array([row.doc for row in rows], np.int64))
        self._aliases.put([row.alias for row in rows], given_to, docs)

    def forget_by_hand(self) -> None:
        """Forget the aliases that callers gave by hand, which are then added anew."""
        self._aliases.forget_by_hand()

    def rows_of(self, entities: Collection[int]) -> dict[int, NameRow]:
        """Those of some entities that are here."""
        asked = np.fromiter(entities, np.int64, len(entities))
        codes = np.array([code for _, code in self._by_id.find(asked.view(np.uint64))], np.int64)
        shown = zip(self._keys.get(codes), self._names.get(codes), self._are_names[codes].tolist(), strict=True)
        return {
            entity: NameRow(key, name or None, is_name)
            for entity, (key, name, is_name) in zip(self._ids[codes].tolist(), shown, strict=True)
        }

    def aliases_of(self, docs: Collection[int]) -> set[tuple[str, int, int]]:
        """The aliases that some memories give: alias, entity and slot."""
        return self._aliases.of(docs)

    @property
    def is_consistent(self) -> bool:
        """Whether all that is here is found by its id, by its words or as an alias."""
        every, anew = np.arange(self._count), EntityNames()
        shown = zip(self._keys.get(every), self._names.get(every), self._are_names[every].tolist(), strict=True)
        rows = [NameRow(key, name or None, is_name) for key, name, is_name in shown]
        anew._put(rows, _ids([row.key for row in rows]), [NONE] * len(rows))
        return (
            self._by_id.entries() == anew._by_id.entries()
            and self._by_word.entries() >= anew._by_word.entries()  # what was a name before keeps its words
            and np.array_equal(self._ids[every], anew._ids[every])
            and self._aliases.are_consistent
        )

    def find(
        self, spelled: Spellings, graph: Adjacency, roots: Roots, alive: NDArray[np.bool_]
    ) -> list[EntityCandidate]:
        """The entities that a query may mention: by name, by alias, by a word of the name; and rivals of nicknames.

        A merged entity is found as its root; its name counts as an alias of that. `alive` tells by slot which memories
        there are.
        """
        spans, rivals = dict(zip(_ids(spelled.spans).tolist(), spelled.spans, strict=True)), sorted(spelled.rivals)
        bearers = self._bearers([*spelled.words, *rivals])
        asked = np.array([*dict.fromkeys((*spans, *(roots.get(each, each) for each in chain(*bearers))))], np.int64)
        mentioned = {*asked[graph.mentions(asked, cap=1) > 0].tolist()}  # the graph has roots only
        exact = [entity for entity in spans if entity in mentioned]
        aliases = self._named(spans, roots, alive)
        with_word = {
            word: {root for each in some if (root := roots.get(each, each)) in mentioned}
            for word, some in zip(spelled.words, bearers, strict=False)
        }
        similar = _most_similar(with_word, besides=spans.keys())
        rivalling = [
            (word, each, roots.get(each, each))
            for word, some in zip(rivals, bearers[len(spelled.words) :], strict=True)
            for each in some[:MOST_RIVALS]
            if roots.get(each, each) in mentioned
        ]
        rows = self.rows_of({*exact, *aliases, *similar, *chain.from_iterable(pair[1:] for pair in rivalling)})

        def candidate(entity: int, how: str, matched: Collection[str], bearers: int = 0) -> EntityCandidate:
            key, name, is_name = rows[entity]
            return EntityCandidate(entity, key, name or key, is_name, how, [*matched], bearers)

        for entity in exact:
            rows.setdefault(entity, NameRow(spans[entity], None, False))
        return [
            *(candidate(entity, "exact", [spans[entity]]) for entity in exact),
            *(candidate(entity, "alias", keys) for entity, keys in aliases.items()),
            *(
                candidate(entity, "similar", words, min(len(with_word[word]) for word in words))
                for entity, words in similar.items()
            ),
            *(
                candidate(root, "rival", [word])._replace(key=rows[bearer].key, is_name=rows[bearer].is_name)
                for word, bearer, root in rivalling
                if rows[bearer].key.partition(" ")[0] == word
            ),
        ]

    def _codes(self, ids: NDArray[np.int64]) -> list[int]:
        """The codes of some entities, `NONE` for one that is not here."""
        codes = dict(self._by_id.find(ids.view(np.uint64)))
        return [codes.get(position, NONE) for position in range(len(ids))]

    def _put(self, rows: Sequence[NameRow], ids: NDArray[np.int64], codes: Sequence[int]) -> None:
        """Set distinct entities, given their ids and codes, `NONE` for a new one."""
        if not rows:
            return
        given = np.array(codes, np.int64)
        is_new = given == NONE
        first, self._count = self._count, self._count + int(np.count_nonzero(is_new))
        given[is_new] = np.arange(first, self._count)
        self._are_names.ensure(self._count)
        were_names = self._are_names[given]
        self._ids.put(given[is_new], ids[is_new])
        self._are_names.put(given, [row.is_name for row in rows])
        _put_strings(self._names, given, [row.name or "" for row in rows])
        self._by_id.add(ids[is_new].view(np.uint64), given[is_new].astype(np.int32))
        _put_strings(self._keys, given[is_new], [row.key for row in compress(rows, is_new)])
        words = [
            (word, code)
            for row, code, was_name in zip(rows, given.tolist(), were_names.tolist(), strict=True)
            if row.is_name and not was_name
            for word in name_tokens(row.key)
        ]
        if words:
            strings, numbers = zip(*words, strict=True)
            self._by_word.add(hashes_of(strings), np.array(numbers, np.int32))

    def _bearers(self, words: Sequence[str]) -> list[list[int]]:
        """For each word the first `MOST_BEARERS` proper names that have it, ascending."""
        found = []
        for codes in self._by_word.numbers(hashes_of(words)):
            ids = np.sort(self._ids[codes[self._are_names[codes]]])
            found.append([*dict.fromkeys(ids[: 2 * MOST_BEARERS].tolist())][:MOST_BEARERS])
        return found

    def _named(self, spans: Mapping[int, str], roots: Roots, alive: NDArray[np.bool_]) -> dict[int, list[str]]:
        """The entities, roots only, that aliases in the query stand for, with these."""
        meant = [*self._aliases.find([*spans.values()], alive)]
        meant += [(spans[entity], entity) for entity in roots.keys() & spans.keys()]
        named_so: dict[int, list[str]] = {}
        for alias, entity in sorted({*meant}):
            named_so.setdefault(roots.get(entity, entity), []).append(alias)
        return {entity: [*dict.fromkeys(keys)] for entity, keys in named_so.items()}


class _Aliases:
    """Aliases by number, in the order in which they came."""

    def __init__(self) -> None:
        self._keys = StringColumn()
        self._entities = GrowableArray(np.int64, 0)
        self._docs = GrowableArray(np.int32, _FORGOTTEN)
        self._by_key = HashIndex()
        self._count = 0

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the `arrays` of another instance."""
        self._keys.restore(part_of(arrays, "keys"))
        self._by_key.restore(part_of(arrays, "by_key"))
        self._entities.values, self._docs.values = arrays["entities"], arrays["docs"]
        [self._count] = arrays["count"].tolist()

    def arrays(self) -> dict[str, FileArray]:
        """All that there is to them; some of the arrays are in use."""
        return {
            **named(self._keys.arrays(), "keys"), **named(self._by_key.arrays(), "by_key"),
            "entities": self._entities.roomy, "docs": self._docs.roomy, "count": np.array([self._count]),
        }  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Bytes that they take, approximately."""
        return self._keys.nbytes + self._entities.nbytes + self._docs.nbytes + self._by_key.nbytes

    def put(self, keys: Sequence[str], entities: NDArray[np.int64], docs: NDArray[np.int64]) -> None:
        """Add aliases with their entities and the slots of the memories that give them, or `BY_HAND`."""
        numbers = np.arange(self._count, self._count + len(keys))
        self._count += len(keys)
        _put_strings(self._keys, numbers, keys)
        self._entities.put(numbers, entities)
        self._docs.put(numbers, docs)
        self._by_key.add(hashes_of(keys), numbers.astype(np.int32))

    @property
    def are_consistent(self) -> bool:
        """Whether all are found."""
        numbers = np.arange(self._count)
        hashes = hashes_of(self._keys.get(numbers)).tolist()
        return self._by_key.entries() == {*zip(hashes, numbers.tolist(), strict=True)}

    def forget_by_hand(self) -> None:
        """Forget those given by hand."""
        self._docs.values[self._docs.values == BY_HAND] = _FORGOTTEN

    def find(self, keys: Sequence[str], alive: NDArray[np.bool_]) -> Iterator[tuple[str, int]]:
        """Those of some keys that are aliases, with the entity of each."""
        if not self._count:
            return
        for position, number in self._by_key.find(hashes_of(keys)):
            doc = int(self._docs[number])
            counts = doc == BY_HAND or (doc != _FORGOTTEN and alive[doc])
            if counts and self._keys[number] == keys[position]:
                yield keys[position], int(self._entities[number])

    def of(self, docs: Collection[int]) -> set[tuple[str, int, int]]:
        """Those that some memories give, or `BY_HAND`, as (alias, entity, slot)."""
        numbers = np.isin(self._docs[: self._count], [*docs]).nonzero()[0]
        entities, given = self._entities[numbers].tolist(), self._docs[numbers].tolist()
        return {*zip(self._keys.get(numbers), entities, given, strict=True)}


async def read_by_hand(conn: AsyncConnection[Any], ns: int) -> list[AliasRow]:
    """The aliases that callers gave the entities of a namespace."""
    by_hand: LiteralString = ALIASES + " and a.doc = -1"
    [row] = await (await conn.execute(by_hand, {"ns": ns, **PARAMETERS})).fetchall()
    return [AliasRow.of(*each) for each in transposed(row)]


async def read_names(conn: AsyncConnection[Any], ns: int, slots: Slots, *, parts: int) -> EntityNames:
    """Read those of a whole namespace, by `parts` statements for the entities and one for the aliases."""
    names = EntityNames()
    for least, most in id_ranges(parts):
        params = {"ns": ns, "least": least, "most": most, **PARAMETERS}
        [row] = await (await conn.execute(_NAMES, params)).fetchall()
        names.put([NameRow(*each) for each in transposed(row)])
    [row] = await (await conn.execute(ALIASES, {"ns": ns, **PARAMETERS})).fetchall()
    names.put_aliases([AliasRow.of(*each) for each in transposed(row)], slots)
    return names


def _most_similar(with_word: Mapping[str, Collection[int]], *, besides: Collection[int]) -> dict[int, list[str]]:
    """The entities with most of some words, with these, except for some entities; ties by id."""
    words_of: dict[int, list[str]] = {}
    for word, entities in with_word.items():
        for entity in entities:
            if entity not in besides:
                words_of.setdefault(entity, []).append(word)
    best = sorted(words_of, key=lambda entity: (-len(words_of[entity]), entity))[:MOST_SIMILAR]
    return {entity: words_of[entity] for entity in best}


def _put_strings(column: StringColumn, numbers: NDArray[np.int64], strings: Sequence[str]) -> None:
    encoded = [each.encode() for each in strings]
    column.put(numbers, b"".join(encoded), np.array([*map(len, encoded)], np.int32))


def _ids(keys: Collection[str]) -> NDArray[np.int64]:
    return np.fromiter(map(entity_id, keys), np.int64, len(keys))
