"""Two logistic regressions, with and without the query's embedding, calibrated and stacked."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from classifier.features import FEATURE_DIM, WITH_EMBEDDING, WITHOUT_EMBEDDING, feature_row
from classifier.intents import INTENTS
from classifier.training.augment import augmented
from classifier.training.calibration import fit_temperature
from classifier.training.data import LabelledQuery
from classifier.training.embedder import Embed

REGULARISATION_C = 0.5
MIN_TEMPERATURE = 1.0
"""Never sharpen: real queries are further from our training queries than one fold from another."""
FOLDS = 5
TOPICS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingSet:
    """Queries as numbers; the rows of an altered copy come after those of all originals."""

    texts: list[str]
    embeddings: NDArray[np.float32]
    """Shape (n, 384)."""
    labels: NDArray[np.intp]
    """Positions in INTENTS, shape (n,)."""
    original: NDArray[np.intp]
    """Row of the original, shape (n,): its own row for an original."""
    held_out: NDArray[np.bool_]
    """Which rows measure: hand-written originals, shape (n,)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """A linear model of one view of the features, with what it did on folds it had not seen."""

    view: slice
    weights: NDArray[np.float64]
    """Shape (classes, width of the view), the intercept last; not yet divided by temperature."""
    temperature: float
    fold_logits: NDArray[np.float64]
    """Of the rows that measure, shape (m, classes)."""


def prepare(queries: Sequence[LabelledQuery], embed: Embed, seed: int) -> TrainingSet:
    """Add altered copies and embed everything.

    Args:
        queries: the training data.
        embed: texts to unit rows.
        seed: of the alterations.

    Returns:
        Originals first, copies after.
    """
    originals = list(queries)
    row_of = {id(query): row for row, query in enumerate(originals)}
    copies: list[LabelledQuery] = []
    copy_rows: list[int] = []
    rng = Random(seed)
    for query in originals:
        made = augmented([query], rng)
        copies.extend(made)
        copy_rows.extend([row_of[id(query)]] * len(made))
    everything = [*originals, *copies]
    texts = [query.text for query in everything]
    written = [query.source == "written" for query in originals] + [False] * len(copies)
    return TrainingSet(
        texts=texts,
        embeddings=embed(texts),
        labels=np.array([INTENTS.index(query.intent) for query in everything], dtype=np.intp),
        original=np.array([*range(len(originals)), *copy_rows], dtype=np.intp),
        held_out=np.array(written, dtype=np.bool_),
    )


def fit_heads(data: TrainingSet, seed: int) -> tuple[Head, Head]:
    """Fit the head for queries with an embedding and the head for those without.

    The folds keep a topic together (k-means clusters of the embeddings), and every copy with its
    original: the temperature is fitted on what is new to the model, as queries will be.

    Args:
        data: the training set.
        seed: of the clusters.

    Returns:
        (with embedding, without embedding).
    """
    originals = int(data.original.max()) + 1
    clusters = KMeans(TOPICS, n_init=1, random_state=seed).fit_predict(data.embeddings[:originals])
    topics = clusters[data.original]
    return (
        _fit_head(data, feature_matrix(data.texts, data.embeddings), WITH_EMBEDDING, topics),
        _fit_head(data, feature_matrix(data.texts, None), WITHOUT_EMBEDDING, topics),
    )


def feature_matrix(texts: Sequence[str], embeddings: NDArray[np.float32] | None) -> NDArray[np.float32]:
    """Stack the feature rows of texts, shape (len(texts), FEATURE_DIM)."""
    vectors: Sequence[NDArray[np.float32] | None] = [None] * len(texts) if embeddings is None else list(embeddings)
    return np.stack([feature_row(text, vector) for text, vector in zip(texts, vectors, strict=True)])


def stacked(heads: Sequence[Head]) -> LogisticRegression:
    """Put calibrated heads side by side as one scikit-learn model over whole feature rows.

    Args:
        heads: their views do not overlap.

    Returns:
        A fitted model: `predict_proba` on shape (n, FEATURE_DIM) gives shape (n, 4).
    """
    weights = np.zeros((len(INTENTS), FEATURE_DIM))
    for head in heads:
        weights[:, head.view] = head.weights / head.temperature
    model = LogisticRegression()
    model.classes_ = np.arange(len(INTENTS))
    model.coef_ = weights
    model.intercept_ = np.zeros(len(INTENTS))
    model.n_features_in_ = FEATURE_DIM
    return model


def _fit_head(data: TrainingSet, rows: NDArray[np.float32], view: slice, topics: NDArray[np.intp]) -> Head:
    seen = rows[:, view].astype(np.float64)
    logits = np.zeros((len(seen), len(INTENTS)))
    for train, test in GroupKFold(FOLDS).split(seen, data.labels, topics):
        logits[test] = seen[test] @ _fit(seen[train], data.labels[train]).T
    measured = logits[data.held_out]
    return Head(
        view=view,
        weights=_fit(seen, data.labels),
        temperature=max(MIN_TEMPERATURE, fit_temperature(measured, data.labels[data.held_out])),
        fold_logits=measured,
    )


def _fit(rows: NDArray[np.float64], labels: NDArray[np.intp]) -> NDArray[np.float64]:
    """Fit weights of shape (classes, width); the last column of `rows` is the constant 1."""
    model = LogisticRegression(C=REGULARISATION_C, max_iter=1000, tol=1e-4)
    model.fit(rows[:, :-1], labels)
    weights: NDArray[np.float64] = np.hstack([model.coef_, model.intercept_[:, np.newaxis]])
    return weights
