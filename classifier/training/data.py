"""Labelled queries: our training file, and the format of a judging folder."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from classifier.intents import Intent

DATA = Path(__file__).resolve().parent.parent / "data"
TRAINING_FILE = DATA / "intents.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledQuery:
    """A query with its intent and source."""

    text: str
    intent: Intent
    source: str


def read_training(path: Path = TRAINING_FILE) -> list[LabelledQuery]:
    """Read the training queries, one JSON object per line: `text`, `intent`, `source`.

    Raises:
        ValueError: a malformed line, a blank text, or texts equal up to case and space; the message names the line.
    """
    queries: list[LabelledQuery] = []
    first_seen: dict[str, int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            query = LabelledQuery(**json.loads(line))
            query = replace(query, intent=Intent(query.intent))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}:{number}: {error}") from error
        key = comparable(query.text)
        if not key:
            raise ValueError(f"{path}:{number}: blank text")
        if (before := first_seen.setdefault(key, number)) != number:
            raise ValueError(f"{path}:{number}: the same text as line {before}")
        queries.append(query)
    return queries


def read_judge(folder: Path) -> list[LabelledQuery]:
    """Read `queries.jsonl` of an evaluation folder: `text`, `type` (an intent) and `metadata.source`."""
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [LabelledQuery(text=r["text"], intent=Intent(r["type"]), source=r["metadata"]["source"]) for r in rows]


def shared_texts(training: list[LabelledQuery], judge: list[LabelledQuery]) -> list[str]:
    """The training texts that are also in the judging set, up to case and space; there must be none."""
    judged = {comparable(query.text) for query in judge}
    return [query.text for query in training if comparable(query.text) in judged]


def comparable(text: str) -> str:
    """Fold case and space, to detect duplicates."""
    return " ".join(text.casefold().split())
