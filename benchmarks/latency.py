"""Latency of one search over HTTP beside a bare HNSW query on the same data, in the same run.

python benchmarks/latency.py --memories 10000

Texts are made from the sample chat: each is a message whose words are partly replaced by others of the
chat, so that lengths, names and frequencies stay those of a chat. Every query is asked once, so no
embedding comes from the cache. The two kinds of query alternate, so both meet the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib import resources
from pathlib import Path
from typing import Any

import httpx
from pgvector import HalfVector

from retrieval.embedding.onnx import OnnxEmbedder
from retrieval.models_dir import models_dir
from retrieval.store.embedded import running
from retrieval.store.pool import open_pool

NAMESPACE = "bench"

HNSW_ONLY = """
    select m.id from memory m where m.ns = (select ns from namespace where name = %(name)s)
    order by m.embedding <#> %(embedding)s limit 10
"""


def sample_rows(name: str) -> list[dict[str, Any]]:
    """The rows of one of the sample's files."""
    text = (resources.files("retrieval") / "sample" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def mixed(texts: Sequence[str], count: int, rng: random.Random, share: float) -> Iterator[str]:
    """Texts with a share of their words replaced by words of the others, as frequent there as drawn."""
    words = [word for text in texts for word in re.findall(r"\w+", text)]
    for _ in range(count):
        yield re.sub(
            r"\w+", lambda match: rng.choice(words) if rng.random() < share else match.group(), rng.choice(texts)
        )


@contextmanager
def server(data_dir: Path) -> Iterator[str]:
    """A `trivet serve` of its own; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environ = {**os.environ, "TRIVET_DATA_DIR": str(data_dir), "TRIVET_DATABASE_URL": "embedded"}
    command = [sys.executable, "-m", "retrieval.cli", "serve", "--port", str(port)]
    process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with status {process.returncode}")
            try:
                if httpx.get(f"{address}/health/ready").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(60)


def load(client: httpx.Client, count: int, rng: random.Random) -> float:
    """Store that many memories; memories per second."""
    corpus = sample_rows("corpus.jsonl")
    texts = [row["text"] for row in corpus]
    started = time.perf_counter()
    rows = list(enumerate(mixed(texts, count, rng, 0.4)))
    for at in range(0, count, 500):
        memories = [
            {
                "id": f"m{number}",
                "text": text,
                "speaker": text.partition(":")[0],
                "session_id": f"s{number // 12}",
                "position": number % 12,
                "kind": "message",
            }
            for number, text in rows[at : at + 500]
        ]
        answer = client.post(f"/v1/namespaces/{NAMESPACE}/memories", json={"memories": memories}, timeout=300)
        answer.raise_for_status()
    return count / (time.perf_counter() - started)


async def measure(address: str, data_dir: Path, queries: Sequence[str], mode: str) -> dict[str, Any]:
    """Ask every query over HTTP and as bare SQL, in turn; milliseconds."""
    models = models_dir()
    embedder = OnnxEmbedder(models / "embedder.onnx", models / "embedder.tokenizer.json", document_threads=2)
    embeddings = await embedder.embed_documents(list(queries))
    await embedder.aclose()
    http: list[float] = []
    sql: list[float] = []
    stages: dict[str, list[float]] = {}
    async with running(data_dir) as url, open_pool(url, 1) as pool, pool.connection() as conn:
        client = HTTPConnection(address.removeprefix("http://"))
        for query, embedding in zip(queries, embeddings, strict=True):
            body = json.dumps({"query": query, "mode": mode})
            started = time.perf_counter()
            client.request("POST", f"/v1/namespaces/{NAMESPACE}/search", body, {"content-type": "application/json"})
            answer = json.loads(client.getresponse().read())
            http.append((time.perf_counter() - started) * 1e3)
            if answer["degraded"]:
                raise RuntimeError(f"a leg failed: {answer['degraded']}")
            for stage, value in answer["timings_ms"].items():
                stages.setdefault(stage, []).append(value)
            started = time.perf_counter()
            cursor = await conn.execute(HNSW_ONLY, {"name": NAMESPACE, "embedding": HalfVector(embedding)})
            await cursor.fetchall()
            sql.append((time.perf_counter() - started) * 1e3)
        client.close()
    return {"http": http, "hnsw_only_sql": sql, "stages": stages}


def row(name: str, values: Sequence[float]) -> str:
    """One line of the table."""
    ordered = sorted(values)
    return f"{name:16s} p50 {statistics.median(ordered):7.2f}  p95 {ordered[int(0.95 * len(ordered))]:7.2f}"


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--mode", default="adaptive")
    parser.add_argument("--data-dir", type=Path, help="keep the data there, and use what is there")
    arguments = parser.parse_args()
    rng = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="trivet-bench-", dir="/tmp") as folder:
        data_dir = arguments.data_dir or Path(folder) / "data"
        Path(folder).chmod(0o755)
        with server(data_dir) as address, httpx.Client(base_url=address) as client:
            stored = client.get(f"/v1/namespaces/{NAMESPACE}")
            if stored.status_code == 404:
                rate = load(client, arguments.memories, rng)
                print(f"ingested {arguments.memories} memories, {rate:.0f} a second")
                time.sleep(20)  # the server packs its tail
            texts = [row["text"] for row in sample_rows("queries.jsonl")]
            queries = list(dict.fromkeys(mixed(texts, arguments.queries + 20, random.Random(11), 0.3)))
            measured = asyncio.run(measure(address, data_dir, queries, arguments.mode))
    warm = 20
    print(f"{len(queries) - warm} queries after {warm} to warm up, mode {arguments.mode}, milliseconds")
    for name in ("http", "hnsw_only_sql"):
        print(row(name, measured[name][warm:]))
    for stage, values in measured["stages"].items():
        print(row(f"  {stage}", values[warm:]))
    ratio = statistics.median(measured["http"][warm:]) / statistics.median(measured["hnsw_only_sql"][warm:])
    print(f"whole search over HTTP / bare HNSW query: {ratio:.1f}")


if __name__ == "__main__":
    main()
