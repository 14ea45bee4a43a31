"""Robustness of the classifier to typos, long stories, other languages, and texts that are not queries."""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
from sklearn.metrics import roc_auc_score

from classifier.inference import IntentClassifier
from classifier.intents import INTENTS, Intent
from classifier.training.augment import misspelt, stories
from classifier.training.data import DATA, LabelledQuery
from classifier.training.embedder import Embed
from classifier.training.judge import labels_of, predicted, probabilities
from classifier.training.metrics import IntentMetrics, measure

_SLIPS = 0.15
"""Share of the words of at least four letters that get a typo."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Robustness:
    """Metrics of the classifier in serving form, with embeddings."""

    altered: dict[str, IntentMetrics]
    """By alteration of the queries."""
    languages: dict[str, tuple[int, float, float]]
    """Language to (queries, accuracy, mean in_domain)."""
    strange: dict[str, tuple[int, float]]
    """Kind of text to (texts, mean in_domain), for texts that are not queries."""
    auroc: float
    """AUROC of in_domain, for queries against texts that are not: 1 is perfect, 0.5 is chance."""
    bare_auroc: float
    """The same without embeddings."""


def robustness(
    classifier: IntentClassifier, queries: Sequence[LabelledQuery], embed: Embed, seed: int, data: Path = DATA
) -> Robustness:
    """Evaluate altered copies of labelled queries, and the texts in `held_out.jsonl` and `out_of_domain.jsonl`.

    Args:
        classifier: the model in serving form.
        queries: labelled, not trained on.
        embed: embeds texts into unit rows.
        seed: of the typos and stories.
        data: the folder of the two files, which are never trained on.
    """
    foreign = [
        (LabelledQuery(text=row["text"], intent=Intent(row["intent"]), source=row["language"]))
        for row in _rows(data / "held_out.jsonl")
    ]
    strange = [
        LabelledQuery(text=row["text"], intent=INTENTS[0], source=row["kind"])
        for row in _rows(data / "out_of_domain.jsonl")
    ]
    usual = [*queries, *foreign]
    full, bare = (
        [[prediction.in_domain for prediction in predicted(classifier, texts, each)] for texts in (usual, strange)]
        for each in (embed, None)
    )
    of_language: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for query, prediction in zip(foreign, predicted(classifier, foreign, embed), strict=True):
        of_language[query.source].append((prediction.label is query.intent, prediction.in_domain))
    of_kind: dict[str, list[float]] = defaultdict(list)
    for query, in_domain in zip(strange, full[1], strict=True):
        of_kind[query.source].append(in_domain)
    return Robustness(
        altered=_altered(classifier, queries, embed, seed),
        languages={name: (len(each), *np.mean(each, axis=0).tolist()) for name, each in of_language.items()},
        strange={kind: (len(each), float(np.mean(each))) for kind, each in of_kind.items()},
        auroc=_auroc(*full),
        bare_auroc=_auroc(*bare),
    )


def _altered(
    classifier: IntentClassifier, queries: Sequence[LabelledQuery], embed: Embed, seed: int
) -> dict[str, IntentMetrics]:
    rng = Random(seed)
    ways: dict[str, Callable[[str], str]] = {
        "as they are": lambda text: text,
        "lower case": str.lower,
        "UPPER CASE": str.upper,
        "without punctuation": lambda text: "".join(char for char in text if char.isalnum() or char in " '-"),
        f"{_SLIPS:.0%} of the longer words mistyped": lambda text: _mistyped(text, rng),
        "after a long chatty paragraph": lambda text: f"{rng.choice(stories('check'))} {text}",
    }
    labels = labels_of(queries)
    return {
        name: measure(
            probabilities(predicted(classifier, [replace(query, text=alter(query.text)) for query in queries], embed)),
            labels,
        )
        for name, alter in ways.items()
    }


def _mistyped(text: str, rng: Random) -> str:
    return " ".join(misspelt(word, rng) if rng.random() < _SLIPS else word for word in text.split())


def _auroc(usual: Sequence[float], strange: Sequence[float]) -> float:
    return float(roc_auc_score([1] * len(usual) + [0] * len(strange), [*usual, *strange]))


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
