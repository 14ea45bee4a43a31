"""What each stage is worth on data its models did not see: `python benchmarks/held_out.py EVIDENCE.jsonl EXAMPLES.bin`.

Both files as `benchmarks/evidence.py` writes them in one run. Two protocols: folds by namespace (other users and
conversations of kinds that were seen; sets of one namespace by query), and each set judged by models that saw none of
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

from classifier.leg_weights import LEGS
from classifier.training.examples import Example, read_examples
from classifier.training.leg_weights import best_fixed, folds, held_out, rows_of_sets
from classifier.training.mixtures import GRID, LabelledRankings, qualities, read_rows
from classifier.training.rescorer import fit
from classifier.training.research_sets import PERMISSIVE
from classifier.training.trees import TreeOptions
from retrieval.evaluation.metrics import ndcg, recall
from retrieval.profiles.gate import GateReport, Trial
from retrieval.profiles.gate import judge as judge_profile
from retrieval.profiles.profile import DEFAULT, SHIPPED, Profile
from retrieval.ranking.fusion import blend_rankings, weighted_rrf
from retrieval.significance import compare
from retrieval.types.search import Leg

STAGES = ("fixed", "adaptive", "fixed + rescorer", "all")
Floats = NDArray[np.float64]


def fused(row: LabelledRankings, weights: Sequence[float]) -> list[str]:
    by_leg = {Leg(leg): weight for leg, weight in zip(LEGS, weights, strict=True)}
    rankings = {Leg(leg): list(ids) for leg, ids in row.rankings.items()}
    return [each.id for each in weighted_rrf(rankings, by_leg, rrf_k=row.rrf_k)]


def judge(
    rows: Sequence[LabelledRankings], examples: Sequence[Example], quality: Floats, groups: Sequence[object]
) -> Floats:
    """Scores of all stages, shape (queries, stages, 2), each query by models that saw none of its group."""
    learned = held_out(rows, quality, groups)
    fixed = [DEFAULT.fixed.weights[Leg(leg)] for leg in LEGS]
    scores = np.zeros((len(rows), len(STAGES), 2))
    for group in dict.fromkeys(groups):
        seen = [example for example, other in zip(examples, groups, strict=True) if other != group]
        fitted = fit(seen, TreeOptions())
        for at, (row, example) in enumerate(zip(rows, examples, strict=True)):
            if groups[at] != group:
                continue
            rescored = fitted.rescore(example)
            trust = rescored.in_domain
            guarded = [(1 - trust) * one + trust * other for one, other in zip(fixed, learned[at], strict=True)]
            orders = [fused(row, weights) for weights in (fixed, list(learned[at]), fixed, guarded)]
            for stage, order in enumerate(orders):
                if stage >= 2:
                    order = [
                        order[number] for number in blend_rankings(order, rescored.scores, rescored.confidence).numbers
                    ]
                grades = dict.fromkeys(row.relevant, 1)
                scores[at, stage] = ndcg(order, grades, cutoff=10), recall(order, grades, cutoff=10)
        print(f"<!-- judged {group} -->", flush=True)
    return scores


def table(rows: Sequence[LabelledRankings], scores: Floats, best_fixed: Floats) -> str:
    """Means by set and stage with the test of `all` against the fixed weights, in Markdown."""
    of_set = rows_of_sets(rows)
    lines = [
        f"| set | queries | {' | '.join(STAGES)} | all, recall@10 | all against fixed | p |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, mask in of_set.items():
        (test,) = compare(scores[mask, 3, :1], scores[mask, 0, :1], [name] * int(mask.sum()), seed=0)
        won = test.difference
        stages = " | ".join(f"{mean:.3f}" for mean in scores[mask, :, 0].mean(axis=0))
        lines.append(
            f"| {name} | {mask.sum()} | {stages} | {scores[mask, 3, 1].mean():.3f} | "
            f"{won.mean:+.3f} [{won.low:+.3f} {won.high:+.3f}] | {test.p_value:.4f} |"
        )
    macro = np.mean([scores[mask].mean(axis=0) for mask in of_set.values()], axis=0)
    stages = " | ".join(f"**{mean:.4f}**" for mean in macro[:, 0])
    lines.append(f"| **mean of the sets** | | {stages} | {macro[3, 1]:.3f} | {macro[3, 0] - macro[0, 0]:+.4f} | |")
    best = np.mean([best_fixed[mask].mean() for mask in of_set.values()])
    lines.append(f"\nBest fixed weights of the grid, chosen on all these queries: {best:.4f}")
    return "\n".join(lines)


def gate(rows: Sequence[LabelledRankings], examples: Sequence[Example], scores: Floats, profile: Profile) -> GateReport:
    """The gate's report on a shipped profile: all stages against its fixed weights, on what its models had not seen."""
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
    parser.add_argument("--permissive", action="store_true", help="only sets whose licence allows commercial use")
    parser.add_argument("--gate", type=Path, help="write the gate's report on the shipped profile into this folder")
    parser.add_argument("--json", type=Path, help="also write the scores of every query there")
    given = parser.parse_args()
    rows, examples = read_rows(given.evidence), read_examples(given.examples)
    if [(r.set, r.relevant) for r in rows] != [(e.set, e.relevant) for e in examples]:
        parser.error("the two files are not of one run")
    if given.permissive:
        rows = [row for row in rows if row.set in PERMISSIVE]
        examples = [example for example in examples if example.set in PERMISSIVE]
    quality = qualities(rows)
    best = best_fixed(rows, quality)
    print(f"best fixed weights: {GRID[best]}")
    protocols: dict[str, Sequence[object]] = {"namespaces": folds(rows), "sets": [row.set for row in rows]}
    everything = {}
    for name in given.protocol or protocols:
        scores = judge(rows, examples, quality, protocols[name])
        print(f"\n## Held out: {name}\n\n{table(rows, scores, quality[:, best])}\n", flush=True)
        everything[name] = scores[:, :, 0].tolist()
        if given.gate and name == "namespaces":
            profile = SHIPPED["permissive" if given.permissive else "default"]
            report = gate(rows, examples, scores, profile)
            content = msgspec.json.format(msgspec.json.encode(report), indent=2)
            (given.gate / f"{profile.name}.gate.json").write_bytes(content + b"\n")
    if given.json:
        given.json.write_text(json.dumps({"stages": STAGES, "sets": [row.set for row in rows], **everything}))


if __name__ == "__main__":
    main()
