"""Metrics of predictions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, f1_score

from classifier.intents import INTENTS
from classifier.training.calibration import expected_calibration_error, log_loss


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
    """Compute the metrics of predictions.

    Args:
        probabilities: shape (n, 4), n > 0.
        labels: true indices in INTENTS, shape (n,).

    Returns:
        The metrics; an intent that is neither true nor predicted has F1 0.
    """
    predicted = probabilities.argmax(axis=1)
    classes = list(range(len(INTENTS)))
    f1 = f1_score(labels, predicted, labels=classes, average=None, zero_division=0.0)
    return IntentMetrics(
        n=len(labels),
        accuracy=float((predicted == labels).mean()),
        macro_f1=float(f1.mean()),
        f1={intent.value: float(value) for intent, value in zip(INTENTS, f1, strict=True)},
        ece=expected_calibration_error(probabilities, labels),
        log_loss=log_loss(probabilities, labels),
        confusion=confusion_matrix(labels, predicted, labels=classes).tolist(),
    )
