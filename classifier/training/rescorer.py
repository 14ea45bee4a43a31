"""Train the rescorer of fused candidates: `python -m classifier.training.rescorer EXAMPLES.bin`.

LambdaMART over the features of `classifier/candidates.py`, with the share of its order (`rescorer_share.py`) and the
probability that a candidate is relevant (`relevance.py`), in one ONNX file. Some queries are repeated without one of
the legs, so that the failure of a leg does little harm.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from onnx import helper

from classifier.candidates import CANDIDATE_FEATURES, CANDIDATES_VERSION, CORPUS_FEATURES, FeatureMatrix, describe
from classifier.leg_weights import LEGS
from classifier.query_performance import LegScores
from classifier.training.arrays import write_graph
from classifier.training.checksums import file_sha256, fingerprint, write_card
from classifier.training.corpus_guard import NEIGHBOURS, FittedCorpusGuard, fit_corpus_guard
from classifier.training.examples import Example, only, read_examples
from classifier.training.leg_weights import held_out
from classifier.training.mixtures import fused_ids, labelled_rankings, qualities
from classifier.training.relevance import ANSWERLESS, FittedRelevance, fit_relevance
from classifier.training.relevance import TREES as RELEVANCE_TREES
from classifier.training.rescorer_share import LEVELS, REACH, TEMPERATURE, FittedShare, blend_qualities, fit_share
from classifier.training.research_sets import licence_of, may_learn_from, parse_training
from classifier.training.trees import TreeOptions, grow, tree_node

if TYPE_CHECKING:
    import lightgbm

Floats = NDArray[np.float64]

LEGLESS = 0.05
"""Share of the queries that are repeated without one of the legs."""
LEAST_EXAMPLES = 20
"""Minimum number of examples; fewer determine neither the order nor its share."""

RISING = frozenset(
    (
        *("place_vector", "place_bm25", "place_graph", "consensus"),
        *("cosine", "cosine_below", "cosine_deviations", "own", "own_below", "own_deviations"),
        *("bm25", "bm25_attained", "graph", "covered", "covered_of_best", "shared"),
    )
)
"""Features with a monotonic effect: more never lowers a candidate. The trees then cannot learn what holds only for
one kind of memories, which would make the rescorer worse on others.
"""
RISES = [name in RISING for name in CANDIDATE_FEATURES]


@dataclass(frozen=True, slots=True)
class FittedRescorer:
    """A trained rescorer before its export to ONNX."""

    booster: lightgbm.Booster
    guard: FittedCorpusGuard
    share: FittedShare
    relevance: FittedRelevance
    trees: TreeOptions


def fit(examples: Sequence[Example], trees: TreeOptions) -> FittedRescorer:
    """Fit on some queries, all sets having equal weight; the share on what each set gains from the others.

    The order is learned from the queries with relevant memories, relevance from all.
    """
    answered = [each for each in examples if each.relevant]
    predictions = left_out_predictions(answered, left_out_groups(answered), trees)
    quality = np.stack([one.qualities(each.relevant) for one, each in zip(predictions, answered, strict=True)])
    corpora = np.stack([describe(each.evidence, each.known).corpus for each in answered]).astype(np.float64)
    sets, namespaces = [each.set for each in answered], [each.namespace for each in answered]
    guard = fit_corpus_guard(corpora, sets, namespaces, seed=trees.seed)
    relevance = fit_relevance(examples, RISES, left_out_groups(examples))
    return FittedRescorer(grow_on(answered, trees), guard, fit_share(corpora, quality, sets), relevance, trees)


def shares_of(guard: FittedCorpusGuard, share: FittedShare, corpora: Floats) -> Floats:
    """How far to follow it, shape (n,): fully on memories like those trained on, on others as far as it helped."""
    unseen = share.shares(corpora)
    return unseen + (1 - unseen) * guard.in_domain(corpora)


def grow_on(examples: Sequence[Example], trees: TreeOptions) -> lightgbm.Booster:
    """Grow the trees on some queries, all sets having equal weight."""
    rng = Random(trees.seed)
    lost = [
        shorter
        for example in examples
        if rng.random() < LEGLESS and (shorter := without_leg(example, rng.choice(LEGS))) is not None
    ]
    counts = Counter(example.set for example in examples)
    everything = [*examples, *lost]
    rows = [describe(example.evidence, example.known).rows for example in everything]
    sizes = [len(each) for each in rows]
    relevant = [memory_id in example.relevant for example in everything for memory_id in example.known.ids]
    share = np.array([len(examples) / counts[example.set] / len(counts) for example in everything], np.float32)
    return grow(np.concatenate(rows), np.array(relevant, np.float32), np.repeat(share, sizes), sizes, RISES, trees)


def scores_of(booster: lightgbm.Booster, example: Example, described: FeatureMatrix) -> dict[str, float]:
    """The trees' scores of the `top_rows` candidates, by id."""
    scores = np.asarray(booster.predict(described.rows[described.top_rows]))
    ids = [example.known.ids[row] for row in described.top_rows.tolist()]
    return dict(zip(ids, scores.tolist(), strict=True))


