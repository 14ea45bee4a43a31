"""Evaluates on an external judging set: without training on it, and in cross-validation with the training data."""

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
from classifier.training.metrics import IntentMetrics, measure
from classifier.training.model import IntentModel

JUDGE_WEIGHT = 2.0
"""Weight of a query of the judging set when it is added to the training data."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentVerdict:
    """The results of the evaluation."""

    with_embedding: IntentMetrics
    without_embedding: IntentMetrics
    lower_case: IntentMetrics
    """With embedding, on the texts in lower case without final punctuation."""
    in_folds: IntentMetrics
    """With embedding, by models also trained on the other folds of the judging set."""
    accuracy_by_source: dict[str, tuple[int, float, float]]
    """Source to (queries, accuracy unseen, accuracy in folds), with embedding."""
    errors: dict[tuple[str, str], int]
    """(source, "truth as prediction") to count, with embedding, unseen."""
    familiar: float
    """Share of the queries with in_domain >= 0.8, with embedding."""


def labels_of(queries: Sequence[LabelledQuery]) -> NDArray[np.intp]:
    """Indices of the queries' intents in INTENTS, shape (n,)."""
    return np.array([INTENTS.index(query.intent) for query in queries], dtype=np.intp)


def judge(
    classifier: IntentClassifier,
    queries: Sequence[LabelledQuery],
    embed: Embed,
    folds: NDArray[np.float64],
) -> IntentVerdict:
    """Evaluate the classifier on labelled queries.

    Args:
        classifier: the model in serving form.
        queries: labelled, not trained on; at least one.
        embed: embeds texts into unit rows.
        folds: the result of `fold_answers` for them.

    Returns:
        The metrics, without any text of the queries.
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
    return IntentVerdict(
        with_embedding=measure(full, labels),
        without_embedding=measure(probabilities(predicted(classifier, queries, None)), labels),
        lower_case=measure(probabilities(predicted(classifier, hasty, embed)), labels),
        in_folds=measure(folds, labels),
        accuracy_by_source={
            source: (len(hits), _share(alone for alone, _ in hits), _share(folded for _, folded in hits))
            for source, hits in sorted(by_source.items())
        },
        errors=dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
        familiar=float(np.mean([prediction.in_domain >= 0.8 for prediction in predictions])),
    )


def fold_answers(
    training: Sequence[LabelledQuery],
    queries: Sequence[LabelledQuery],
    embed: Embed,
    seed: int,
    temperature: float,
) -> NDArray[np.float64]:
    """Cross-validate the judging set, adding the training data to every fold.

    Args:
        training: training data of every fold.
        queries: the judging set; each fold is predicted by a model trained on the others.
        embed: embeds texts into unit rows.
        seed: of the folds (stratified by intent) and of the augmentation.
        temperature: of the model trained without the judging set.

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
    """The model's probabilities for texts with their embeddings, at a temperature, shape (n, 4)."""
    return softmax(model.averaged(encode(texts, embed(texts)), embedded=True), temperature)


def predicted(
    classifier: IntentClassifier, queries: Sequence[LabelledQuery], embed: Embed | None
) -> list[IntentPrediction]:
    """The classifier's predictions; without an embedder, from the words alone."""
    texts = [query.text for query in queries]
    vectors: Sequence[NDArray[np.float32] | None] = [None] * len(texts) if embed is None else list(embed(texts))
    return [classifier.predict(text, vector) for text, vector in zip(texts, vectors, strict=True)]


def probabilities(predictions: Sequence[IntentPrediction]) -> NDArray[np.float64]:
    """The probabilities of predictions, shape (n, 4)."""
    return np.array([list(prediction.probabilities.values()) for prediction in predictions], dtype=np.float64)
