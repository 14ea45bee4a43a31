"""Train the leg weights on the legs' results: `python -m classifier.training.leg_weights EVIDENCE.jsonl`.

The rankings of each query determine the quality of every mixture in a grid. A ridge regression predicts these qualities
from the evidence, and the weights are the mean of the mixtures, weighted by the softmax of their predicted quality. The
regression is quadratic in the features, as the meaning of the cosine depends on BM25. Features are clipped, so
that unusual evidence moves the weights no further than the edge of the training data.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import helper
from sklearn.linear_model import Ridge

from classifier.leg_weights import LEGS
from classifier.query_performance import EVIDENCE_VERSION, FEATURES
from classifier.training.arrays import write_graph
from classifier.training.checksums import fingerprint, write_card
from classifier.training.metrics import softmax
from classifier.training.mixtures import GRID, LabelledRankings, qualities, quality_of, read_rows
from classifier.training.research_sets import licence_of, may_learn_from, parse_training

Floats = NDArray[np.float64]


ALPHA = 10.0
"""Ridge penalty; features are standardised, and the weights of all rows sum to the number of sets."""
TEMPERATURE = 0.01
"""The difference in predicted nDCG by which a mixture has e times the weight."""
REACH = 3.0
"""Standard deviations at which features are clipped."""


@dataclass(frozen=True, slots=True)
class FittedLegWeights:
    """quality = z @ linear + sum over i, j of z_i z_j quadratic[i, j] + intercept with z = clip((x - mean) / scale).

    One column of quality per mixture of the grid; `quadratic` has shape (features * features, mixtures).
    """

    mean: Floats
    scale: Floats
    linear: Floats
    quadratic: Floats
    intercept: Floats

    def weights(self, evidence: Floats) -> Floats:
        """Weights of the legs, shape (n, 3), for evidence of shape (n, features)."""
        standard = np.clip((evidence - self.mean) / self.scale, -REACH, REACH)
        products = (standard[:, :, np.newaxis] * standard[:, np.newaxis, :]).reshape(len(standard), -1)
        promised = standard @ self.linear + products @ self.quadratic + self.intercept
        return softmax(promised, TEMPERATURE) @ GRID


def fit(rows: Sequence[LabelledRankings], quality: Floats) -> FittedLegWeights:
    """Fit on some queries, all sets having equal weight; `quality` has a row per query and a column per mixture."""
    evidence = np.array([row.evidence for row in rows], np.float64)
    sets = [row.set for row in rows]
    share = np.array([1 / sets.count(name) for name in sets])
    mean = np.average(evidence, axis=0, weights=share)
    scale = np.sqrt(np.average((evidence - mean) ** 2, axis=0, weights=share)) + 1e-6
    standard = np.clip((evidence - mean) / scale, -REACH, REACH)
    # Only differences between mixtures matter, not the difficulty of the query.
    upper = np.triu_indices(len(FEATURES))
    terms = np.hstack([standard, standard[:, upper[0]] * standard[:, upper[1]]])
    ridge = Ridge(alpha=ALPHA).fit(terms, quality - quality.mean(axis=1, keepdims=True), sample_weight=share)
    linear, pairs = ridge.coef_.T[: len(FEATURES)], ridge.coef_.T[len(FEATURES) :]
    quadratic = np.zeros((len(FEATURES), len(FEATURES), len(GRID)))
    quadratic[upper] = pairs
    return FittedLegWeights(mean, scale, linear, quadratic.reshape(-1, len(GRID)), ridge.intercept_)


def folds(rows: Sequence[LabelledRankings], count: int = 5) -> list[int]:
    """The fold of each row: namespaces stay together, spread evenly per set; an only namespace is split by query."""
    rng = np.random.default_rng(0)
    place: dict[tuple[str, str], int] = {}
    for name in dict.fromkeys(row.set for row in rows):
        spaces = sorted({row.namespace for row in rows if row.set == name})
        if len(spaces) > 1:
            place |= {
                (name, spaces[int(number)]): fold % count for fold, number in enumerate(rng.permutation(len(spaces)))
            }
    return [place.get((row.set, row.namespace), number % count) for number, row in enumerate(rows)]


def held_out(rows: Sequence[LabelledRankings], quality: Floats, groups: Sequence[object]) -> Floats:
    """Weights of each row from a model fitted without its group, shape (rows, 3)."""
    weights = np.zeros((len(rows), len(LEGS)))
    for group in dict.fromkeys(groups):
        inside = np.array([other == group for other in groups])
        seen = [row for row, out in zip(rows, inside, strict=True) if not out]
        weights[inside] = fit(seen, quality[~inside]).weights(np.array([row.evidence for row in rows])[inside])
    return weights


def export(fitted: FittedLegWeights, path: Path) -> None:
    """Write the model with its metadata; the same numbers give the same bytes."""
    constants = {
        "mean": fitted.mean,
        "scale": fitted.scale,
        "low": -REACH,
        "high": REACH,
        "linear": fitted.linear / TEMPERATURE,
        "quadratic": fitted.quadratic / TEMPERATURE,
        "intercept": fitted.intercept / TEMPERATURE,
        "grid": GRID,
        "last": [2],
        "first": [1],
        "flat": [-1, len(FEATURES) ** 2],
    }
    nodes = [
        helper.make_node("Sub", ["evidence", "mean"], ["centred"]),
        helper.make_node("Div", ["centred", "scale"], ["standard"]),
        helper.make_node("Clip", ["standard", "low", "high"], ["clipped"]),
        helper.make_node("Gemm", ["clipped", "linear", "intercept"], ["straight"]),
        helper.make_node("Unsqueeze", ["clipped", "last"], ["column"]),
        helper.make_node("Unsqueeze", ["clipped", "first"], ["row"]),
        helper.make_node("Mul", ["column", "row"], ["square"]),
        helper.make_node("Reshape", ["square", "flat"], ["products"]),
        helper.make_node("Gemm", ["products", "quadratic", "straight"], ["promised"]),
        helper.make_node("Softmax", ["promised"], ["shares"], axis=1),
        helper.make_node("MatMul", ["shares", "grid"], ["weights"]),
    ]
    write_graph(
        path,
        "weights",
        nodes,
        inputs={"evidence": ["n", len(FEATURES)]},
        outputs={"weights": ["n", len(LEGS)]},
        constants=constants,
        metadata={"evidence_version": str(EVIDENCE_VERSION), "features": json.dumps(FEATURES)},
    )


def card(rows: Sequence[LabelledRankings], quality: Floats, path: Path) -> str:
    """Render the model card in Markdown."""
    best = best_fixed(rows, quality)
    systems = {
        "equal weights": np.full((len(rows), len(LEGS)), 1 / len(LEGS)),
        f"best fixed weights {', '.join(f'{share:.1f}' for share in GRID[best])}": np.tile(GRID[best], (len(rows), 1)),
        "this model, namespaces not seen": held_out(rows, quality, folds(rows)),
        "this model, sets not seen": held_out(rows, quality, [row.set for row in rows]),
    }
    scores = {
        name: np.array([quality_of(row, w) for row, w in zip(rows, ws, strict=True)]) for name, ws in systems.items()
    }
    scores["best mixture of each query (oracle)"] = quality.max(axis=1)
    sets = rows_of_sets(rows)
    table = []
    for name, values in scores.items():
        means = [values[inside].mean() for inside in sets.values()]
        table.append(f"| {name} | {np.mean(means):.3f} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
    found = "\n".join(table)
    return f"""# {path.name}: how far can each leg be trusted for this query?

