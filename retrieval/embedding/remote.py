"""Embedders on other servers: OpenAI and compatible ones, Ollama, Google."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from math import inf
from typing import Any, Final, NamedTuple

import httpx
import msgspec
import numpy as np
from numpy.typing import NDArray

from retrieval.embedding.cache import Embedder
from retrieval.embedding.onnx import DIMENSIONS
from retrieval.errors import EmbeddingFailed
from retrieval.settings import Settings
from retrieval.tasks import share_out

MOST_BYTES = 8_000
"""Most bytes of UTF-8 sent per text; what follows them is found only by its words.

The models take 2,048 tokens (Google) or 8,191 (OpenAI), and a token has at least one byte, in English four.
"""

BATCH_TEXTS = 100
"""Most texts in one request: Google's limit."""

BATCH_BYTES = 250_000
"""Most bytes in one request, below OpenAI's limit of 300,000 tokens."""

REQUESTS_AT_ONCE = 4
"""Concurrent requests of one call with documents."""

QUERY_TIMEOUT_S = 10.0
DOCUMENTS_TIMEOUT_S = 60.0
"""Longest silence of the provider; its whole answer may take twice as long."""

MOST_ANSWER_BYTES = 32 * 1024**2
"""Longest answer that is read: vectors of 4,096 numbers for `BATCH_TEXTS` texts take 10 MB."""

PAUSES_S = (0.5, 1.0, 2.0, 4.0)
"""Pauses before each further attempt with documents."""

MOST_PAUSE_S = 30.0
"""Longest pause that a provider may request; writers do not wait longer."""

MOST_MESSAGE_CHARS = 300

BAD_PROXY = "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is not the http:// or https:// address of a proxy"

_Vectors = Sequence[Sequence[float]]


class RemoteEmbedder(Embedder):
    """Embeds by a provider over HTTP.

    A request for documents is retried a few times if the provider is rate-limited or fails, or the network does. One
    for a query is not: its leg has a deadline, and the other legs answer. Once a request has timed out, only one query
    at a time is sent to the provider, so that the others need not wait for their legs' deadline.
    """

    def __init__(self, settings: Settings) -> None:
        """Use the provider, model, URL and key of the settings; connects on the first text.

        Raises EmbeddingFailed if the environment names a proxy that cannot be used.
        """
        self.model: str = settings.embedder
        self._provider, self._key = settings.embedding_provider, settings.embedding_api_key
        self._model = str(settings.embedding_model)
        self._protocol = _PROTOCOLS[settings.embedding_provider]
        self._url = str(settings.embedding_url).rstrip("/") + self._protocol.path.format(model=self._model)
        headers = {self._protocol.key_header: self._protocol.key_prefix + self._key} if self._key else {}
        try:
            self._client = httpx.AsyncClient(headers=headers)
        except (httpx.InvalidURL, ValueError, ImportError):  # its message can have a part of the proxy's password
            raise EmbeddingFailed(BAD_PROXY) from None
        self._is_silent = False
        self._probe = asyncio.Lock()

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed one text as a unit vector of shape (DIMENSIONS,); raises EmbeddingFailed."""
        if self._is_silent and self._probe.locked():
            raise self._failed(f"does not answer at {self._url}")
        async with self._probe if self._is_silent else nullcontext():
            answer = await self._answer([_cut(text)], is_query=True, timeout_s=QUERY_TIMEOUT_S)
        if not answer.is_success:
            raise self._refused(answer)
        [vector] = self._vectors(answer, 1)
        return np.asarray(vector, np.float32)

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit rows of shape (len(texts), DIMENSIONS), in order; raises EmbeddingFailed."""
        sent = [_cut(text) for text in texts]
        vectors = np.zeros((len(sent), DIMENSIONS), np.float32)

        async def embed(rows: list[int]) -> None:
            answer = await self._insist([sent[row] for row in rows])
            vectors[rows] = self._vectors(answer, len(rows))

        await share_out(embed, list(_batches(sent)), at_once=REQUESTS_AT_ONCE)
        return vectors

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _insist(self, texts: Sequence[str]) -> httpx.Response:
        """The provider's answer for documents, after several attempts if necessary."""
        for pause_s in (*PAUSES_S, inf):
            try:
                answer = await self._answer(texts, is_query=False, timeout_s=DOCUMENTS_TIMEOUT_S)
            except EmbeddingFailed:
                if pause_s == inf:
                    raise
            else:
                asked_s = answer.headers.get("retry-after", "")
                pause_s = max(pause_s, float(asked_s) if asked_s.isdecimal() else 0.0)
                if pause_s > MOST_PAUSE_S or not (answer.status_code == 429 or answer.is_server_error):
                    break
            await asyncio.sleep(pause_s)
        if not answer.is_success:
            raise self._refused(answer)
        return answer

    async def _answer(self, texts: Sequence[str], *, is_query: bool, timeout_s: float) -> httpx.Response:
        """The provider's answer, whatever its status; raises EmbeddingFailed if there is none."""
        body = self._protocol.request(self._model, texts, is_query)
        asked = self._client.stream("POST", self._url, json=body, timeout=timeout_s)
        content = bytearray()
        try:
            async with asyncio.timeout(2 * timeout_s), asked as answer:
                async for piece in answer.aiter_bytes():
                    content += piece
                    if len(content) > MOST_ANSWER_BYTES:
                        raise self._failed(f"answered with more than {MOST_ANSWER_BYTES:,} bytes")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as exc:
            self._is_silent = isinstance(exc, httpx.TimeoutException | TimeoutError)
            raise self._failed(f"does not answer at {self._url} ({str(exc) or type(exc).__name__})") from exc
        self._is_silent = False
        # The content is decoded already: of the headers, none may be kept that says how it was encoded.
        kept = {name: value for name, value in answer.headers.items() if name == "retry-after"}
        return httpx.Response(answer.status_code, headers=kept, content=bytes(content))

    def _vectors(self, answer: httpx.Response, count: int) -> NDArray[np.float32]:
        """The unit vectors of an answer, shape (count, DIMENSIONS)."""
        try:
            rows = self._protocol.vectors(answer.content)
        except msgspec.DecodeError as exc:
            raise self._failed(f"answered with something else than embeddings ({exc})") from exc
        if len(rows) != count:
            raise self._failed(f"answered with {len(rows)} vectors for {count} texts")
        if lengths := {len(row) for row in rows} - {DIMENSIONS}:
            raise self._failed(
                f"gives vectors of {min(lengths)} numbers, and the database has room for {DIMENSIONS}: choose a model "
                f"that has {DIMENSIONS} or can shorten its vectors"
            )
        vectors = np.asarray(rows, np.float32)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(norms) & (norms > 0)).all():
            raise self._failed("answered with a vector that has no direction")
        return np.asarray(vectors / norms, np.float32)

    def _refused(self, answer: httpx.Response) -> EmbeddingFailed:
        """The error that the provider reports."""
        said = " ".join(_message(answer).split())
        return self._failed(f"answered {answer.status_code}{f': {said}' if said else ''}")

    def _failed(self, what: str) -> EmbeddingFailed:
        # Some providers repeat a rejected key in the message, or half an emoji of a text. Terminals show it, too.
        shown = (what.replace(self._key, "***") if self._key else what)[:MOST_MESSAGE_CHARS]
        printable = "".join(char if char.isprintable() else "\ufffd" for char in shown)
        return EmbeddingFailed(f"the embedding provider {self._provider} {printable}")


