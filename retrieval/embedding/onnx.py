"""The bundled embedder: a BERT encoder in ONNX Runtime, no network and no torch."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from retrieval.embedding.encoder import (
    Inputs,
    batch_inputs,
    batches_by_length,
    encode,
    encode_batch,
    give_back,
    open_session,
)
from retrieval.embedding.query_thread import QueryThread

MODEL_NAME = "all-MiniLM-L6-v2"
DIMENSIONS = 384
MAX_PIECES = 256

REST_S = 1.0
"""How long no documents have come when the memory that they took is given back."""


class OnnxEmbedder:
    """Embeds on this machine's processor; satisfies `retrieval.embedding.base.Embedder`.

    One session serves all: a run takes one thread, and runs go side by side, each on the thread
    that calls it. That costs less than several threads within a run, which wait for each other at
    every operator. A query has a thread of its own, so that it never waits behind an ingest
    batch; documents have `document_threads`, and calls that come together take turns batch by batch.

    A text longer than 256 word pieces is cut there. Every text, even an empty one or one whose
    words are all unknown, gives a finite unit vector.
    """

    model: str = MODEL_NAME
    dimensions: int = DIMENSIONS

    def __init__(self, model_path: Path, tokenizer_path: Path, *, document_threads: int) -> None:
        """Load the tokenizer and the model (about 0.1 s).

        Args:
            model_path: ONNX file with inputs `input_ids` and `attention_mask`, int64 of shape
                (batch, seq), and output `embedding`, unit rows of shape (batch, 384).
            tokenizer_path: the `tokenizers` JSON that goes with it.
            document_threads: document batches that are computed side by side, at least 1.

        Raises:
            ValueError: `document_threads` is below 1.
            FileNotFoundError: one of the two files is missing.
        """
        if document_threads < 1:
            raise ValueError(f"document_threads must be at least 1, got {document_threads}")
        for path in (model_path, tokenizer_path):
            if not path.is_file():
                raise FileNotFoundError(f"no embedding model at {path}")
        self._tokenizer = Tokenizer.from_file(str(tokenizer_path))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=MAX_PIECES)
        self._session = open_session(model_path, threads=1)
        self._query_thread = QueryThread(self._encode_query, name="embed-query")
        self._document_threads = ThreadPoolExecutor(document_threads, thread_name_prefix="embed-documents")
        self._side_by_side = document_threads
        self._calls = 0
        self._rest: asyncio.TimerHandle | None = None

    def embed_query(self, text: str) -> asyncio.Future[NDArray[np.float32]]:
        """Embed one text as a unit vector of shape (384,); it is on its way before anybody waits for it."""
        # Here, and not in the thread: that would have to wait for the interpreter's lock once more.
        return self._query_thread(batch_inputs([self._tokenizer.encode(text).ids]))

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit rows of shape (len(texts), 384), order kept."""
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        if not texts:
            return vectors
        loop = asyncio.get_running_loop()
        waiting: deque[list[int]] = deque()

        async def one_after_another() -> None:
            while waiting:
                rows = waiting.popleft()
                batch = [pieces[row] for row in rows]
                vectors[rows] = await loop.run_in_executor(self._document_threads, encode_batch, self._session, batch)

        self._begin()
        try:
            pieces = await loop.run_in_executor(self._document_threads, self._pieces, list(texts))
            waiting.extend(batches_by_length(pieces))
            await asyncio.gather(*(one_after_another() for _ in range(min(self._side_by_side, len(waiting)))))
        finally:
            waiting.clear()
            self._end(loop)
        return vectors

    async def warm_up(self) -> None:
        """Run one query, so that the first real one does not pay for allocations."""
        await self.embed_query("warm up")

    async def aclose(self) -> None:
        """Stop all threads once the batches under way, if any, are done; drop what still waits."""
        self._do_not_rest()
        self._document_threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.gather(self._query_thread.aclose(), asyncio.to_thread(self._document_threads.shutdown))

    def _begin(self) -> None:
        """Note that documents have come."""
        self._calls += 1
        self._do_not_rest()

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        """Note that some are done; see to it that memory is given back unless others come."""
        self._calls -= 1
        if not self._calls:
            self._rest = loop.call_later(REST_S, self._give_back)

    def _do_not_rest(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _give_back(self) -> None:
        with contextlib.suppress(RuntimeError):  # it was closed meanwhile
            self._document_threads.submit(give_back, self._session)

    def _encode_query(self, inputs: Inputs) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = encode(self._session, inputs)[0]
        return vector

    def _pieces(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
