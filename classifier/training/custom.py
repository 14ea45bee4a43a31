"""Trains a classifier on a user's labelled queries, with or without ours: `trivet train`."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from classifier.inference import IntentClassifier
from classifier.intents import INTENTS, Intent
from classifier.training.card import confusion_table, metrics_table
from classifier.training.checksums import file_sha256, write_card
from classifier.training.data import LabelledQuery, comparable, read_training
from classifier.training.embedder import Embed
from classifier.training.export import check_parity, export
from classifier.training.fit import FOLDS, Advance, learn, prepare
from classifier.training.judge import measure_on
from classifier.training.metrics import IntentMetrics, ReliabilityBin, measure, reliability, softmax

FEWEST = 5
"""Minimum queries per intent."""
_SHARE, _MOST = 0.5, 20.0
"""Together, the given queries have this share of the weight of ours, but each has the weight of at least one and at
most `_MOST` of ours.
"""


class BadQueries(ValueError):
    """Labelled queries that cannot be used for training; the message names the line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedClassifier:
    """A trained classifier and its metrics on given queries held out in cross-validation."""

    queries: int
    base: int
    """Number of our queries trained on."""
    weight: float
    """Weight of a given query; one of ours has 1."""
    seed: int
    folds: int
    temperature: float
    with_embedding: IntentMetrics
    without_embedding: IntentMetrics
    shipped: IntentMetrics
    """The shipped classifier's, on the same queries."""
    reliability: list[ReliabilityBin]
    """With embedding."""
    parity: float
    sha256: str


def read_labelled(path: Path) -> list[LabelledQuery]:
    """Read queries, one JSON object per line with `text` and `intent`; other fields are ignored.

    Raises BadQueries for what is not UTF-8, a malformed line, a duplicate text, or too few queries of an intent.
    """
    queries: list[LabelledQuery] = []
    first_seen: dict[str, int] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as exc:
        raise BadQueries(f"{path}: not UTF-8: {exc.reason} at byte {exc.start}") from exc
    for number, line in enumerate(lines, start=1):
        if line.strip():
            query = _labelled(line, f"{path}:{number}")
            if (before := first_seen.setdefault(comparable(query.text), number)) != number:
                raise BadQueries(f"{path}:{number}: the same text as line {before}")
            queries.append(query)
    counts = Counter(query.intent for query in queries)
    few = [f"{intent} has {counts[intent]}" for intent in INTENTS if counts[intent] < FEWEST]
    if few:
        raise BadQueries(f"{path}: every intent needs at least {FEWEST} queries, but {', '.join(few)}")
    return queries


def train_custom(
    given: Sequence[LabelledQuery],
    out: Path,
    embed: Embed,
    *,
    shipped: IntentClassifier,
    base: bool,
    seed: int,
    advance: Advance = lambda more: None,
) -> TrainedClassifier:
    """Train on queries from `read_labelled`; write `intent.onnx`, its card `intent.md` and its line in `SHA256SUMS`.

    `out` is the output folder, created if missing, `embed` the embedder used in serving, `shipped` the classifier to
    compare the new one with. With `base` our queries are added, except for the texts of given ones. The same seed gives
    the same bytes; `advance` is called after each fit, FOLDS + 1 times in all.
    """
    texts = {comparable(query.text) for query in given}
    ours = [query for query in read_training() if comparable(query.text) not in texts] if base else []
    weight = min(_MOST, max(1.0, _SHARE * len(ours) / len(given)))
    data = prepare([*ours, *given], embed, seed, weights=[1.0] * len(ours) + [weight] * len(given))
    model, held = learn(data, embed, seed, advance)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "intent.onnx"
    export(model, path)
    mine = held.rows >= len(ours)
    labels = data.labels[held.rows[mine]]
    answers = softmax(held.averaged[mine], model.temperature)
    trained = TrainedClassifier(
        queries=len(given),
        base=len(ours),
        weight=weight,
        seed=seed,
        folds=FOLDS,
        temperature=model.temperature,
        with_embedding=measure(answers, labels),
        without_embedding=measure(softmax(held.bare[mine], model.bare_temperature), labels),
        shipped=measure_on(given, shipped, embed),
        reliability=reliability(answers, labels),
        parity=check_parity(model, path, data.texts[-200:], np.asarray(data.embeddings[-200:])),
        sha256=file_sha256(path),
    )
    write_card(path, _card(trained, given))
    return trained


def _labelled(line: str, where: str) -> LabelledQuery:
    try:
        row = json.loads(line)
    except ValueError as exc:
        raise BadQueries(f"{where}: not JSON: {exc}") from exc
    if not isinstance(row, dict) or not isinstance(row.get("text"), str) or not isinstance(row.get("intent"), str):
        raise BadQueries(f'{where}: needs {{"text": "…", "intent": "…"}}')
    if not comparable(row["text"]):
        raise BadQueries(f"{where}: the text is blank")
    if any("\ud800" <= char <= "\udfff" for char in row["text"]):
        raise BadQueries(f"{where}: the text has half a surrogate pair")
    if row["intent"] not in set(INTENTS):
        raise BadQueries(f"{where}: unknown intent {row['intent']!r}; there are {', '.join(INTENTS)}")
    return LabelledQuery(text=row["text"], intent=Intent(row["intent"]), source="given")


def _card(trained: TrainedClassifier, given: Sequence[LabelledQuery]) -> str:
    counts = Counter(query.intent for query in given)
    rows = "\n".join(f"| {intent} | {counts[intent]} |" for intent in INTENTS)
    rows_of_metrics = [
        ("with embedding", trained.with_embedding),
        ("words alone", trained.without_embedding),
        ("Trivet's own classifier, for comparison", trained.shipped),
    ]
    beside = (
        f", beside {trained.base} of Trivet's, of which one counts {1 / trained.weight:.3f}" if trained.base else ""
    )
    return f"""# intent.onnx: an intent classifier of your own

Made by `trivet train` with seed {trained.seed}; sha256 `{trained.sha256}`. It takes the place of Trivet's
`models/intent.onnx`, with the same inputs and outputs. Of the licence of its training data you know more than we do.

## Training data

{trained.queries} given queries{beside}.

| intent | given |
|---|---|
{rows}

## Cross-validation

{trained.folds} folds; measured on the given queries, each answered by a model that had not seen it nor an altered copy
of it. Temperature {trained.temperature:.3f}, fitted on the same folds, but never below 1.

{metrics_table(rows_of_metrics)}

{confusion_table(trained.with_embedding)}

`calibration.svg` shows how often a confidence was right, `confusion.svg` the table above.

The ONNX file against numpy: largest difference {trained.parity:.1e}.
"""
