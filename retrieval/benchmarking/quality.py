"""How well Trivet and its peers rank on evaluation folders, with the same embeddings."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from retrieval.benchmarking.cases import TOP_K
from retrieval.benchmarking.figures import Quality
from retrieval.benchmarking.peers import open_peer
from retrieval.benchmarking.peers.base import Documents
from retrieval.benchmarking.vectors import open_embedder, plain_text
from retrieval.embedding.onnx import OnnxEmbedder
from retrieval.engine import Trivet
from retrieval.evaluation.folder import EvaluationFolder, Query
from retrieval.evaluation.metrics import ndcg, recall
from retrieval.evaluation.runner import ingest, run_system
from retrieval.evaluation.served import evaluation_settings
from retrieval.evaluation.systems import System
from retrieval.settings import Settings
from retrieval.store.embedded import running
from retrieval.types import MemoryInput

TRIVET = "Trivet, adaptive"


async def measure_quality(
    settings: Settings, folder: EvaluationFolder, names: Sequence[str], *, limit: int, seed: int
) -> list[Quality]:
    """nDCG@10 and recall@10 of Trivet and of each peer on up to `limit` of a folder's queries, drawn at random."""
    judged = list(folder.judged)
    queries = random.Random(seed).sample(judged, limit) if len(judged) > limit else judged
    found = [_judge(folder.name, TRIVET, queries, await _ask_trivet(settings, folder, queries))]
    embedder = open_embedder()
    rankings: dict[str, dict[str, Sequence[str]]] = {}
    async with running(evaluation_settings(settings).data_dir) as url:
        for namespace in folder.namespaces:
            asked = [query for query in queries if query.namespace == namespace]
            if not asked:
                continue
            documents = await _documents(folder, namespace, embedder)
            vectors = [await embedder.embed_query(query.text) for query in asked]
            for name in names:
                with (
                    tempfile.TemporaryDirectory(prefix="trivet-peers-") as place,
                    open_peer(name)(documents, Path(place), url) as variants,
                ):
                    for variant in variants:
                        for query, vector in zip(asked, vectors, strict=True):
                            ranking = variant.search(query.text, vector, TOP_K)
                            rankings.setdefault(variant.name, {})[query.id] = ranking
    await embedder.aclose()
    return found + [_judge(folder.name, name, queries, answers) for name, answers in rankings.items()]


async def _ask_trivet(
    settings: Settings, folder: EvaluationFolder, queries: Sequence[Query]
) -> dict[str, Sequence[str]]:
    """Its rankings by query, from a database of its own."""

    def named(namespace: str) -> str:
        return f"eval:{folder.name}:{namespace}"

    async with Trivet.open(evaluation_settings(settings)) as engine:
        await ingest(engine, folder, named)
        answers = await run_system(engine, queries, System(name="adaptive"), named, top_k=TOP_K)
    return {answer.query.id: [memory_id for memory_id, _ in answer.ranking] for answer in answers}


async def _documents(folder: EvaluationFolder, namespace: str, embedder: OnnxEmbedder) -> Documents:
    memories = [row.memory for row in folder.corpus if row.namespace == namespace]
    accepted = [memory for memory in memories if isinstance(memory, MemoryInput) and memory.text.strip()]
    texts = [plain_text(memory) for memory in accepted]
    ids = [memory.id or "" for memory in accepted]
    return Documents(ids=ids, texts=texts, vectors=np.asarray(await embedder.embed_documents(texts), np.float32))


def _judge(dataset: str, system: str, queries: Sequence[Query], rankings: dict[str, Sequence[str]]) -> Quality:
    pairs = [(rankings[query.id], query.grades) for query in queries]
    return Quality(
        dataset=dataset,
        system=system,
        queries=len(queries),
        ndcg=fmean(ndcg(ranking, grades, cutoff=TOP_K) for ranking, grades in pairs),
        recall=fmean(recall(ranking, grades, cutoff=TOP_K) for ranking, grades in pairs),
    )
