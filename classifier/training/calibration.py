"""Calibration of probabilities: temperature scaling and the expected calibration error."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TEMPERATURES = np.geomspace(0.25, 4.0, 401)


def softmax(logits: NDArray[np.float64], temperature: float = 1.0) -> NDArray[np.float64]:
    """Turn logits into probabilities.

    Args:
        logits: shape (n, classes).
        temperature: > 0; above 1 flattens, below 1 sharpens.

    Returns:
        Shape (n, classes), rows summing to 1.
    """
    scaled = logits / temperature
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    result: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return result


def log_loss(probabilities: NDArray[np.float64], labels: NDArray[np.intp]) -> float:
    """Mean negative log-likelihood of the true labels, in nats."""
    chosen = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(chosen, 1e-12)).mean())


def fit_temperature(logits: NDArray[np.float64], labels: NDArray[np.intp]) -> float:
    """The temperature with the least log loss, on a grid from 1/4 to 4.

    Guo, Pleiss, Sun and Weinberger, ICML 2017, arXiv:1706.04599.

    Args:
        logits: held-out, shape (n, classes).
        labels: true class numbers, shape (n,).

    Returns:
        The temperature to divide logits by.
    """
    losses = [log_loss(softmax(logits, float(t)), labels) for t in _TEMPERATURES]
    return float(_TEMPERATURES[int(np.argmin(losses))])


def expected_calibration_error(probabilities: NDArray[np.float64], labels: NDArray[np.intp], bins: int = 15) -> float:
    """Mean difference between confidence and accuracy over bins of confidence of equal width.

    Args:
        probabilities: shape (n, classes), n > 0.
        labels: true class numbers, shape (n,).
        bins: number of bins.

    Returns:
        In [0, 1], 0 is best; bins are weighted by their share of the rows.
    """
    confidence = probabilities.max(axis=1)
    correct = probabilities.argmax(axis=1) == labels
    number = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [abs(float(correct[b].sum()) - float(confidence[b].sum())) for b in (number == n for n in range(bins))]
    return sum(gaps) / len(labels)


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """The predictions in one bin of confidence."""

    count: int
    confidence: float
    """Their mean confidence."""
    accuracy: float


def reliability(probabilities: NDArray[np.float64], labels: NDArray[np.intp], bins: int = 10) -> list[ReliabilityBin]:
    """Accuracy by confidence, in bins of equal width; empty bins are left out.

    Args:
        probabilities: shape (n, classes).
        labels: true class numbers, shape (n,).
        bins: number of bins.
    """
    confidence = probabilities.max(axis=1)
    correct = probabilities.argmax(axis=1) == labels
    number = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        ReliabilityBin(int(chosen.sum()), float(confidence[chosen].mean()), float(correct[chosen].mean()))
        for chosen in (number == n for n in range(bins))
        if chosen.any()
    ]
