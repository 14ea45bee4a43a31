"""Orders the fused candidates of a query by boosted trees over their features, and tells how likely each answers it."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

import native
from classifier.candidates import CANDIDATE_FEATURES, CANDIDATES_VERSION, CORPUS_FEATURES, CandidateInputs, describe
from classifier.inference import ModelMismatch
from classifier.model_arrays import ModelArrays, read_arrays
from classifier.query_performance import Candidate, QueryPerformanceFeatures

MOST_LEAVES = 32
"""Maximum leaves of a tree, one bit each; as in `native/rescore.c`."""

_score = native.function("trivet_trees", "qPPqqPPPPPP", "i")


class RescoredCandidates(msgspec.Struct, frozen=True, kw_only=True):
    """The rescorer's output for the candidates of a query.

    Attributes:
        scores: of the `top_rows` candidates; only their order within the query is meaningful.
        relevance: gives the calibrated probabilities that some of the candidates answer the query.
        in_domain: similarity of the memories to those of the training data, in [0, 1]; 0 is unlike all of them.
        share: how far to follow the order, in [0, 1]: fully on memories like those of the training data, on others as
            far as it helped on unseen sets.
    """

    scores: Mapping[Candidate, float]
    relevance: Callable[[Sequence[Candidate]], list[float]]
    in_domain: float
    share: float


class Rescorer:
    """Scores candidates; thread-safe."""

    def __init__(self, model_path: Path) -> None:
        """Load an ONNX file written by `classifier.training.rescorer` (about 80 milliseconds).

        Raises FileNotFoundError if there is none, ModelMismatch if it is for other features, or of another kind.
        """
        model = read_arrays(
            model_path,
            {
                "candidates_version": str(CANDIDATES_VERSION),
                "candidate_features": json.dumps(CANDIDATE_FEATURES),
                "kind_features": json.dumps(CORPUS_FEATURES),
            },
        )
        self._trees = Trees(model, len(CANDIDATE_FEATURES))
        self._relevance = Trees(model, len(CANDIDATE_FEATURES), "relevance")
        self._slope, self._offset = (model.floats(name, 1).item() for name in ("slope", "offset"))
        self._guard = CorpusGuard(model, len(CORPUS_FEATURES))
        self._unseen = UnseenShare(model, len(CORPUS_FEATURES))

    def score(
        self, evidence: QueryPerformanceFeatures, inputs: CandidateInputs, positions: array[int] | None = None
    ) -> RescoredCandidates:
        """Score the candidates of a query, at least one; `positions` as in `describe`."""
        described = describe(evidence, inputs, positions)
        scores = self._trees.scores(described.rows, described.top_rows)
        in_domain = self._guard.in_domain(described.corpus)
        unseen = self._unseen.share(described.corpus)
        return RescoredCandidates(
            scores=dict(zip(map(inputs.ids.__getitem__, described.top_rows.tolist()), scores.tolist(), strict=True)),
            relevance=partial(self._relevance_of, inputs.ids, described.rows),
            in_domain=in_domain,
            share=unseen + (1 - unseen) * in_domain,
        )

    def _relevance_of(
        self, known: Sequence[Candidate], rows: NDArray[np.float32], candidates: Sequence[Candidate]
    ) -> list[float]:
        """The relevance of some of the known candidates, whose features are `rows`; 0 for any other."""
        row_of = dict(zip(known, range(len(known)), strict=True))
        there = [each for each in candidates if each in row_of]
        logits = self._relevance.scores(rows, np.array([row_of[each] for each in there], np.int64))
        relevance = 1 / (1 + np.exp(-(self._slope * logits + self._offset)))
        relevance_of = dict(zip(there, relevance.tolist(), strict=True))
        return [relevance_of.get(each, 0.0) for each in candidates]


class Trees:
    """A sum of trees with conditions "feature <= threshold", in arrays laid out for the compiled kernel."""

    def __init__(self, model: ModelArrays, features: int, name: str = "tree") -> None:
        """Read the arrays of that name made by `classifier.training.trees.tree_arrays`.

        Raises ModelMismatch if arrays are missing or for other features.
        """
        starts = model.array(f"{name}_starts", np.int64, -1)
        if not starts.size or starts[0] != 0 or (np.diff(starts) < 0).any():
            raise ModelMismatch("its trees do not follow each other")
        conditions = int(starts[-1])
        columns = model.array(f"{name}_features", np.int32, conditions)
        if ((columns < 0) | (columns >= features)).any():
            raise ModelMismatch(f"its trees have other features than {features}")
        self._features = features
        self._trees = len(starts) - 1
        self._arrays = (
            starts,
            columns,
            model.floats(f"{name}_thresholds", conditions),
            model.array(f"{name}_masks", np.uint32, conditions),
            model.floats(f"{name}_leaves", self._trees, MOST_LEAVES),
        )
        self._addresses = [native.address(array) for array in self._arrays]

    def scores(self, rows: NDArray[np.float32], chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of the chosen rows, shape (len(chosen),), equal to ONNX Runtime's.

        `rows` has shape (n, features), `chosen` row indices in [0, n); both are contiguous.
        """
        scores = np.empty(len(chosen), np.float32)
        _score(
            len(chosen), native.address(chosen), native.address(rows), self._features, self._trees,
            *self._addresses, native.address(scores),
        )  # fmt: skip
        return scores


