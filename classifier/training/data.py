"""Labelled queries: our training file, the format of a judging folder, and copies altered by typing habits."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from classifier.intents import Intent

DATA = Path(__file__).resolve().parent.parent / "data"
TRAINING_FILES = (DATA / "intents.jsonl", DATA / "languages.jsonl")
STORIES = 0.12
"""Share of the copies that start with a story."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledQuery:
    """A query with its intent and source."""

    text: str
    intent: Intent
    source: str
    language: str | None = None
    """ISO 639-1 code, for the queries of `languages.jsonl`."""


def read_training(paths: Sequence[Path] = TRAINING_FILES) -> list[LabelledQuery]:
    """Read the training queries, one JSON object per line: `text`, `intent`, `source`, and `language` in some.

    Raises ValueError, naming the line, for a malformed one, a blank text, or two equal up to case and white space.
    """
    queries: list[LabelledQuery] = []
    first_seen: dict[str, str] = {}
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            where = f"{path}:{number}"
            try:
                query = LabelledQuery(**json.loads(line))
                query = replace(query, intent=Intent(query.intent))
            except (TypeError, ValueError) as error:
                raise ValueError(f"{where}: {error}") from error
            key = comparable(query.text)
            if not key:
                raise ValueError(f"{where}: blank text")
            if (before := first_seen.setdefault(key, where)) != where:
                raise ValueError(f"{where}: the same text as {before}")
            queries.append(query)
    return queries


def read_judge(folder: Path) -> list[LabelledQuery]:
    """Read `queries.jsonl` of an evaluation folder: `text`, `type` (an intent) and `metadata.source`."""
    return [
        LabelledQuery(text=row["text"], intent=Intent(row["type"]), source=row["metadata"]["source"])
        for row in json_lines(folder / "queries.jsonl")
    ]


def shared_texts(training: list[LabelledQuery], judge: list[LabelledQuery]) -> list[str]:
    """The training texts that are also in the judging set, ignoring case and white space; there must be none."""
    judged = {comparable(query.text) for query in judge}
    return [query.text for query in training if comparable(query.text) in judged]


def json_lines(path: Path) -> list[Any]:
    """The values in a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def comparable(text: str) -> str:
    """Fold case and white space, to detect duplicates."""
    return " ".join(text.casefold().split())


@cache
def stories(use: str) -> tuple[str, ...]:
    """The stories to put before a question, for `training` or for the robustness `check`."""
    return tuple(row["text"] for row in json_lines(DATA / "preambles.jsonl") if row["use"] == use)


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


def altered(text: str, rng: Random) -> str:
    """A copy of a query as typed in a hurry, sometimes at the end of a story; it may be the same text."""
    if rng.random() < 0.5:
        text = text.lower()
    if rng.random() < 0.35:
        text = text.rstrip("?. ") or text
    if rng.random() < 0.3:
        words = text.split()
        slip = rng.randrange(len(words))
        words[slip] = misspelt(words[slip], rng)
        text = " ".join(words)
    return f"{rng.choice(stories('training'))} {text}" if rng.random() < STORIES else text
