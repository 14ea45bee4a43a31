"""Filling the benchmark's namespaces, on a separate database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import msgspec
import numpy as np
import psycopg
import pytest
from pgvector.psycopg import register_vector

from benchmarks.speed import build as building
from benchmarks.speed.build import Record, bench_settings, build
from benchmarks.speed.corpus import LARGE
from benchmarks.speed.database import measure_storage
from benchmarks.speed.peers_run import stored_documents
from benchmarks.speed.plan import SMALL_MEMORIES, BenchmarkPlan
from benchmarks.speed.vectors import load_corpus
from retrieval.errors import InvalidInput
from retrieval.store.embedded.instance import running

_COUNTS = "select n.name, count(*) from namespace n join memory m on m.ns = n.ns group by 1 order by 1"
_INDEXES = "select indexdef from pg_indexes where indexdef like '%hnsw%' order by 1"


def silent(*_: object) -> AbstractContextManager[Callable[[int], None]]:
    """No display of progress."""
    return nullcontext(lambda _: None)


@pytest.mark.usefixtures("few_are_embedded")
async def test_namespaces_are_filled_once_and_the_index_is_made_again(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = bench_settings(data_dir)
    async with running(data_dir) as url:
        with psycopg.connect(url, autocommit=True) as conn:
            first = await build(settings, url, BenchmarkPlan(sizes=(60,), small=2, real=40), silent)
            expected = {"bench-60": 60, "bench-small-1": SMALL_MEMORIES, "bench-small-2": SMALL_MEMORIES}
            assert dict(conn.execute(_COUNTS).fetchall()) == expected
            indexes = conn.execute(_INDEXES).fetchall()
            assert indexes
            assert first.index_s is None  # a small number is indexed row by row

            monkeypatch.setattr(building, "INDEX_APART", 1)
            more = BenchmarkPlan(sizes=(60, 120), small=3, real=80)
            second = await build(settings, url, more, silent)
            expected |= {"bench-120": 120, "bench-small-3": SMALL_MEMORIES}
            assert dict(conn.execute(_COUNTS).fetchall()) == expected
            assert conn.execute(_INDEXES).fetchall() == indexes
            assert second.index_s is not None
            assert second.rates["bench-60"] == first.rates["bench-60"]

            _check_rows(url, data_dir)
            storage = measure_storage(url, packed_from=60)
            assert (storage.memories, storage.packed) == (330, 180)
            sizes = {table.table: table for table in storage.tables}
            counted = conn.execute("select pg_total_relation_size('namespace')").fetchone()
            assert counted == (sizes["namespace"].total,)

            # as if the run had been killed while the index was dropped
            conn.execute("drop index memory_embedding")
            record = msgspec.structs.replace(second, dropped=[row[0] for row in indexes])
            (data_dir / "bench.json").write_bytes(msgspec.json.encode(record))
            third = await build(settings, url, more, silent)
            assert conn.execute(_INDEXES).fetchall() == indexes
            kept = msgspec.json.decode((data_dir / "bench.json").read_bytes(), type=Record)
            assert third.dropped == kept.dropped == []

        with pytest.raises(InvalidInput, match="of seed 7 and version"):
            await build(settings, url, BenchmarkPlan(sizes=(60,), small=2, seed=8), silent)


def _check_rows(url: str, folder: Path) -> None:
    """The generated texts are stored, and the real vectors of the notes, which neighbours do not change."""
    made = list(load_corpus(folder, 7).memories(LARGE, 0, 120))
    documents = stored_documents(url, "bench-120")
    texts = dict(zip(documents.ids, documents.texts, strict=True))
    assert all(texts[memory.id or ""].endswith(memory.text) for memory in made)
    real = np.load(folder / "bench-vectors.npy")
    assert real.shape == (80, 384)
    rows = dict(zip(documents.ids, documents.vectors, strict=True))
    notes = [at for at, memory in enumerate(made[:80]) if memory.session_id is None]
    assert notes
    assert all(rows[f"m{at}"] @ real[at] > 0.999 for at in notes)
    with psycopg.connect(url) as conn:
        register_vector(conn)
        stored = conn.execute("select created_at, tags, metadata from memory where id = 'm7' limit 1").fetchone()
    assert stored == (made[7].created_at, made[7].tags, made[7].metadata)
