"""Fills the namespaces through Trivet's own write path, in several processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import psutil
import psycopg
from psycopg import sql

from benchmarks.speed.corpus import LARGE, VERSION
from benchmarks.speed.plan import SMALL_MEMORIES, BenchmarkPlan, Progress, large_name, small_name
from benchmarks.speed.vectors import PreparedEmbedder, load_corpus, load_vectors, prepare
from retrieval.embedding.cache import CachedEmbedder
from retrieval.embedding.embedders import Embedders
from retrieval.engine import Trivet
from retrieval.errors import InvalidInput
from retrieval.ingest.service import Ingest
from retrieval.settings import Settings
from retrieval.store import vector_index
from retrieval.store.pool import open_pool

BATCH = 1_000
PORTION = 50_000
"""Memories between two passes of housekeeping."""

INDEX_APART = 20_000
"""Number of new memories from which the HNSW index is dropped and rebuilt: far faster than row by row."""

_ENTER_ALL = """
    update memory m set indexed = true from namespace n where n.ns = m.ns and n.next_doc > %(most)s and not m.indexed
"""
"""As after some hours of maintenance, which leaves the latest memories out of the index."""

_HNSW = """
    select c.relname, pg_get_indexdef(c.oid) from pg_class c join pg_am a on a.oid = c.relam
    where a.amname = 'hnsw' and not c.relispartition order by c.relname
"""


class Record(msgspec.Struct):
    """The state of the data folder: `filled` and `rates` by namespace, and the definitions of dropped HNSW indexes.

    The entry "small" is the number of small namespaces; `index_s` is the time of rebuilding the index.
    """

    seed: int
    version: int = 1
    filled: dict[str, int] = {}
    rates: dict[str, float] = {}
    dropped: list[str] = []
    index_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Memories of one namespace that one process writes."""

    namespace: str
    stream: int
    start: int
    stop: int


def bench_settings(folder: Path) -> Settings:
    """The embedded database of a data folder, never one that a real server uses."""
    return replace(Settings(data_dir=folder), log_level="warning")


async def build(settings: Settings, url: str, plan: BenchmarkPlan, progress: Progress) -> Record:
    """Create all namespaces of the plan; existing data are kept.

    Raises:
        InvalidInput: the folder holds data of another seed.
    """
    folder = settings.data_dir
    record = _read(folder, plan)
    await prepare(folder, plan.seed, min(plan.real, max(plan.sizes)), progress)
    _write(folder, record)
    wanted = [(large_name(size), size, [_Chunk(large_name(size), LARGE, 0, size)]) for size in plan.sizes]
    numbers = range(record.filled.get("small", 0) + 1, plan.small + 1)
    wanted.append(("small", plan.small, [_Chunk(small_name(number), number, 0, SMALL_MEMORIES) for number in numbers]))
    missing = [(name, filled, chunks) for name, filled, chunks in wanted if record.filled.get(name, 0) < filled]
    new = sum(chunk.stop for _, _, chunks in missing for chunk in chunks)
    # forked processes would share the database's connections
    processes = ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn"))
    async with Trivet.open(settings) as engine:
        async with _without_index(url, folder, record, apart=new >= INDEX_APART):
            with processes:
                for name, filled, chunks in missing:
                    record.rates[name] = await _fill(engine, processes, url, folder, plan.seed, chunks, progress)
                    record.filled[name] = filled
                    _write(folder, record)
        await engine.maintain()  # even if nothing is new: a migration may have left memories unpacked
    async with await _admin(url) as conn:  # statistics and visibility as after some time
        await conn.execute("vacuum analyze")
        await conn.execute("checkpoint")
    return record


async def _fill(
    engine: Trivet,
    processes: Executor,
    url: str,
    folder: Path,
    seed: int,
    chunks: Sequence[_Chunk],
    progress: Progress,
) -> float:
    """Write memories, with a server's housekeeping in between; returns memories per second."""
    total = sum(chunk.stop for chunk in chunks)
    title = chunks[0].namespace if len(chunks) == 1 else f"{len(chunks)} small namespaces"
    started = time.perf_counter()
    with progress(title, total) as advance:
        for portion in _portions(chunks):
            writing = [processes.submit(_write_tasks, url, folder, seed, task) for task in portion]
            for written in asyncio.as_completed(map(asyncio.wrap_future, writing)):
                advance(await written)
            await engine.maintain()
    return total / (time.perf_counter() - started)


