"""The names and aliases of a namespace's entities, and which of them a query may mention.

Most entities are common phrases, whose name is their key: the query itself contains it, and the graph knows whether a
memory mentions it. So only the others are kept: those with proper names, and those displayed under another name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, compress

import numpy as np
from numpy.typing import NDArray

from graph.merges import Roots
from graph.names import entity_id, name_tokens
from graph.persistent import Persistent
from graph.resolution import EntityCandidate
from graph.spellings import Spellings
from postgres.connection import Connection, fetch
from retrieval.index.entity_rows import ALIASES, Aliases, Entities, NameRow, read_kept
from retrieval.index.hash_index import HashIndex, hashes_of
from retrieval.index.slots import GrowableArray, Slots
from retrieval.index.strings import NONE, StringColumn
from retrieval.store.entities import BY_HAND
from retrieval.text.characters import fold

MOST_BEARERS = 64
"""Most names examined per word of the query, by ascending id: a word in more names is not informative."""

MOST_SIMILAR = 16
"""Most candidates for sharing words with the query."""

MOST_RIVALS = 16
"""Most names examined that have a full given name for which a nickname in the query may stand."""

_REMOVED = -2
"""Replaces the slot of an alias's memory if the alias is no longer given."""


class EntityNames(Persistent):
    """Names by code, in order of insertion; none is removed, but one that no memory mentions is not found."""

    PARTS = ("_ids", "_are_names", "_keys", "_names", "_by_id", "_by_word", "_aliases")
    COPIED = ("_are_names.values", "_names._starts.values", "_names._sizes.values", "_aliases._docs.values")
    """Parts modified in place when an entity's name changes or an alias is removed."""

    def __init__(self) -> None:
        self._ids = GrowableArray(np.int64, 0)
        self._are_names = GrowableArray(np.bool_, False)
        self._keys, self._names = StringColumn(), StringColumn()
        self._by_id, self._by_word = HashIndex(), HashIndex()
        self._aliases = _AliasTable()

    def put(self, given: Entities, roots: Collection[int] = ()) -> None:
        """Add or update entities, each once; a deleted one loses its name.

        A common phrase is left out unless it is already here or one of the `roots`, into which others are merged.
        """
        if not given.keys:
            return
        codes = self._codes(given.ids)
        needed = (codes != NONE) | given.are_names | [name is not None for name in given.names]
        if roots:
            needed |= np.isin(given.ids, [*roots])
        self._put(given if needed.all() else given.take(needed.nonzero()[0]), codes[needed])

    def put_aliases(self, given: Aliases, slots: Slots) -> None:
        """Add aliases with their entities; an alias is valid as long as its memory exists."""
        if given.keys:
            _, firsts = np.unique(given.entities.ids, return_index=True)
            entities = given.entities.take(firsts)
            self._put(entities, self._codes(entities.ids))
            self._aliases.put(given.keys, given.entities.ids, slots.from_ordinals(given.docs))

    def put_by_hand(self, given: Aliases, slots: Slots) -> None:
        """Replace the aliases that callers gave by hand."""
        here, wanted = self._aliases.by_hand(), [*zip(given.keys, given.entities.ids.tolist(), strict=True)]
        self._aliases.remove([here[gone] for gone in here.keys() - {*wanted}])
        new = [position for position, alias in enumerate(wanted) if alias not in here]
        self.put_aliases(given.take(np.array(new, np.intp)), slots)

    def rows_of(self, entities: Collection[int]) -> dict[int, NameRow]:
        """The rows of the entities that are stored here, by id."""
        asked = np.fromiter(entities, np.int64, len(entities))
        codes = np.array([code for _, code in self._by_id.find(asked.view(np.uint64))], np.int64)
        shown = zip(self._keys.get(codes), self._names.get(codes), self._are_names[codes].tolist(), strict=True)
        return {
            entity: NameRow(key, name or None, is_name)
            for entity, (key, name, is_name) in zip(self._ids[codes].tolist(), shown, strict=True)
        }

    def shown_otherwise(self) -> dict[int, NameRow]:
        """All entities except common phrases whose name is their key."""
        rows = self.rows_of(self._ids[: len(self._keys)].tolist())
        return {entity: row for entity, row in rows.items() if row.is_shown_otherwise}

    def aliases_of(self, docs: Collection[int]) -> set[tuple[str, int, int]]:
        """The aliases given by these memories: alias, entity and slot."""
        return self._aliases.given_by(docs)

    @property
    def is_consistent(self) -> bool:
        """Whether the lookups by id, word and alias match the entities here."""
        every, rebuilt = np.arange(len(self._keys)), EntityNames()
        keys, none = self._keys.get(every), np.full(len(every), NONE)
        rebuilt._put(Entities(_ids(keys), keys, self._names.get(every), self._are_names[every].tolist()), none)
        return (
            self._by_id.entries() == rebuilt._by_id.entries()
            and self._by_word.entries() == rebuilt._by_word.entries()
            and np.array_equal(self._ids[every], rebuilt._ids[every])
            and self._aliases.are_consistent
        )

    def find(
        self,
        spelled: Spellings,
        mentions_of: Callable[[NDArray[np.int64]], NDArray[np.int64]],
        roots: Roots,
        alive: NDArray[np.bool_],
    ) -> list[EntityCandidate]:
        """The entities that a query may mention: by name, by alias, by a word of the name; and rivals of nicknames.

        A merged entity is found as its root; its name counts as an alias of that. `mentions_of` counts the memories
        that mention each entity, where only 0 or more matters; `alive` is the mask by slot of existing memories.
        """
        spans, rivals = dict(zip(_ids(spelled.spans).tolist(), spelled.spans, strict=True)), sorted(spelled.rivals)
        bearers = self._bearers([*spelled.words, *rivals])
        asked = np.array([*dict.fromkeys((*spans, *(roots.get(each, each) for each in chain(*bearers))))], np.int64)
        mentioned = {*asked[mentions_of(asked) > 0].tolist()}  # the graph has roots only
        with_word = {
            word: {root for each in some if (root := roots.get(each, each)) in mentioned}
            for word, some in zip(spelled.words, bearers, strict=False)
        }
        similar = _most_similar(with_word, besides=spans.keys())
        found: list[tuple[int, str, list[str], int]] = [
            *((entity, "exact", [spans[entity]], 0) for entity in spans if entity in mentioned),
            *((entity, "alias", keys, 0) for entity, keys in self._named(spans, roots, alive).items()),
            *((entity, "similar", words, min([len(with_word[word]) for word in words])) for entity, words in similar),
        ]
        rivalling = [
            (word, each, root)
            for word, some in zip(rivals, bearers[len(spelled.words) :], strict=True)
            for each in some[:MOST_RIVALS]
            if (root := roots.get(each, each)) in mentioned
        ]
        rows = self.rows_of({*(entity for entity, *_ in found), *chain(*(pair for _, *pair in rivalling))})
        candidates = []
        for entity, how, matched, count in found:
            key, name, is_name = rows.get(entity) or NameRow(spans[entity], None, is_name=False)  # a common phrase
            candidates.append(EntityCandidate(entity, key, name or key, is_name, how, matched, count))
        for word, bearer, root in rivalling:
            key, _, is_name = rows[bearer]
            if key.partition(" ")[0] == word:
                name = rows[root].name or rows[root].key
                candidates.append(EntityCandidate(root, key, name, is_name, "rival", [word], 0))
        return candidates

    def are_words(self, words: Sequence[str]) -> list[bool]:
        """Whether each is a word of a proper name."""
        return [bool(bearers) for bearers in self._bearers(words)]

    def _codes(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The codes of some entities, `NONE` for those not here."""
        codes = np.full(len(ids), NONE, np.int64)
        for position, code in self._by_id.find(ids.view(np.uint64)):
            codes[position] = code
        return codes

    def _put(self, given: Entities, codes: NDArray[np.int64]) -> None:
        """Set distinct entities, given their codes, `NONE` for a new one."""
        is_new = codes == NONE
        known = codes[~is_new]
        former = dict(zip(known.tolist(), self._names.get(known), strict=True))
        first = len(self._keys)
        new = codes[is_new] = np.arange(first, first + np.count_nonzero(is_new))
        self._ids.put(new, given.ids[is_new])
        self._by_id.add(given.ids[is_new].view(np.uint64), new.astype(np.int32))
        keys = [key or "" for key in given.keys]  # a deleted one is not new
        self._keys.put(new, compress(keys, is_new.tolist()))
        names = [name or "" for name in given.names]
        changed = [position for position, code in enumerate(codes.tolist()) if former.get(code) != names[position]]
        self._names.put(codes[changed], [names[position] for position in changed])  # the others would be appended again
        self._are_names.put(codes, given.are_names)
        words = [name_tokens(key) for key in compress(keys, is_new.tolist())]
        if words:
            self._by_word.add(
                hashes_of([*map(fold, chain(*words))]), np.repeat(new.astype(np.int32), [*map(len, words)])
            )

    def _bearers(self, words: Sequence[str]) -> list[list[int]]:
        """For each word the ids of the first `MOST_BEARERS` proper names with it, ignoring diacritics, ascending."""
        found = []
        for codes in self._by_word.numbers(hashes_of([*map(fold, words)])):
            are_names = self._are_names.values.take(codes)
            bearers = self._ids.values.take(codes if are_names.all() else codes[are_names])
            if len(bearers) > MOST_BEARERS:
                bearers = np.partition(bearers, MOST_BEARERS)[:MOST_BEARERS]
            found.append(sorted({*bearers.tolist()}))  # a name may have the word with and without accents
        return found

    def _named(self, spans: Mapping[int, str], roots: Roots, alive: NDArray[np.bool_]) -> dict[int, list[str]]:
        """The entities, roots only, named by aliases in the query, with these aliases."""
        meant = [*self._aliases.find([*spans.values()], alive)]
        meant += [(spans[entity], entity) for entity in roots.keys() & spans.keys()]
        named_so: dict[int, list[str]] = {}
        for alias, entity in sorted({*meant}):
            named_so.setdefault(roots.get(entity, entity), []).append(alias)
        return {entity: [*dict.fromkeys(keys)] for entity, keys in named_so.items()}


class _AliasTable(Persistent):
    """Aliases by number, in order of insertion."""

    PARTS = ("_keys", "_entities", "_docs", "_by_key")

    def __init__(self) -> None:
        self._keys = StringColumn()
        self._entities = GrowableArray(np.int64, 0)
        self._docs = GrowableArray(np.int32, _REMOVED)
        self._by_key = HashIndex()

    def put(self, keys: Sequence[str], entities: NDArray[np.int64], docs: NDArray[np.int64]) -> None:
        """Add aliases with their entities and the slots of the memories that give them, or `BY_HAND`."""
        numbers = len(self._keys) + np.arange(len(keys))
        self._keys.put(numbers, keys)
        self._entities.put(numbers, entities)
        self._docs.put(numbers, docs)
        self._by_key.add(hashes_of(keys), numbers.astype(np.int32))

    @property
    def are_consistent(self) -> bool:
        """Whether the lookup has all aliases."""
        numbers = np.arange(len(self._keys))
        hashes = hashes_of(self._keys.get(numbers)).tolist()
        return self._by_key.entries() == {*zip(hashes, numbers.tolist(), strict=True)}

    def by_hand(self) -> dict[tuple[str, int], int]:
        """The numbers of the aliases given by hand, by alias and entity."""
        numbers = (self._docs[: len(self._keys)] == BY_HAND).nonzero()[0]
        aliases = zip(self._keys.get(numbers), self._entities[numbers].tolist(), strict=True)
        return dict(zip(aliases, numbers.tolist(), strict=True))

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove the aliases with these numbers."""
        self._docs.values[numbers] = _REMOVED

    def find(self, keys: Sequence[str], alive: NDArray[np.bool_]) -> Iterator[tuple[str, int]]:
        """The keys that are aliases, each with its entity."""
        if not len(self._keys):
            return
        for position, number in self._by_key.find(hashes_of(keys)):
            doc = int(self._docs[number])
            counts = doc == BY_HAND or (doc != _REMOVED and alive[doc])
            if counts and self._keys[number] == keys[position]:
                yield keys[position], int(self._entities[number])

    def given_by(self, docs: Collection[int]) -> set[tuple[str, int, int]]:
        """The aliases given by these memories, or `BY_HAND`, as (alias, entity, slot)."""
        numbers = np.isin(self._docs[: len(self._keys)], [*docs]).nonzero()[0]
        entities, given = self._entities[numbers].tolist(), self._docs[numbers].tolist()
        return {*zip(self._keys.get(numbers), entities, given, strict=True)}


async def read_names(conn: Connection, ns: int, slots: Slots, *, roots: Collection[int], parts: int) -> EntityNames:
    """Read the names of a whole namespace, with `parts` statements for the entities and one for the aliases."""
    names = EntityNames()
    async for some in read_kept(conn, ns, parts=parts):
        await asyncio.to_thread(names.put, some, roots)  # searches continue meanwhile
    [row] = await fetch(conn, ALIASES, {"ns": ns}, binary=True)
    await asyncio.to_thread(names.put_aliases, Aliases.from_columns(*row), slots)
    return names


def _most_similar(with_word: Mapping[str, Collection[int]], *, besides: Collection[int]) -> list[tuple[int, list[str]]]:
    """The entities with the most of these words, with those words, except for `besides`; ties by id."""
    words_of: dict[int, list[str]] = {}
    for word, entities in with_word.items():
        for entity in entities:
            if entity not in besides:
                words_of.setdefault(entity, []).append(word)
    return sorted(words_of.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:MOST_SIMILAR]


def _ids(keys: Collection[str]) -> NDArray[np.int64]:
    return np.fromiter(map(entity_id, keys), np.int64, len(keys))
