"""Training copies as people type in haste: no capitals, no question mark, a slip of the finger."""

from dataclasses import replace
from random import Random

from classifier.training.data import LabelledQuery


def augmented(queries: list[LabelledQuery], rng: Random) -> list[LabelledQuery]:
    """Make at most one altered copy of each query.

    Args:
        queries: the originals.
        rng: decides what is altered.

    Returns:
        The copies that differ from their original, in order; the originals are not among them.
    """
    copies = [replace(query, text=_hasty(query.text, rng)) for query in queries]
    return [copy for copy, query in zip(copies, queries, strict=True) if copy.text != query.text]


def _hasty(text: str, rng: Random) -> str:
    if rng.random() < 0.5:
        text = text.lower()
    if rng.random() < 0.35:
        text = text.rstrip("?. ")
    if rng.random() < 0.3:
        words = text.split()
        slip = rng.randrange(len(words))
        words[slip] = _misspelt(words[slip], rng)
        text = " ".join(words)
    return text


def _misspelt(word: str, rng: Random) -> str:
    """Drop, swap or double one inner letter of a word of four or more."""
    if len(word) < 4:
        return word
    at = rng.randrange(1, len(word) - 1)
    kind = rng.random()
    if kind < 0.4:
        return word[:at] + word[at + 1 :]
    if kind < 0.8:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + word[at] + word[at:]