class _Protocol(NamedTuple):
    """A provider's API.

    Attributes:
        path: appended to the base URL; `{model}` stands for the model's name.
        key_header: the header for the key, which follows `key_prefix`.
        request: makes the body from a model, texts and whether they are a query.
        vectors: reads the vectors from an answer's body, one per text, in order; raises msgspec.DecodeError.
    """

    path: str
    key_header: str
    key_prefix: str
    request: Callable[[str, Sequence[str], bool], Mapping[str, Any]]
    vectors: Callable[[bytes], _Vectors]


class _OpenAIVector(msgspec.Struct):
    index: int
    embedding: list[float]


class _OpenAIAnswer(msgspec.Struct):
    data: list[_OpenAIVector]


def _openai_request(model: str, texts: Sequence[str], _is_query: bool) -> Mapping[str, Any]:
    return {"model": model, "input": texts, "dimensions": DIMENSIONS, "encoding_format": "float"}


def _openai_vectors(content: bytes) -> _Vectors:
    data = msgspec.json.decode(content, type=_OpenAIAnswer).data
    return [row.embedding for row in sorted(data, key=lambda row: row.index)]


class _OllamaAnswer(msgspec.Struct):
    embeddings: list[list[float]]


def _ollama_request(model: str, texts: Sequence[str], _is_query: bool) -> Mapping[str, Any]:
    return {"model": model, "input": texts, "dimensions": DIMENSIONS}


def _ollama_vectors(content: bytes) -> _Vectors:
    return msgspec.json.decode(content, type=_OllamaAnswer).embeddings


class _GoogleVector(msgspec.Struct):
    values: list[float]


class _GoogleAnswer(msgspec.Struct):
    embeddings: list[_GoogleVector]


def _google_request(model: str, texts: Sequence[str], is_query: bool) -> Mapping[str, Any]:
    common = {
        "model": f"models/{model}",
        "taskType": "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT",
        "outputDimensionality": DIMENSIONS,
    }
    return {"requests": [{**common, "content": {"parts": [{"text": text}]}} for text in texts]}


def _google_vectors(content: bytes) -> _Vectors:
    return [row.values for row in msgspec.json.decode(content, type=_GoogleAnswer).embeddings]


_PROTOCOLS: Final[Mapping[str, _Protocol]] = {
    "openai": _Protocol("/embeddings", "authorization", "Bearer ", _openai_request, _openai_vectors),
    "ollama": _Protocol("/api/embed", "authorization", "Bearer ", _ollama_request, _ollama_vectors),
    "google": _Protocol(
        "/v1beta/models/{model}:batchEmbedContents", "x-goog-api-key", "", _google_request, _google_vectors
    ),
}


def _cut(text: str) -> str:
    """The beginning of a text, at most `MOST_BYTES` long."""
    return text.encode()[:MOST_BYTES].decode(errors="ignore")


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """The row numbers of the texts for each request, in order."""
    rows, size = list[int](), 0
    for row, text in enumerate(texts):
        length = len(text.encode())
        if rows and (len(rows) == BATCH_TEXTS or size + length > BATCH_BYTES):
            yield rows
            rows, size = [], 0
        rows.append(row)
        size += length
    if rows:
        yield rows


def _message(answer: httpx.Response) -> str:
    """The message of an error: `error.message` from OpenAI and Google, `error` from Ollama."""
    text = answer.content.decode(errors="replace")
    try:
        body = answer.json()
    except (ValueError, RecursionError):
        return text
    error = body.get("error") if isinstance(body, dict) else body
    return str(error.get("message") if isinstance(error, dict) else error or text)
