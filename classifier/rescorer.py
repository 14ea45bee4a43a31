"""Ordering the fused candidates of a query anew by what is known of each, with boosted trees."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from classifier.candidates import (
    CANDIDATE_FEATURES,
    CANDIDATES_VERSION,
    KIND_FEATURES,
    Particulars,
    describe,
)
from classifier.evidence import Evidence
from classifier.familiarity import Familiarity
from classifier.inference import ModelMismatch
from classifier.onnx_file import read_model
from classifier.trees import Trees

_OPERATORS = (
    *("TreeEnsembleRegressor", "Sub", "Div", "MatMul", "Sub", "ReduceSumSquare", "TopK", "Sqrt", "ReduceMean"),
    *("Sub", "Div", "Clip"),
)
"""What a model computes, as `classifier.training.rescorer` writes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rescored:
    """What the rescorer makes of the candidates of one query.

    Attributes:
        scores: of the foremost candidates, by id; only their order means something, and only within the query.
        familiarity: in [0, 1], how like the memories are to those it was trained on; 0: unlike all of them.
        confidence: in [0, 1], how far its order is to be followed: `familiarity` above a floor.
    """

    scores: dict[str, float]
    familiarity: float
    confidence: float


class Rescorer:
    """Scores candidates; safe to share between threads."""

    def __init__(self, model_path: Path) -> None:
        """Load the model (some 80 milliseconds).

        Args:
            model_path: ONNX file as `classifier.training.rescorer` writes it, with the metadata `candidate_features`,
                `kind_features`, `candidates_version` and `floor`.

        Raises:
            FileNotFoundError: there is no such file.
            ModelMismatch: the model was made for other features, or is another one.
        """
        if not model_path.is_file():
            raise FileNotFoundError(f"no rescorer at {model_path}")
        model = read_model(model_path)
        model.check_metadata(
            {
                "candidates_version": str(CANDIDATES_VERSION),
                "candidate_features": json.dumps(CANDIDATE_FEATURES),
                "kind_features": json.dumps(KIND_FEATURES),
            },
            model_path,
        )
        if model.operators != _OPERATORS:
            raise ModelMismatch(f"{model_path} does not compute what a rescorer does")
        self._trees = Trees(model.nodes[0], len(CANDIDATE_FEATURES))
        self._familiarity = Familiarity(model, len(KIND_FEATURES))
        self._floor = float(model.metadata["floor"])

    def score(self, evidence: Evidence, known: Particulars, at: bytes | None = None) -> Rescored:
        """Score the candidates of one query; there must be at least one. `at` is `describe`'s."""
        described = describe(evidence, known, at)
        scores = self._trees.scores(described.rows, described.foremost)
        familiar = self._familiarity.of(described.kind)
        return Rescored(
            scores=dict(zip(map(known.ids.__getitem__, described.foremost.tolist()), scores.tolist(), strict=True)),
            familiarity=familiar,
            confidence=self._floor + (1 - self._floor) * familiar,
        )
