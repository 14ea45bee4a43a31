"""Which names a text speaks of, found by the words of the text and not by going through all names."""

from __future__ import annotations

from collections.abc import Sequence

from graph.names import normalize


class Spoken:
    """The names of a list that only grows, by their words."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._read = 0
        self._of_key: dict[str, list[str]] = {}
        self._sizes: dict[str, set[int]] = {}
        """How many words the names have that begin with a word."""

    def read(self) -> None:
        """Take in the names that came since."""
        for name in self._names[self._read :]:
            if key := normalize(name):
                first, *others = key.split(" ")
                self._of_key.setdefault(key, []).append(name)
                self._sizes.setdefault(first, set()).add(1 + len(others))
        self._read = len(self._names)

    def of(self, text: str) -> list[str]:
        """Those of which all words stand in a text, one after another, however they are written there."""
        words = normalize(text).split(" ")
        keys = (
            " ".join(words[at : at + size])
            for at, word in enumerate(words)
            if word in self._sizes
            for size in self._sizes[word]
        )
        return [name for key in keys for name in self._of_key.get(key, ())]
