"""Collect what the legs find for labelled queries: `python benchmarks/evidence.py FOLDER... --out evidence.jsonl`.

The input of `python -m classifier.training.trust`. Features, ids and gold only; no text.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec

from classifier.evidence import evidence_row
from retrieval.engine import Trivet
from retrieval.evaluation.folder import EvaluationFolder, Query, read_folder
from retrieval.evaluation.runner import Names, check_complete, ingest
from retrieval.settings import Settings
from retrieval.types import Mode, SearchRequest


async def row_of(engine: Trivet, folder: EvaluationFolder, query: Query, namespace: str) -> dict[str, Any]:
    """One query's line, from a search in mode `adaptive`."""
    answer = await engine.answer(namespace, SearchRequest(query=query.text, mode=Mode.ADAPTIVE))
    if answer.evidence is None:
        raise RuntimeError(f"{query.id}: a leg failed: {answer.degraded}")
    return {
        "set": folder.name,
        "namespace": query.namespace,
        "evidence": evidence_row(answer.evidence).tolist(),
        "rankings": {leg.value: [hit.id for hit in ranking.hits] for leg, ranking in answer.rankings.items()},
        "relevant": list(query.relevant),
        "rrf_k": answer.rrf_k,
    }


async def collect(folders: list[Path], out: Path, limit: int, seed: int) -> None:
    """Store each folder, ask its queries, write a line for each that has gold."""
    encoder = msgspec.json.Encoder()
    async with Trivet.open(Settings.from_env()) as engine:
        with out.open("wb") as lines:
            for path in folders:
                folder = read_folder(path)
                names: Names = f"eval:{folder.name}:{{}}".format
                ingestion = await ingest(engine, folder, names)
                await check_complete(engine, folder, names, ingestion)
                queries = [query for query in folder.queries if query.relevant]
                if len(queries) > limit:
                    queries = random.Random(seed).sample(queries, limit)
                for query in queries:
                    row = await row_of(engine, folder, query, names(query.namespace))
                    lines.write(encoder.encode(row) + b"\n")
                print(f"{folder.name}: {len(queries)} queries", flush=True)


def main() -> None:
    """Run from the command line; `--help` says how."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--limit", type=int, default=400, help="queries per folder (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    given = parser.parse_args()
    asyncio.run(collect(given.folders, given.out, given.limit, given.seed))


if __name__ == "__main__":
    main()
