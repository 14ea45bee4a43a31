"""Searches for the nearest vectors in C threads while vectors are written, dropped and read: `make sanitize-threads`.

Under ThreadSanitizer it fails on a data race. It also compares every search without a concurrent change with the same
search in one thread.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter

import numpy as np

from native.worker_pool import WorkerPool
from retrieval.embedding.onnx import DIMENSIONS
from retrieval.index.quantized_vectors import QuantizedVectors

MEMORIES = 70_000
"""Enough for three parts, searched by several threads."""

CHANGED_AT_ONCE = 50
READERS = 4
NO_TURNS = np.empty(0, np.int64), np.empty((0, DIMENSIONS), np.float32)


class Stress:
    """Vectors of random memories, with coroutines that read and change them until a deadline."""

    def __init__(self, until: float) -> None:
        self._until = until
        self._rng = np.random.default_rng(0)
        self._vectors = QuantizedVectors(MEMORIES // 4)  # so that it grows while it is searched
        self.counts: Counter[str] = Counter()

    async def run(self) -> None:
        """Read and write concurrently."""
        workers = WorkerPool(3)
        try:
            await asyncio.gather(self._write(), *(self._search(workers) for _ in range(READERS)))
        finally:
            workers.close()

    async def _search(self, workers: WorkerPool) -> None:
        while time.monotonic() < self._until:
            mask = self._vectors.knows(np.arange(MEMORIES))
            query = self._rng.normal(size=DIMENSIONS).astype(np.float32)
            version = self._vectors.version
            docs, _ = await self._vectors.nearest(mask, query, 20, breadth=200, workers=workers)
            self.counts["searches"] += 1
            if version == self._vectors.version:
                expected, _ = await self._vectors.nearest(mask, query, 20, breadth=200)
                if docs.tolist() != expected.tolist():
                    raise AssertionError("a search in threads found others than one without")
                self.counts["compared"] += 1

    async def _write(self) -> None:
        vectors = self._vectors
        while time.monotonic() < self._until:
            docs = self._rng.choice(MEMORIES, CHANGED_AT_ONCE, replace=False)
            known = vectors.knows(docs)
            if self.counts["writes"] % 3 == 2:
                vectors.remove(docs[known])
            else:
                new = self._rng.normal(size=(CHANGED_AT_ONCE, DIMENSIONS)).astype(np.float32)
                vectors.put(docs[~known], new[~known], *NO_TURNS, version=vectors.version)
            read = np.empty((2, CHANGED_AT_ONCE, DIMENSIONS), np.float32)
            vectors.read(docs, *read)
            self.counts["writes"] += 1
            await asyncio.sleep(0.001)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (default: %(default)s)")
    stress = Stress(time.monotonic() + parser.parse_args().seconds)
    asyncio.run(stress.run())
    print(", ".join(f"{count:,} {name}" for name, count in sorted(stress.counts.items())))


if __name__ == "__main__":
    main()
