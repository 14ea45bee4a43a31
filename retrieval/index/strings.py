"""Compact columns of strings, by slot, and finding names in texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, compress

import numpy as np
from numpy.typing import NDArray

from graph.names import parts_of_runs
from graph.persistent import Persistent
from retrieval.index.hash_index import HashIndex, hashes_of
from retrieval.index.slots import GrowableArray
from retrieval.text.speakers import plain_name, short_names

NONE = -1
"""The code of a missing string."""


class StringColumn(Persistent):
    """A column of distinct strings, concatenated as UTF-8; its length is 1 + the slot of the last one."""

    PARTS = ("_text", "_starts", "_sizes")

    def __init__(self) -> None:
        self._text = GrowableArray(np.uint8, 0)
        self._starts = GrowableArray(np.int64, 0)
        self._sizes = GrowableArray(np.int32, 0)

    def __len__(self) -> int:
        return self._starts.needed

    def put(self, docs: NDArray[np.int64], strings: Iterable[str]) -> None:
        """Set the strings of some memories."""
        encoded = [each.encode() for each in strings]
        text, sizes, end = b"".join(encoded), np.array([*map(len, encoded)], np.int64), self._text.needed
        self._starts.put(docs, end + np.cumsum(sizes) - sizes)
        self._sizes.put(docs, sizes)
        self._text.ensure(end + len(text))
        self._text.values[end : end + len(text)] = np.frombuffer(text, np.uint8)

    def __getitem__(self, doc: int) -> str:
        start = int(self._starts.values[doc])
        return str(self._text.values[start : start + int(self._sizes.values[doc])].data, "utf-8")

    def get(self, docs: NDArray[np.int64]) -> list[str]:
        """The strings of some memories."""
        text, starts = self._text.values.data, self._starts.values[docs]
        ends = starts + self._sizes.values[docs]
        return [str(text[start:end], "utf-8") for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


class StringTable(Persistent):
    """Distinct strings by code, in order of insertion; none is ever removed."""

    PARTS = ("_strings", "_index")

    def __init__(self) -> None:
        self._strings = StringColumn()
        self._index = HashIndex()

    def __len__(self) -> int:
        return len(self._strings)

    def __getitem__(self, code: int) -> str:
        return self._strings[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._strings.get(np.arange(len(self))))

    def find(self, strings: Collection[str]) -> dict[str, int]:
        """The codes of the strings that are here."""
        return self._find(list(strings), hashes_of(strings))

    def _find(self, strings: Sequence[str], hashes: NDArray[np.uint64]) -> dict[str, int]:
        found = self._index.find(hashes)
        return {strings[position]: code for position, code in found if self[code] == strings[position]}

    def put(self, strings: Sequence[str | None]) -> list[int]:
        """The codes of some strings, adding new ones."""
        distinct = [each for each in dict.fromkeys(strings) if each is not None]
        hashes = hashes_of(distinct)
        codes = self._find(distinct, hashes)
        is_new = [each not in codes for each in distinct]
        if any(is_new):
            new, numbers = [*compress(distinct, is_new)], len(self) + np.arange(sum(is_new))
            self._strings.put(numbers, new)
            self._index.add(hashes[is_new], numbers.astype(np.int32))
            codes |= zip(new, numbers.tolist(), strict=True)
        return [NONE if each is None else codes[each] for each in strings]


class CategoryColumn(Persistent):
    """A column of strings with few distinct values, stored as codes."""

    PARTS = ("values", "codes")

    def __init__(self) -> None:
        self.values = StringTable()
        self.codes = GrowableArray(np.int32, NONE)

    def put(self, docs: NDArray[np.int64], strings: Sequence[str | None]) -> None:
        """Set the strings of some memories."""
        self.codes.put(docs, self.values.put(strings))

    def get(self, docs: NDArray[np.int64]) -> list[str | None]:
        """The strings of some memories."""
        return [None if code == NONE else self.values[code] for code in self.codes.values[docs].tolist()]

    def codes_of(self, strings: Collection[str]) -> list[int]:
        """The codes of the strings that occur."""
        return list(self.values.find(strings).values())


def cut(text: bytes, sizes: Sequence[int]) -> list[str | None]:
    """Split concatenated UTF-8 into strings, given their sizes in bytes; None for a size of -1."""
    ends = accumulate(size if size > 0 else 0 for size in sizes)
    if text.isascii():
        chars = text.decode()
        return [chars[end - size : end] if size >= 0 else None for size, end in zip(sizes, ends, strict=True)]
    return [text[end - size : end].decode() if size >= 0 else None for size, end in zip(sizes, ends, strict=True)]


class NameMatcher(Persistent):
    """Finds the names of a table in a text by looking up the text's words instead of trying every name.

    The index maps each name's normal form to its code, the first word of a name with several to minus their number, and
    each of its short names, with a space after it, to its code.
    """

    PARTS = ("_index", "_read")

    def __init__(self, names: StringTable) -> None:
        self._names = names
        self._read = 0
        self._index = HashIndex()

    def read(self) -> None:
        """Index the names added since the last call."""
        entries: dict[tuple[str, int], None] = {}
        for code in range(self._read, len(self._names)):
            if key := plain_name(self._names[code]):
                entries[key, code] = None
                first, *others = key.split(" ")
                if others:
                    entries[first, -1 - len(others)] = None
                entries |= {(f"{word} ", code): None for word in short_names(self._names[code])}
        self._read = len(self._names)
        if entries:
            keys, numbers = zip(*entries, strict=True)
            hashes = hashes_of(keys)
            first_words = [position for position, number in enumerate(numbers) if number < 0]
            known = {(first_words[at], number) for at, number in self._index.find(hashes[first_words])}
            new = [entry for entry in enumerate(numbers) if entry not in known]
            self._index.add(
                hashes[[position for position, _ in new]], np.array([number for _, number in new], np.int32)
            )

    @property
    def is_complete(self) -> bool:
        """Whether the index equals one rebuilt from all names."""
        rebuilt = NameMatcher(self._names)
        rebuilt.read()
        return self._index.entries() == rebuilt._index.entries()

    def names_in(self, text: str) -> dict[str, int]:
        """The names whose words occur consecutively in a text, as plain names, with their codes."""
        if not self._read:
            return {}
        words = plain_name(text).split(" ")
        words += [part for _, part in parts_of_runs(words)]
        found = self._index.find(hashes_of(words))
        if not found:
            return {}
        keys = {" ".join(words[position : position - number]) for position, number in found if number < 0}
        found += self._index.find(hashes_of(keys))
        keys.update(words)
        names = {self._names[code]: code for _, code in found if code >= 0}
        return {name: code for name, code in names.items() if plain_name(name) in keys}

    def bearers_in(self, text: str) -> list[NDArray[np.int32]]:
        """For each word of a text, the codes of the names that have it as a short name."""
        if not self._read:
            return []
        return self._index.numbers(hashes_of([f"{word} " for word in plain_name(text).split(" ")]))
