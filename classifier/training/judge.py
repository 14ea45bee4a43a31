"""Judging the exported model on labelled queries it was not trained on, through the serving code."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from classifier.inference import IntentClassifier
from classifier.intents import INTENTS
from classifier.training.data import LabelledQuery
from classifier.training.embedder import Embed
from classifier.training.metrics import Metrics, measure


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the judge found."""

    with_embedding: Metrics
    without_embedding: Metrics
    lower_case: Metrics
    """With embedding, of the texts in lower case without their last punctuation."""
    accuracy_by_source: dict[str, tuple[int, float]]
    """Source to (queries, accuracy), with embedding."""
    errors: dict[tuple[str, str], int]
    """(source, "truth as prediction") to count, with embedding."""


def judge(classifier: IntentClassifier, queries: Sequence[LabelledQuery], embed: Embed) -> Verdict:
    """Let the classifier answer every query and compare.

    Args:
        classifier: the model as served.
        queries: labelled, not trained on; at least one.
        embed: texts to unit rows.

    Returns:
        The metrics; no text of the queries.
    """
    labels = np.array([INTENTS.index(query.intent) for query in queries], dtype=np.intp)
    hasty = [replace(query, text=query.text.lower().rstrip("?. ")) for query in queries]
    full = _answers(classifier, queries, embed)
    by_source: dict[str, list[bool]] = defaultdict(list)
    errors: dict[tuple[str, str], int] = defaultdict(int)
    for query, number in zip(queries, full.argmax(axis=1), strict=True):
        guess = INTENTS[int(number)]
        by_source[query.source].append(guess is query.intent)
        if guess is not query.intent:
            errors[query.source, f"{query.intent} as {guess}"] += 1
    return Verdict(
        with_embedding=measure(full, labels),
        without_embedding=measure(_answers(classifier, queries, None), labels),
        lower_case=measure(_answers(classifier, hasty, embed), labels),
        accuracy_by_source={s: (len(hits), sum(hits) / len(hits)) for s, hits in sorted(by_source.items())},
        errors=dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
    )


def _answers(
    classifier: IntentClassifier, queries: Sequence[LabelledQuery], embed: Embed | None
) -> NDArray[np.float64]:
    texts = [query.text for query in queries]
    vectors: Sequence[NDArray[np.float32] | None] = [None] * len(texts) if embed is None else list(embed(texts))
    rows = [list(classifier.predict(t, v).probabilities.values()) for t, v in zip(texts, vectors, strict=True)]
    return np.array(rows, dtype=np.float64)
