"""What each stage adds on data its models did not see: `python benchmarks/held_out.py EVIDENCE.jsonl EXAMPLES.bin`.

Both files come from one run of `benchmarks/evidence.py`. Two protocols: folds by namespace (other users and
conversations of known kinds; sets of one namespace are split by query), and each set judged by models that saw none of
it. Prints Markdown; `--json` also writes the scores of every query.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from classifier.candidates import describe
from classifier.leg_weights import LEGS
from classifier.training.corpus_guard import fit_corpus_guard
from classifier.training.examples import Example, read_examples
from classifier.training.leg_weights import folds, rows_of_sets
from classifier.training.mixtures import LabelledRankings, fused_ids, read_rows
from classifier.training.rescorer import Prediction, left_out_predictions, shares_of
from classifier.training.rescorer_share import fit_share
from classifier.training.research_sets import may_learn_from
from classifier.training.trees import TreeOptions
from retrieval.evaluation.metrics import ndcg, recall
from retrieval.profiles.gate import GateReport, Trial
from retrieval.profiles.gate import judge as judge_profile
from retrieval.profiles.profile import DEFAULT, SHIPPED, Profile
from retrieval.ranking.fusion import blend
from retrieval.significance import compare
from retrieval.types.search import Leg

PARTS = ("vector", "bm25", "graph", "fixed", "adaptive", "rescorer")
STAGES = (*PARTS, "all")
"""Each leg alone; the fusion with fixed and with adaptive weights; the rescorer's order alone; the served ranking."""

Floats = NDArray[np.float64]


def judge(
    rows: Sequence[LabelledRankings], examples: Sequence[Example], groups: Sequence[str], unseen: Sequence[Prediction]
) -> Floats:
    """Scores of all stages, shape (queries, stages, 2), each query by models that saw none of its group.

    `unseen` are the predictions of models that saw none of the query's set. The rescorer's share is fitted on those of
    the other groups, whose models may have seen the judged group.
    """
    sets = [row.set for row in rows]
    predictions = unseen if groups == sets else left_out_predictions(examples, groups, TreeOptions())
    quality = np.stack([one.qualities(each.relevant) for one, each in zip(unseen, examples, strict=True)])
    corpora = np.stack([describe(each.evidence, each.known).corpus for each in examples]).astype(np.float64)
    fixed = np.array([DEFAULT.fixed.weights[Leg(leg)] for leg in LEGS])
    scores = np.zeros((len(rows), len(STAGES), 2))
    for group in dict.fromkeys(groups):
        inside = np.array([other == group for other in groups])
        seen = [row for row, out in zip(rows, inside, strict=True) if not out]
        guard = fit_corpus_guard(corpora[~inside], [r.set for r in seen], [r.namespace for r in seen], seed=0)
        share = fit_share(corpora[~inside], quality[~inside], [row.set for row in seen])
        for at in np.flatnonzero(inside).tolist():
            row, (fused, scores_by_id) = rows[at], predictions[at]
            rescored = [scores_by_id.get(each, -np.inf) for each in fused]
            [followed] = shares_of(guard, share, corpora[[at]])
            orders = [
                *(list(ranking) for ranking in (row.rankings["vector"], row.rankings["bm25"], row.rankings["graph"])),
                fused_ids(row, fixed),
                fused,
                *([fused[n] for n in blend(rescored, by).numbers] for by in (1.0, float(followed))),
            ]
            grades = dict.fromkeys(row.relevant, 1)
            for stage, order in enumerate(orders):
                scores[at, stage] = ndcg(order, grades, cutoff=10), recall(order, grades, cutoff=10)
    return scores


def table(rows: Sequence[LabelledRankings], scores: Floats) -> str:
    """Means by set and stage with the test of `all` against the best part of the set, in Markdown."""
    lines = [
        f"| set | queries | {' | '.join(STAGES)} | all, recall@10 | all against the best part | p |",
        "|" + "---|" * (len(STAGES) + 5),
    ]
    of_set = rows_of_sets(rows)
    for name, mask in of_set.items():
        means = scores[mask, :, 0].mean(axis=0)
        best = int(means[:-1].argmax())
        (test,) = compare(scores[mask, -1, :1], scores[mask, best, :1], [name] * int(mask.sum()), seed=0)
        won = test.difference
        stages = " | ".join(f"{mean:.3f}" for mean in means)
        lines.append(
            f"| {name} | {mask.sum()} | {stages} | {scores[mask, -1, 1].mean():.3f} "
            f"| {STAGES[best]} {won.mean:+.3f} [{won.low:+.3f} {won.high:+.3f}] | {test.p_value:.4f} |"
        )
    macro = np.mean([scores[mask].mean(axis=0) for mask in of_set.values()], axis=0)
    stages = " | ".join(f"**{mean:.4f}**" for mean in macro[:, 0])
    lines.append(f"| **mean of the sets** | | {stages} | {macro[-1, 1]:.3f} | | |")
    return "\n".join(lines)


def gate(rows: Sequence[LabelledRankings], examples: Sequence[Example], scores: Floats, profile: Profile) -> GateReport:
    """The gate's report on a shipped profile: all stages against its fixed weights, on data unseen by its models."""
    beliefs = [example.evidence.probabilities for example in examples]
    trial = Trial(
        sets=[row.set for row in rows],
        intents=[max(each, key=each.__getitem__).value for each in beliefs],
        candidate=scores[:, STAGES.index("all"), 0],
        baseline=scores[:, STAGES.index("fixed"), 0],
    )
    return judge_profile(trial, candidate=profile, baseline=f"fixed weights of {profile.label}", folds=5, seed=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("evidence", type=Path)
    parser.add_argument("examples", type=Path)
    parser.add_argument("--protocol", choices=("namespaces", "sets"), action="append")
    parser.add_argument("--research", action="store_true", help="also sets that do not allow commercial use")
    parser.add_argument("--gate", type=Path, help="write the gate's report on the shipped profile into this folder")
    parser.add_argument("--json", type=Path, help="also write the scores of every query there")
    given = parser.parse_args()
    rows = read_rows(given.evidence)
    examples = [each for each in read_examples(given.examples) if each.relevant]
    if [(r.set, r.relevant) for r in rows] != [(e.set, e.relevant) for e in examples]:
        parser.error("the two files are not of one run")
    rows = [row for row in rows if may_learn_from(row.set, given)]
    examples = [example for example in examples if may_learn_from(example.set, given)]
    protocols = {"namespaces": [str(fold) for fold in folds(rows)], "sets": [row.set for row in rows]}
    unseen = left_out_predictions(examples, protocols["sets"], TreeOptions())
    everything = {}
    for name in given.protocol or protocols:
        scores = judge(rows, examples, protocols[name], unseen)
        print(f"\n## Held out: {name}\n\n{table(rows, scores)}\n", flush=True)
        everything[name] = scores[:, :, 0].tolist()
        if given.gate and name == "namespaces":
            profile = SHIPPED["research" if given.research else "default"]
            report = gate(rows, examples, scores, profile)
            content = msgspec.json.format(msgspec.json.encode(report), indent=2)
            (given.gate / f"{profile.name}.gate.json").write_bytes(content + b"\n")
    if given.json:
        given.json.write_text(json.dumps({"stages": STAGES, "sets": [row.set for row in rows], **everything}))


if __name__ == "__main__":
    main()
