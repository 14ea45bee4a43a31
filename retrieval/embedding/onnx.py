"""The bundled embedder: a BERT encoder in ONNX Runtime, without network or torch."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain
from math import ceil
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from tokenizers import Tokenizer

from classifier.features import EMBEDDING_DIM
from classifier.inference import open_session
from retrieval.embedding.cache import Embedder
from retrieval.embedding.encoder import batch_inputs, batches_by_length, encode, encode_batch, shrink_arena
from retrieval.errors import ModelFileError
from retrieval.installation import REMEDY, check_model_file
from retrieval.tasks import share_out
from retrieval.text.word_pieces import load_tokenizer

T = TypeVar("T")

MODEL_NAME = "all-MiniLM-L6-v2"
MODEL_FILE = "embedder.onnx"
"""The model's file name in the models' folder."""

DIMENSIONS = EMBEDDING_DIM
"""Vector length of this model, of the intent model's input and of the database's columns."""

MAX_PIECES = 256
"""Length of the model's window in word pieces, including its two markers."""

REST_SHARE = 0.25
"""Weight of all windows of a long text after the first, relative to 1 for the first.

Chat turns say at the beginning what they are about, and the learned weights rely on it: docs/decisions/0016.
"""

MAX_WINDOWS = 64
"""Most windows of a text that are embedded; of a longer text only every second, third, ... window is.

64 take 1.5 s of a processor. The 999 windows of a million characters of prose took 30 s, for a vector whose cosine to
that of 63 of them is .9998.
"""

_UNKNOWN = "[UNK]"
"""The piece for unknown characters."""

IDLE_S = 1.0
"""Idle time after the last documents before their memory is released, in seconds."""


class OnnxEmbedder(Embedder):
    """Embeds on the local CPU.

    One session serves all runs. Each run uses only the calling thread, and runs execute in parallel: that costs less
    than several threads within a run, which synchronise at every operator. Queries have their own thread, so they never
    wait behind a batch of documents. Documents have `document_threads`, and concurrent calls take turns batch by batch.

    A document longer than 256 word pieces is embedded in windows, see `bounded` and `joined_vectors`. Of a longer query
    half a window is read at each end, as its question is in the first or the last words.
    Every text, even an empty one or one of unknown words, has a finite unit vector.
    """

    model: str = MODEL_NAME

    def __init__(self, model_path: Path, tokenizer_path: Path, *, document_threads: int) -> None:
        """Load the files unless already loaded in this process; computes `document_threads` batches in parallel.

        Raises as `load_model` does, ModelFileError also if the vectors have another length; ValueError if
        `document_threads` is below 1.
        """
        if document_threads < 1:
            raise ValueError(f"document_threads must be at least 1, got {document_threads}")
        self._tokenizer, self._session, self._letters = load_model(model_path, tokenizer_path)
        dimensions = self._session.get_outputs()[0].shape[-1]
        if dimensions != DIMENSIONS:
            raise ModelFileError(
                f"{model_path} gives vectors of {dimensions} numbers; the database and the intent model of this "
                f"version of Trivet are made for {DIMENSIONS}"
            )
        self._query_thread = ThreadPoolExecutor(1, thread_name_prefix="embed-query")
        self._document_threads = ThreadPoolExecutor(document_threads, thread_name_prefix="embed-documents")
        self._parallel = document_threads
        self._calls = 0
        self._release: asyncio.TimerHandle | None = None

    def embed_query(self, text: str) -> asyncio.Future[NDArray[np.float32]]:
        """Embed one text as a unit vector of shape (DIMENSIONS,); starts at once, before it is awaited."""
        # Tokenised here rather than in the thread, which would have to acquire the GIL again.
        pieces, half = self._tokenizer.encode(text).ids, MAX_PIECES // 2
        inputs = batch_inputs([pieces if len(pieces) <= MAX_PIECES else pieces[:half] + pieces[-half:]])
        return asyncio.get_running_loop().run_in_executor(self._query_thread, lambda: encode(self._session, inputs)[0])

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit rows of shape (len(texts), DIMENSIONS), in order."""
        loop = asyncio.get_running_loop()

        async def encode_rows(rows: list[int]) -> None:
            batch = [pieces[row] for row in rows]
            vectors[rows] = await loop.run_in_executor(self._document_threads, encode_batch, self._session, batch)

        self._calls += 1
        self._cancel_release()
        try:
            pieces, counts = await loop.run_in_executor(self._document_threads, self._pieces, list(texts))
            vectors = np.zeros((len(pieces), DIMENSIONS), dtype=np.float32)
            await share_out(encode_rows, list(batches_by_length(pieces)), at_once=self._parallel)
        finally:
            self._calls -= 1
            if not self._calls:
                self._release = loop.call_later(IDLE_S, self._release_memory)
        return vectors if len(pieces) == len(texts) else joined_vectors(vectors, counts, list(map(len, pieces)))

    def fragment_share(self, text: str) -> float:
        """The share of a query's letters that are single-letter pieces or unknown, in [0, 1].

        Median of our corpora: 0 to .03 for English, .05 for German and Spanish, .95 to 1 for Arabic, Chinese, Hindi,
        Japanese and Russian; the highest of 3,800 English queries is .27.
        """
        if text.isascii():  # the model was trained on English
            return 0.0
        letters = self._letters[self._tokenizer.encode(text).ids]
        return float(np.count_nonzero(letters == 1)) / float(letters.sum() or 1)

    async def warm_up(self) -> None:
        """Run one query, so that the first real one need not wait for allocations."""
        await self.embed_query("warm up")

    async def aclose(self) -> None:
        """Stop all threads after the running batches; drop waiting ones."""
        self._cancel_release()
        await stopped(self._query_thread, self._document_threads)

    def _cancel_release(self) -> None:
        if self._release is not None:
            self._release.cancel()
            self._release = None

    def _release_memory(self) -> None:
        with contextlib.suppress(RuntimeError):  # closed in the meantime
            self._document_threads.submit(shrink_arena, self._session)

    def _pieces(self, texts: list[str]) -> tuple[list[list[int]], list[int]]:
        """The windows of all texts, and the number of windows per text."""
        # One by one, which is as fast: a batch takes some hundred bytes of memory per word.
        each = [windows(encoding.ids) for text in texts for encoding in self._tokenizer.encode_batch_fast([text])]
        return list(chain.from_iterable(each)), list(map(len, each))


async def stopped(*executors: ThreadPoolExecutor) -> None:
    """Wait for the executors' threads to end, dropping work that has not started."""
    for each in executors:
        each.shutdown(wait=False, cancel_futures=True)
    await asyncio.gather(*(asyncio.to_thread(each.shutdown) for each in executors))


