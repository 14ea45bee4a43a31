"""Augmentation with typing habits: hasty spelling, typos, and the question at the end of a long story."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

from classifier.training.data import DATA, LabelledQuery

STORIES = 0.12
"""Share of the copies that start with a story."""


def augmented(queries: list[LabelledQuery], rng: Random) -> list[LabelledQuery]:
    """One altered copy of each query, in order, if it differs from the original."""
    copies = [replace(query, text=_altered(query.text, rng)) for query in queries]
    return [copy for copy, query in zip(copies, queries, strict=True) if copy.text != query.text]


@cache
def stories(use: str, path: Path = DATA / "preambles.jsonl") -> tuple[str, ...]:
    """The stories to put before a question, for `training` or for the robustness `check`."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return tuple(row["text"] for row in rows if row["use"] == use)


def misspelt(word: str, rng: Random) -> str:
    """Drop, swap or double an inner letter of a word of at least four letters."""
    if len(word) < 4:
        return word
    position = rng.randrange(1, len(word) - 1)
    kind = rng.random()
    if kind < 0.4:
        return word[:position] + word[position + 1 :]
    if kind < 0.8:
        return word[:position] + word[position + 1] + word[position] + word[position + 2 :]
    return word[:position] + word[position] + word[position:]


def _altered(text: str, rng: Random) -> str:
    if rng.random() < 0.5:
        text = text.lower()
    if rng.random() < 0.35:
        text = text.rstrip("?. ")
    if rng.random() < 0.3:
        words = text.split()
        slip = rng.randrange(len(words))
        words[slip] = misspelt(words[slip], rng)
        text = " ".join(words)
    return f"{rng.choice(stories('training'))} {text}" if rng.random() < STORIES else text