class Prediction(NamedTuple):
    """The ids of a query in the order of adaptive fusion, and the trees' scores by id."""

    fused: list[str]
    scores: dict[str, float]

    def qualities(self, relevant: frozenset[str]) -> Floats:
        """nDCG@10 at each of `LEVELS`."""
        rescored = sorted(self.fused, key=lambda memory_id: -self.scores.get(memory_id, -np.inf))
        return blend_qualities(self.fused, rescored, relevant)


def left_out_predictions(examples: Sequence[Example], groups: Sequence[str], trees: TreeOptions) -> list[Prediction]:
    """Predictions of leg weights and trees that saw nothing of the query's group."""
    rows = [labelled_rankings(each) for each in examples]
    weights = held_out(rows, qualities(rows), groups)
    found: dict[int, Prediction] = {}
    for group in dict.fromkeys(groups):
        booster = grow_on([each for each, other in zip(examples, groups, strict=True) if other != group], trees)
        for at, example in enumerate(examples):
            if groups[at] == group:
                scores = scores_of(booster, example, describe(example.evidence, example.known))
                found[at] = Prediction(fused_ids(rows[at], weights[at]), scores)
    return [found[at] for at in range(len(examples))]


def left_out_groups(examples: Sequence[Example]) -> list[str]:
    """The group to leave out for each query: its set, or half of the only set."""
    sets = [each.set for each in examples]
    if len(set(sets)) > 1:
        return sets
    namespaces = sorted({each.namespace for each in examples})
    if len(namespaces) > 1:
        return [str(namespaces.index(each.namespace) % 2) for each in examples]
    return [str(at % 2) for at in range(len(examples))]


def without_leg(example: Example, leg: str) -> Example | None:
    """The same query as if a leg had failed; None if no other leg found anything.

    Without the vector leg the query has no embedding either, as it is the embedding that fails.
    """
    left = {memory_id for name in LEGS if name != leg for memory_id in getattr(example.evidence, name).ids}
    kept = [row for row, memory_id in enumerate(example.known.ids) if memory_id in left]
    if not kept:
        return None
    nothing = np.zeros(len(kept), np.float32)
    lost: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "vector": ({}, {"own": nothing, "mixed": nothing, "vectors": None}),
        "bm25": ({"score_upper_bound": 0.0}, {"covered": nothing, "shared": nothing, "rarest": nothing}),
        "graph": ({"entity_idfs": ()}, {}),
    }
    of_legs, of_candidates = lost[leg]
    return structs.replace(
        example,
        evidence=structs.replace(example.evidence, **of_legs | {leg: LegScores()}),
        known=structs.replace(only(example.known, kept), **of_candidates),
    )


def export(fitted: FittedRescorer, path: Path) -> None:
    """Write the model with its metadata; the same trees and numbers give the same bytes."""
    guard, share = fitted.guard, fitted.share
    constants = {
        "mean": guard.mean,
        "scale": guard.scale,
        "directions": guard.directions,
        "known": guard.known,
        "far": np.array([guard.far]),
        "span": np.array([guard.far - guard.near]),
        "zero": 0.0,
        "one": 1.0,
        "neighbours": [NEIGHBOURS],
        "columns": [1],
        "all": [0],
        "share_mean": share.mean,
        "share_scale": share.scale,
        "low": -REACH,
        "high": REACH,
        "linear": share.linear / TEMPERATURE,
        "intercept": share.intercept / TEMPERATURE,
        "levels": LEVELS,
        "slope": np.array([fitted.relevance.slope]),
        "offset": np.array([fitted.relevance.offset]),
    }
    nodes = [
        tree_node(fitted.booster, "candidates", "scores"),
        helper.make_node("Sub", ["kind", "mean"], ["centred"]),
        helper.make_node("Div", ["centred", "scale"], ["standard"]),
        helper.make_node("MatMul", ["standard", "directions"], ["placed"]),
        helper.make_node("Sub", ["known", "placed"], ["apart"]),
        helper.make_node("ReduceSumSquare", ["apart", "columns"], ["squares"], keepdims=0),
        helper.make_node("TopK", ["squares", "neighbours"], ["nearest", "which"], largest=0),
        helper.make_node("Sqrt", ["nearest"], ["distances"]),
        helper.make_node("ReduceMean", ["distances", "all"], ["away"], keepdims=1),
        helper.make_node("Sub", ["far", "away"], ["left"]),
        helper.make_node("Div", ["left", "span"], ["unclipped"]),
        helper.make_node("Clip", ["unclipped", "zero", "one"], ["familiarity"]),
        helper.make_node("Sub", ["kind", "share_mean"], ["share_centred"]),
        helper.make_node("Div", ["share_centred", "share_scale"], ["share_standard"]),
        helper.make_node("Clip", ["share_standard", "low", "high"], ["clipped"]),
        helper.make_node("Gemm", ["clipped", "linear", "intercept"], ["promised"]),
        helper.make_node("Softmax", ["promised"], ["likely"], axis=1),
        helper.make_node("MatMul", ["likely", "levels"], ["unseen"]),
        helper.make_node("Sub", ["one", "unseen"], ["rest"]),
        helper.make_node("Mul", ["rest", "familiarity"], ["known_share"]),
        helper.make_node("Add", ["unseen", "known_share"], ["share"]),
        tree_node(fitted.relevance.booster, "candidates", "relevance_logits"),
        helper.make_node("Mul", ["relevance_logits", "slope"], ["sloped"]),
        helper.make_node("Add", ["sloped", "offset"], ["calibrated"]),
        helper.make_node("Sigmoid", ["calibrated"], ["relevance"]),
    ]
    write_graph(
        path,
        "rescorer",
        nodes,
        inputs={"candidates": ["n", len(CANDIDATE_FEATURES)], "kind": [1, len(CORPUS_FEATURES)]},
        outputs={"scores": ["n", 1], "familiarity": [1], "share": [1], "relevance": ["n", 1]},
        constants=constants,
        metadata={
            "candidates_version": str(CANDIDATES_VERSION),
            "candidate_features": json.dumps(CANDIDATE_FEATURES),
            "kind_features": json.dumps(CORPUS_FEATURES),
        },
    )