class CorpusGuard:
    """How similar the memories of a query are to those the rescorer was trained on.

    in_domain = clip((far - d) / span, 0, 1), with d the mean distance to the nearest training queries; fitted by
    `classifier.training.corpus_guard`.
    """

    def __init__(self, model: ModelArrays, features: int) -> None:
        """Read the arrays of a model with this number of corpus features; raises ModelMismatch for other shapes."""
        known = model.floats("known", -1, features)
        count = int(model.array("neighbours", np.int64, 1).item())
        if not 1 <= count <= len(known):
            raise ModelMismatch(f"it has {len(known)} neighbours, of which {count} should count")
        self._mean, self._scale = model.floats("mean", features), model.floats("scale", features)
        self._directions = model.floats("directions", features, features)
        self._known, self._neighbours = known, count
        self._known_squares = (known * known).sum(axis=1)
        self._far, self._span = model.floats("far", 1).item(), model.floats("span", 1).item()

    def in_domain(self, corpus: NDArray[np.float32]) -> float:
        """In [0, 1] for the corpus features of a query, shape (features,)."""
        placed = (corpus - self._mean) / self._scale @ self._directions
        squares = self._known_squares - 2 * (self._known @ placed) + placed @ placed
        nearest = np.partition(squares, self._neighbours - 1)[: self._neighbours]
        distance = float(np.sqrt(nearest.clip(0.0)).mean())
        return min(1.0, max(0.0, (self._far - distance) / self._span))


class UnseenShare:
    """How far to follow the rescorer on memories of a kind that it was not trained on.

    share = softmax(intercept + linear x) @ levels, of standardised and clipped features x; fitted by
    `classifier.training.rescorer_share`.
    """

    def __init__(self, model: ModelArrays, features: int) -> None:
        """Read the arrays of a model with this number of corpus features; raises ModelMismatch for other shapes."""
        self._mean, self._scale = model.floats("share_mean", features), model.floats("share_scale", features)
        self._reach, self._levels = model.floats("high").item(), model.floats("levels", -1)
        self._linear = model.floats("linear", features, len(self._levels))
        self._intercept = model.floats("intercept", len(self._levels))

    def share(self, corpus: NDArray[np.float32]) -> float:
        """In [0, 1] for the corpus features of a query, shape (features,)."""
        standard = ((corpus - self._mean) / self._scale).clip(-self._reach, self._reach)
        promised = standard @ self._linear + self._intercept
        likely = np.exp(promised - promised.max())
        return float(likely @ self._levels / likely.sum())
