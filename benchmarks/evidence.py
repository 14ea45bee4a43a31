"""Collect the legs' results for labelled queries: `python benchmarks/evidence.py FOLDER... --out evidence.jsonl`.

The input of `python -m classifier.training.leg_weights` (features, ids and gold; no text) and, with `--examples`,
that of `python -m classifier.training.rescorer` (ids, numbers and vectors of the candidates; no text).
"""

from __future__ import annotations

import argparse
import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from classifier.training.examples import Example, write_examples
from retrieval.answer.answer import Answer
from retrieval.engine import Trivet
from retrieval.evaluation.folder import EvaluationFolder, Query, read_folder
from retrieval.evaluation.runner import check_complete, ingest
from retrieval.profiles.profile import DEFAULT
from retrieval.ranking.candidates import Candidates
from retrieval.settings import Settings
from retrieval.types.search import Leg, Mode, SearchRequest

PROFILE = structs.replace(DEFAULT, rescore=False, models=structs.replace(DEFAULT.models, rescorer=None))
"""Without the rescorer: its input is collected, not its output."""


def row_of(folder: EvaluationFolder, query: Query, answer: Answer) -> dict[str, Any]:
    return {
        "set": folder.name,
        "namespace": query.namespace,
        "evidence": answer.evidence.row.tolist(),
        "rankings": ids_of(answer),
        "relevant": list(query.relevant),
        "rrf_k": round(answer.ordering.rrf_k),
    }


async def example_of(engine: Trivet, folder: EvaluationFolder, query: Query, answer: Answer) -> Example:
    known = await engine.candidate_inputs(answer)
    if known is None:
        raise RuntimeError(f"{query.id}: nothing was found")
    found = answer.fused_rankings
    candidates = Candidates.from_rankings(found)
    fused = candidates.fuse(found, PROFILE.fixed.weights, rrf_k=PROFILE.fixed.rrf_k)
    return Example(
        set=folder.name,
        namespace=query.namespace,
        type=query.type,
        relevant=frozenset(query.relevant),
        evidence=answer.evidence_by_id,
        known=known,
        fused=candidates.ids(fused.numbers),
    )


def ids_of(answer: Answer) -> dict[Leg, list[str]]:
    """The ids that each leg found, best first."""
    return {leg: [hit.id for hit in ranking.hits] for leg, ranking in answer.fused_rankings.items()}


async def collect(folders: list[Path], out: Path, examples: Path | None, limit: int, seed: int) -> None:
    """Store each folder, run its queries, write the results; queries without gold only become examples."""
    encoder = msgspec.json.Encoder()
    collected: list[Example] = []
    async with Trivet.open(Settings.from_env(), profiles={PROFILE.name: PROFILE}) as engine:
        with out.open("wb") as lines:
            for path in folders:
                folder = read_folder(path)
                names = folder.stored_name
                await check_complete(engine, folder, await ingest(engine, folder, names))
                queries = list(folder.queries)
                if len(queries) > limit:
                    queries = random.Random(seed).sample(queries, limit)
                for query in queries:
                    await engine.load(names(query.namespace))
                    request = SearchRequest(**query.search_fields, mode=Mode.ADAPTIVE)
                    answer = await engine.answer(names(query.namespace), request)
                    if answer.degraded:
                        raise RuntimeError(f"{query.id}: {answer.degraded}")
                    if query.relevant:
                        lines.write(encoder.encode(row_of(folder, query, answer)) + b"\n")
                    if examples is not None:
                        collected.append(await example_of(engine, folder, query, answer))
                print(f"{folder.name}: {len(queries)} queries", flush=True)
    if examples is not None:
        write_examples(examples, collected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path, help="rows for the weights")
    parser.add_argument("--examples", type=Path, help="examples for the rescorer")
    parser.add_argument("--limit", type=int, default=1_000, help="queries per folder (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    given = parser.parse_args()
    asyncio.run(collect(given.folders, given.out, given.examples, given.limit, given.seed))


if __name__ == "__main__":
    main()