def card(examples: Sequence[Example], fitted: FittedRescorer, path: Path) -> str:
    """Render the model card in Markdown."""
    counts = Counter(example.set for example in examples)
    gains = fitted.booster.feature_importance("gain")
    shares = sorted(zip(gains / gains.sum(), CANDIDATE_FEATURES, strict=True), reverse=True)[:15]
    trees = fitted.trees
    means = len(CORPUS_FEATURES)
    unseen = "\n".join(
        f"| {name} | {each.candidates} | {each.auroc:.3f} | {each.ece:.3f} | {each.answered:.3f} |"
        for name, each in fitted.relevance.figures.items()
    )
    trained_on = "\n".join(f"| {name} | {count} | {licence_of(name)} |" for name, count in counts.items())
    decisive = "\n".join(f"- {name.replace('_', ' ')} {share:.1%}" for share, name in shares)
    return f"""# {path.name}: in which order do the fused candidates answer the query?

Gradient-boosted trees (LambdaMART) over what the legs and the texts say about each candidate
(`classifier/candidates.py`), and how far their order counts: fully if the candidates resemble the memories of
the training queries, otherwise as far as it helped on held-out sets. Always built with
`python -m classifier.training.rescorer` from examples collected by `benchmarks/evidence.py`.
Held-out figures: `docs/decisions/0017-share-of-the-rescorer.md`.

- {fingerprint(path)}; licence of the numbers: that of Trivet
- {trees.trees} trees of {trees.leaves} leaves, rate {trees.rate}, seed
  {trees.seed}; {LEGLESS:.0%} of the queries repeated without one of the legs;
  every set has equal weight
- The model contains no text of the sets, only thresholds, leaf values, {means} x {len(LEVELS)} coefficients, and
  {means} means over the candidates for each of up to 300 queries per set.

| trained on | queries | licence |
|---|---|---|
{trained_on}

The most important features (share of the trees' gain):

{decisive}

## Relevance

The probability that a candidate answers the query: {RELEVANCE_TREES.trees} trees, fitted by likelihood on
the same queries, on those without an answer, and, with weight {ANSWERLESS}, on each query with its answer
removed from the candidates; calibrated on held-out sets. On held-out sets: AUROC of relevant candidates against
others, expected calibration error, and AUROC of a query's highest relevance, queries with an answer against
those without:

| held out | candidates | AUROC | calibration error | has an answer |
|---|---|---|---|---|
{unseen}

Where it fails: it sees form, not meaning (a liking is a word such as "love"); its words are English; it knows
nothing of what no leg found; on kinds of memories that it was not trained on, its order counts little.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Train on all queries of a file, or on some of its sets, and write the model and its card."""
    parser = argparse.ArgumentParser(prog="python -m classifier.training.rescorer", description=__doc__)
    parser.add_argument("examples", type=Path, help="as benchmarks/evidence.py --examples writes them")
    parser.add_argument("--seed", type=int, default=0)
    given, path = parse_training(parser, "rescorer", arguments)
    examples = [each for each in read_examples(given.examples) if may_learn_from(each.set, given)]
    if (answered := sum(bool(each.relevant) for each in examples)) < LEAST_EXAMPLES:
        parser.error(f"{given.examples} has {answered} examples to learn from; {LEAST_EXAMPLES} are needed")
    fitted = fit(examples, TreeOptions(seed=given.seed))
    export(fitted, path)
    write_card(path, card(examples, fitted, path))
    print(f"{path}: {len(examples)} queries, sha256 {file_sha256(path)}")


if __name__ == "__main__":
    main()
