"""Calibration and metrics of predictions; numpy only.

Labels are class numbers of shape (n,), probabilities and logits have shape (n, classes), n > 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classifier.intents import INTENTS

CUTOFF = 10
"""Ranks that count."""

_TEMPERATURES = np.geomspace(0.25, 4.0, 401)


def softmax(logits: NDArray[np.float64], temperature: float = 1.0) -> NDArray[np.float64]:
    """Turn logits into probabilities; a temperature above 1 flattens, below 1 sharpens."""
    scaled = logits / temperature
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    result: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return result


def log_loss(probabilities: NDArray[np.float64], labels: NDArray[np.intp]) -> float:
    """Mean negative log-likelihood of the true labels, in nats."""
    chosen = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(chosen, 1e-12)).mean())


def fit_temperature(logits: NDArray[np.float64], labels: NDArray[np.intp]) -> float:
    """The temperature with the least log loss on held-out logits, on a grid from 1/4 to 4.

    Guo, Pleiss, Sun and Weinberger, ICML 2017, arXiv:1706.04599.
    """
    losses = [log_loss(softmax(logits, float(t)), labels) for t in _TEMPERATURES]
    return float(_TEMPERATURES[int(np.argmin(losses))])


def ndcg(hits: NDArray[np.bool_], relevant: int) -> NDArray[np.float64]:
    """Discounted gain of rankings over that of the best ranking of `relevant` memories, shape (n,).

    `hits` says whether the memory at each rank is relevant, shape (n, ranks), with at most `CUTOFF` ranks.
    """
    discount = 1 / np.log2(np.arange(CUTOFF) + 2)
    gained: NDArray[np.float64] = hits @ discount[: hits.shape[1]] / discount[:relevant].sum()
    return gained


def expected_calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Mean difference between confidence and accuracy over 15 bins of confidence of equal width.

    In [0, 1], 0 is best; bins are weighted by their share of the predictions. Both arguments have shape (n,).
    """
    surplus = np.bincount(_bins(confidence, 15), confidence - right)
    return float(np.abs(surplus).sum()) / len(right)


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """The predictions in one bin of confidence."""

    count: int
    confidence: float
    """Their mean confidence."""
    accuracy: float


def reliability(probabilities: NDArray[np.float64], labels: NDArray[np.intp], bins: int = 10) -> list[ReliabilityBin]:
    """Accuracy by confidence, in bins of equal width; empty bins are left out."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    number = _bins(confidence, bins)
    parts = [(confidence[number == n], right[number == n]) for n in np.unique(number)]
    return [ReliabilityBin(len(hits), float(sure.mean()), float(hits.mean())) for sure, hits in parts]


def _bins(confidence: NDArray[np.float64], bins: int) -> NDArray[np.intp]:
    """The bin of each prediction."""
    return np.minimum((confidence * bins).astype(np.intp), bins - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentMetrics:
    """Metrics of n predictions; every F1 and the accuracy are in [0, 1]."""

    n: int
    accuracy: float
    macro_f1: float
    f1: dict[str, float]
    """By intent."""
    ece: float
    """Expected calibration error, 15 bins."""
    log_loss: float
    """Nats."""
    confusion: list[list[int]]
    """Rows are true, columns predicted, both in the order of INTENTS."""


def measure(probabilities: NDArray[np.float64], labels: NDArray[np.intp]) -> IntentMetrics:
    """The metrics of predicted intents; one that is neither true nor predicted has F1 0."""
    predicted = probabilities.argmax(axis=1)
    classes = len(INTENTS)
    confusion = np.bincount(labels * classes + predicted, minlength=classes**2).reshape(classes, classes)
    f1 = 2 * confusion.diagonal() / np.maximum(confusion.sum(axis=0) + confusion.sum(axis=1), 1)
    return IntentMetrics(
        n=len(labels),
        accuracy=float((predicted == labels).mean()),
        macro_f1=float(f1.mean()),
        f1={intent.value: float(value) for intent, value in zip(INTENTS, f1, strict=True)},
        ece=expected_calibration_error(probabilities.max(axis=1), predicted == labels),
        log_loss=log_loss(probabilities, labels),
        confusion=confusion.tolist(),
    )
