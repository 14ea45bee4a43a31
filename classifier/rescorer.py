"""Reorders the fused candidates of a query with boosted trees over their features."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from classifier.candidates import (
    CANDIDATE_FEATURES,
    CANDIDATES_VERSION,
    CORPUS_FEATURES,
    CandidateInputs,
    describe,
)
from classifier.corpus_guard import CorpusGuard
from classifier.model_arrays import read_arrays
from classifier.query_performance import QueryPerformanceFeatures
from classifier.trees import Trees


@dataclass(frozen=True, kw_only=True, slots=True)
class Rescored:
    """The rescorer's output for the candidates of a query.

    Attributes:
        scores: by id, of the `top_rows` candidates; only their order within the query is meaningful.
        in_domain: similarity of the memories to those of the training data, in [0, 1]; 0 is unlike all of them.
        confidence: how far to follow the order, in [0, 1]: floor + (1 - floor) * in_domain, with the model's floor.
    """

    scores: dict[str, float]
    in_domain: float
    confidence: float


class Rescorer:
    """Scores candidates; thread-safe."""

    def __init__(self, model_path: Path) -> None:
        """Load the model (about 80 milliseconds).

        Args:
            model_path: ONNX file written by `classifier.training.rescorer`, with the metadata `candidate_features`,
                `kind_features`, `candidates_version` and `floor`.

        Raises:
            FileNotFoundError: there is no such file.
            ModelMismatch: the model is for other features, or of another kind.
        """
        if not model_path.is_file():
            raise FileNotFoundError(f"no rescorer at {model_path}")
        model = read_arrays(
            model_path,
            {
                "candidates_version": str(CANDIDATES_VERSION),
                "candidate_features": json.dumps(CANDIDATE_FEATURES),
                "kind_features": json.dumps(CORPUS_FEATURES),
            },
        )
        self._trees = Trees(model, len(CANDIDATE_FEATURES))
        self._guard = CorpusGuard(model, len(CORPUS_FEATURES))
        self._floor = float(model.metadata["floor"])

    def score(
        self, evidence: QueryPerformanceFeatures, known: CandidateInputs, positions: bytes | None = None
    ) -> Rescored:
        """Score the candidates of a query, at least one; `positions` as in `describe`."""
        described = describe(evidence, known, positions)
        scores = self._trees.scores(described.rows, described.top_rows)
        in_domain = self._guard.in_domain(described.corpus)
        return Rescored(
            scores=dict(zip(map(known.ids.__getitem__, described.top_rows.tolist()), scores.tolist(), strict=True)),
            in_domain=in_domain,
            confidence=self._floor + (1 - self._floor) * in_domain,
        )