@cache
def load_model(model_path: Path, tokenizer_path: Path) -> tuple[Tokenizer, ort.InferenceSession, NDArray[np.int64]]:
    """A tokenizer, a model and the `piece_letters`, loaded once per process (about 0.1 s); thread-safe.

    The model is an ONNX file with inputs `input_ids` and `attention_mask`, int64 of shape (batch, seq), and output
    `embedding`, unit rows of shape (batch, DIMENSIONS). Raises FileNotFoundError if one of the two files is missing,
    ModelFileError if one is damaged or of another kind.
    """
    for path in (model_path, tokenizer_path):
        check_model_file(path)
        if not path.is_file():
            raise FileNotFoundError(f"no embedding model at {path}")
    with _named(tokenizer_path):
        tokenizer = load_tokenizer(tokenizer_path)
    with _named(model_path):
        session = open_session(model_path)
    return tokenizer, session, piece_letters(tokenizer.get_vocab())


def piece_letters(vocabulary: Mapping[str, int]) -> NDArray[np.int64]:
    """The number of letters in each piece.

    Marks, digits and punctuation do not count. An unknown piece counts as one letter.

    >>> piece_letters({"[CLS]": 0, "[UNK]": 1, "house": 2, "##s": 3, "?": 4}).tolist()
    [0, 1, 5, 1, 0]
    """
    letters = np.zeros(max(vocabulary.values()) + 1, np.int64)
    for piece, number in vocabulary.items():
        letters[number] = len(body) if (body := piece.removeprefix("##")).isalpha() else piece == _UNKNOWN
    return letters


def windows(pieces: list[int]) -> list[list[int]]:
    """The windows of word pieces to embed, of at most `MAX_PIECES` each.

    Each has the first and the last piece, the markers of a text's ends.

    >>> [len(window) for window in windows([101, *range(600), 102])]
    [256, 256, 94]
    """
    if len(pieces) <= MAX_PIECES:
        return [pieces]
    step = MAX_PIECES - 2
    return [
        [pieces[0], *pieces[start : min(start + step, len(pieces) - 1)], pieces[-1]]
        for start in bounded(range(1, len(pieces) - 1, step))
    ]


def bounded(windows: Sequence[T]) -> Sequence[T]:
    """At most `MAX_WINDOWS` of a text's windows: the first, and others evenly spread over the text.

    >>> bounded(range(64)), bounded(range(65))
    (range(0, 64), range(0, 65, 2))
    """
    return windows[:: ceil(len(windows) / MAX_WINDOWS)]


def joined_vectors(vectors: NDArray[np.float32], counts: Sequence[int], weights: Sequence[int]) -> NDArray[np.float32]:
    """Unit vectors of texts: unit(first window + REST_SHARE * mean of the others), the mean weighted by length.

    `vectors` have shape (windows, dimensions); `counts` are the numbers of windows per text, in order, and `weights`
    the windows' lengths. A text with one window keeps its vector; one whose sum vanishes gets its first window's.
    """
    starts = np.cumsum([0, *counts[:-1]])
    shares = np.asarray(weights, np.float32)
    rest = np.maximum(np.add.reduceat(shares, starts) - shares[starts], 1)
    shares = REST_SHARE * shares / np.repeat(rest, counts)
    shares[starts] = 1
    sums = np.add.reduceat(vectors * shares[:, None], starts, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    has_sum = (np.asarray(counts)[:, None] > 1) & (lengths > 1e-6)
    return np.asarray(np.where(has_sum, sums / np.maximum(lengths, 1e-6), vectors[starts]), np.float32)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in errors; ONNX Runtime and tokenizers raise different types for different defects."""
    try:
        yield
    except Exception as exc:
        raise ModelFileError(f"the model {path} cannot be opened ({exc}); {REMEDY}") from exc
