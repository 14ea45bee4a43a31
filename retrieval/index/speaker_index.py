"""Finding the names that a text mentions by the words of the text, not by trying every name."""

from __future__ import annotations

from collections.abc import Sequence

from graph.names import normalize


class NameMatcher:
    """An index of an append-only list of names by their words."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._read = 0
        self._of_key: dict[str, list[str]] = {}
        self._sizes: dict[str, set[int]] = {}
        """By first word: the lengths, in words, of the names that begin with it."""

    def read(self) -> None:
        """Index the names added since the last call."""
        for name in self._names[self._read :]:
            if key := normalize(name):
                first, *others = key.split(" ")
                self._of_key.setdefault(key, []).append(name)
                self._sizes.setdefault(first, set()).add(1 + len(others))
        self._read = len(self._names)

    def names_in(self, text: str) -> list[str]:
        """The names whose words occur consecutively in a text, after normalization."""
        words = normalize(text).split(" ")
        keys = (
            " ".join(words[position : position + size])
            for position, word in enumerate(words)
            if word in self._sizes
            for size in self._sizes[word]
        )
        return [name for key in keys for name in self._of_key.get(key, ())]