def _portions(chunks: Sequence[_Chunk]) -> Iterator[list[list[_Chunk]]]:
    """The chunks as tasks of about a batch, grouped by the passes of housekeeping between them."""
    portion: list[list[_Chunk]] = [[]]
    memories = 0
    for chunk in chunks:
        for start in range(chunk.start, chunk.stop, BATCH):
            batch = replace(chunk, start=start, stop=min(start + BATCH, chunk.stop))
            if sum(each.stop - each.start for each in (*portion[-1], batch)) > BATCH:
                portion.append([])
            portion[-1].append(batch)
            memories += batch.stop - batch.start
            if memories >= PORTION:
                yield portion
                portion, memories = [[]], 0
    if memories:
        yield portion


def _write_tasks(url: str, folder: Path, seed: int, chunks: Sequence[_Chunk]) -> int:
    """Write a batch, or several small ones, in a separate process; returns the number of memories."""
    corpus, vectors = load_corpus(folder, seed), load_vectors(folder, seed)

    async def write() -> int:
        written = 0
        embedder = PreparedEmbedder()
        async with open_pool(url, 1) as pool:
            ingest = Ingest(pool, Embedders(CachedEmbedder(embedder, max_entries=0, max_age_s=0)))
            for chunk in chunks:
                made = list(corpus.memories(chunk.stream, chunk.start, chunk.stop))
                embedder.prepare([memory.text for memory in made], vectors.of(chunk.stream, chunk.start, made))
                results = await ingest.add(chunk.namespace, made)
                rejected = [result.error for result in results if result.status == "rejected"]
                if rejected:
                    raise InvalidInput(f"{len(rejected)} memories were rejected: {rejected[0]}")
                written += len(made)
        return written

    return asyncio.run(write())


@asynccontextmanager
async def _without_index(url: str, folder: Path, record: Record, *, apart: bool) -> AsyncIterator[None]:
    """Drop the HNSW index in the block and rebuild it afterwards, also one that an earlier run left dropped."""
    if apart:
        async with await _admin(url) as conn:
            found: Sequence[tuple[str, str]] = await (await conn.execute(_HNSW)).fetchall()
            record.dropped += [definition for _, definition in found]
            _write(folder, record)
            for name, _ in found:
                await conn.execute(sql.SQL("drop index {}").format(sql.Identifier(name)))
    yield
    if record.dropped:
        started = time.perf_counter()
        async with await _admin(url) as conn:
            await conn.execute(_ENTER_ALL, {"most": vector_index.MOST_OUTSIDE})
            for definition in record.dropped:
                # for a partitioned table the definition says ONLY, which would leave out its partitions
                await conn.execute(definition.replace(" ON ONLY ", " ON ").encode())
        record.dropped, record.index_s = [], time.perf_counter() - started
        _write(folder, record)


async def _admin(url: str) -> psycopg.AsyncConnection[Any]:
    """A connection without a statement timeout, with memory and workers to build an index."""
    conn = await psycopg.AsyncConnection.connect(url, autocommit=True)
    memory_mib = psutil.virtual_memory().total // (8 * 1024 * 1024)
    await conn.execute(
        "select set_config('maintenance_work_mem', %s, false), "
        "set_config('max_parallel_maintenance_workers', %s, false)",
        (f"{min(memory_mib, 2_048)}MB", str(os.cpu_count() or 1)),
    )
    return conn


def _read(folder: Path, plan: BenchmarkPlan) -> Record:
    path = folder / "bench.json"
    if not path.exists():
        return Record(seed=plan.seed, version=VERSION)
    record = msgspec.json.decode(path.read_bytes(), type=Record)
    if (record.seed, record.version) != (plan.seed, VERSION):
        made = f"seed {record.seed} and version {record.version}"
        raise InvalidInput(f"{path}: the data are of {made}, not {plan.seed} and {VERSION}; take another folder")
    return record


def _write(folder: Path, record: Record) -> None:
    (folder / "bench.json").write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
