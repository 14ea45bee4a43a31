"""Judging on labelled queries from elsewhere: not trained on at all, and in folds beside the training data."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from classifier.inference import IntentClassifier, IntentPrediction
from classifier.intents import INTENTS
from classifier.training.calibration import softmax
from classifier.training.data import LabelledQuery
from classifier.training.embedder import Embed
from classifier.training.encoding import encode
from classifier.training.fit import FOLDS, fit_members, prepare
from classifier.training.metrics import Metrics, measure
from classifier.training.model import IntentModel

JUDGE_WEIGHT = 2.0
"""How much a query of the judging set counts where it is added to the training data."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the judge found."""

    with_embedding: Metrics
    without_embedding: Metrics
    lower_case: Metrics
    """With embedding, of the texts in lower case without their last punctuation."""
    in_folds: Metrics
    """With embedding, by models that had the other folds of the judging set beside the training data."""
    accuracy_by_source: dict[str, tuple[int, float, float]]
    """Source to (queries, accuracy unseen, accuracy in folds), with embedding."""
    errors: dict[tuple[str, str], int]
    """(source, "truth as prediction") to count, with embedding, unseen."""
    familiar: float
    """The share of the queries with a familiarity of .8 or more, with embedding."""


def labels_of(queries: Sequence[LabelledQuery]) -> NDArray[np.intp]:
    """Positions of the queries' intents in INTENTS, shape (n,)."""
    return np.array([INTENTS.index(query.intent) for query in queries], dtype=np.intp)


def judge(
    classifier: IntentClassifier,
    queries: Sequence[LabelledQuery],
    embed: Embed,
    folds: NDArray[np.float64],
) -> Verdict:
    """Let the classifier answer every query and compare.

    Args:
        classifier: the model as served.
        queries: labelled, not trained on; at least one.
        embed: texts to unit rows.
        folds: what `fold_answers` gives for them.

    Returns:
        The metrics; no text of the queries.
    """
    labels = labels_of(queries)
    hasty = [replace(query, text=query.text.lower().rstrip("?. ")) for query in queries]
    predictions = predicted(classifier, queries, embed)
    full = probabilities(predictions)
    by_source: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    errors: dict[tuple[str, str], int] = defaultdict(int)
    for query, guess, number in zip(queries, predictions, folds.argmax(axis=1), strict=True):
        by_source[query.source].append((guess.label is query.intent, INTENTS[int(number)] is query.intent))
        if guess.label is not query.intent:
            errors[query.source, f"{query.intent} as {guess.label}"] += 1
    return Verdict(
        with_embedding=measure(full, labels),
        without_embedding=measure(probabilities(predicted(classifier, queries, None)), labels),
        lower_case=measure(probabilities(predicted(classifier, hasty, embed)), labels),
        in_folds=measure(folds, labels),
        accuracy_by_source={
            source: (len(hits), _share(alone for alone, _ in hits), _share(folded for _, folded in hits))
            for source, hits in sorted(by_source.items())
        },
        errors=dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
        familiar=float(np.mean([prediction.familiarity >= 0.8 for prediction in predictions])),
    )


def fold_answers(
    training: Sequence[LabelledQuery],
    queries: Sequence[LabelledQuery],
    embed: Embed,
    seed: int,
    temperature: float,
) -> NDArray[np.float64]:
    """Cross-validate the judging set beside the training data.

    Args:
        training: in every fold's training data.
        queries: the judging set; of each fold's answers, only the other folds were trained on.
        embed: texts to unit rows.
        seed: of the folds, stratified by intent, and of the altered copies.
        temperature: of the model that was trained without the judging set.

    Returns:
        Probabilities with embedding, shape (n, 4).
    """
    labels = labels_of(queries)
    answers = np.zeros((len(queries), len(INTENTS)))
    for seen, unseen in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(labels, labels):
        weights = [1.0] * len(training) + [JUDGE_WEIGHT] * len(seen)
        data = prepare([*training, *(queries[row] for row in seen)], embed, seed, weights=weights)
        model = fit_members(data, np.arange(len(data.labels)))
        answers[unseen] = cooled(model, [queries[row].text for row in unseen], embed, temperature)
    return answers


def _share(hits: Iterable[bool]) -> float:
    return float(np.mean(list(hits)))


def cooled(model: IntentModel, texts: Sequence[str], embed: Embed, temperature: float) -> NDArray[np.float64]:
    """What a model says of texts with their embeddings, at a temperature, shape (n, 4)."""
    return softmax(model.averaged(encode(texts, embed(texts)), embedded=True), temperature)


def predicted(
    classifier: IntentClassifier, queries: Sequence[LabelledQuery], embed: Embed | None
) -> list[IntentPrediction]:
    """The classifier's answers; without an embedder, from the words alone."""
    texts = [query.text for query in queries]
    vectors: Sequence[NDArray[np.float32] | None] = [None] * len(texts) if embed is None else list(embed(texts))
    return [classifier.predict(text, vector) for text, vector in zip(texts, vectors, strict=True)]


def probabilities(predictions: Sequence[IntentPrediction]) -> NDArray[np.float64]:
    """Of predictions, shape (n, 4)."""
    return np.array([list(prediction.probabilities.values()) for prediction in predictions], dtype=np.float64)