A quadratic model over what the legs returned (`classifier/query_performance.py`: shares, ranks,
differences of cosines, the intents' probabilities; not a corpus's size, lengths or kind). It predicts the
weights of the vector, BM25 and graph legs in the reciprocal rank fusion. Always built with
`python -m classifier.training.leg_weights` from evidence collected by `benchmarks/evidence.py`.

- {fingerprint(path)}; licence of the numbers: that of Trivet
- ridge {ALPHA}, temperature {TEMPERATURE}, features clipped at {REACH} deviations,
  equal weight per set; {len(rows)} queries of {len(sets)} sets. The model contains none
  of their text, only {len(FEATURES)} x {len(FEATURES) + 1} x {len(GRID)} coefficients.
- Their licences: {"; ".join(f"{name} {licence_of(name)}" for name in sets)}.
- nDCG@10 by set, and the mean over the sets:

| weights | mean | {" | ".join(sets)} |
|{"---|" * (len(sets) + 2)}
{found}

Where it fails: on an unseen kind of set it does about as well as fixed weights (row "sets not seen"); the
weights of a single query can be far from its best mixture.
"""


def rows_of_sets(rows: Sequence[LabelledRankings]) -> dict[str, NDArray[np.bool_]]:
    """Masks of the rows of each set."""
    return {name: np.array([row.set == name for row in rows]) for name in dict.fromkeys(row.set for row in rows)}


def best_fixed(rows: Sequence[LabelledRankings], quality: Floats) -> int:
    """The mixture of the grid that is best for all rows, all sets having equal weight."""
    return int(np.mean([quality[inside].mean(axis=0) for inside in rows_of_sets(rows).values()], axis=0).argmax())


def main() -> None:
    """Run the command line; see `--help`."""
    parser = argparse.ArgumentParser(prog="python -m classifier.training.leg_weights", description=__doc__)
    parser.add_argument("evidence", type=Path, help="JSON lines from benchmarks/evidence.py")
    given, path = parse_training(parser, "weights")
    rows = [row for row in read_rows(given.evidence) if may_learn_from(row.set, given)]
    if len(rows_of_sets(rows)) < 2:
        parser.error(f"{given.evidence} has fewer than two sets to learn from and be held out")
    quality = qualities(rows)
    export(fit(rows, quality), path)
    text = card(rows, quality, path)
    write_card(path, text)
    print(text)


if __name__ == "__main__":
    main()
