"""The bundled embedder: unit vectors, meaning, batches, truncation, threads."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from classifier.inference import open_session
from retrieval.embedding import onnx
from retrieval.embedding.cache import Embedder
from retrieval.embedding.encoder import Inputs, encode, encode_batch
from retrieval.embedding.onnx import MAX_PIECES, OnnxEmbedder, joined_vectors, windows
from retrieval.errors import TrivetError
from retrieval.installation import models_dir
from retrieval.ranking.weighting import FRAGMENTS_FROM, FRAGMENTS_TO
from tests.processes import python

MODEL = models_dir() / "embedder.onnx"
TOKENIZER = models_dir() / "embedder.tokenizer.json"


@pytest.fixture
async def embedder() -> AsyncIterator[OnnxEmbedder]:
    made = OnnxEmbedder(MODEL, TOKENIZER, document_threads=2)
    yield made
    await made.aclose()


async def test_it_is_an_embedder(embedder: OnnxEmbedder) -> None:
    provider: Embedder = embedder
    assert provider.model == "all-MiniLM-L6-v2"


@pytest.mark.parametrize("text", ["a", "", "   ", "\n\t", "🧿🧿", "\U000e0041", "今日は", "x" * 5000, "word " * 2000])
async def test_any_text_gives_a_finite_unit_vector(embedder: OnnxEmbedder, text: str) -> None:
    vector = await embedder.embed_query(text)
    assert vector.shape == (384,)
    assert vector.dtype == np.float32
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "Where does Maria live?",
        "Q x W z",
        "Müller’s Straße is überfüllt",
        "¿Dónde vive María ahora?",
        "",
        "2026–11–23",
        "—",
    ],
)
def test_words_and_signs_are_no_fragments(embedder: OnnxEmbedder, text: str) -> None:
    assert embedder.fragment_share(text) < FRAGMENTS_FROM


@pytest.mark.parametrize(
    "text", ["毛毛叫什么名字？", "猫の名前は何ですか", "Где живёт Мария?", "मारिया कहाँ रहती है", "أين تسكن ماريا"]
)
def test_what_is_read_letter_by_letter_is_in_fragments(embedder: OnnxEmbedder, text: str) -> None:
    assert embedder.fragment_share(text) > FRAGMENTS_TO


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("Where does Maria live now?", "Maria moved to Lisbon last year.", "The oven needs 220 degrees."),
        ("favourite food", "I could eat ramen every day.", "The invoice is due on Friday."),
        ("how to sort a dictionary by value", "sorted(d.items(), key=lambda kv: kv[1])", "He plays the cello."),
        ("pet animals", "We adopted two cats.", "Interest rates rose by half a point."),
    ],
)
async def test_related_texts_are_closer(embedder: OnnxEmbedder, query: str, near: str, far: str) -> None:
    vector = await embedder.embed_query(query)
    near_vector, far_vector = await embedder.embed_documents([near, far])
    assert vector @ near_vector > vector @ far_vector + 0.1


async def test_a_text_has_the_same_vector_alone_and_in_a_batch(embedder: OnnxEmbedder) -> None:
    """Ranges are fixed in the model, so neither neighbours nor padding move a vector."""
    texts = [f"note {number}: " + "the harbour was quiet " * (number % 17) for number in range(60)]
    together = await embedder.embed_documents(texts)
    alone = np.stack([await embedder.embed_query(text) for text in texts])
    assert np.sum(together * alone, axis=1).min() > 0.999


async def test_documents_keep_their_order(embedder: OnnxEmbedder) -> None:
    texts = ["a much longer sentence about the glacier in the south", "cello", "two cats and a dog", ""]
    forwards = await embedder.embed_documents(texts)
    backwards = await embedder.embed_documents(texts[::-1])
    np.testing.assert_allclose(forwards, backwards[::-1], atol=1e-2)


async def test_no_documents_give_no_rows(embedder: OnnxEmbedder) -> None:
    vectors = await embedder.embed_documents([])
    assert vectors.shape == (0, 384)
    assert vectors.dtype == np.float32


async def test_a_document_longer_than_the_window_is_the_sum_of_its_windows(embedder: OnnxEmbedder) -> None:
    """254 one-piece words fill a window between its two marks; the first counts four times as much as the rest."""
    full, rest = "cat " * 254, "volcano " * 50
    whole, first, second = await embedder.embed_documents([full + rest, full, rest])
    total = first + onnx.REST_SHARE * second
    np.testing.assert_allclose(whole, total / np.linalg.norm(total), atol=1e-6)
    assert whole @ second > first @ second + 0.02


async def test_a_document_as_long_as_the_window_is_embedded_as_before(embedder: OnnxEmbedder) -> None:
    """Its vector is the model's own, byte for byte, and of a longer query the middle is left out."""
    full = "cat " * 254
    alone, beside, _ = [
        (await embedder.embed_documents([full]))[0],
        *(await embedder.embed_documents([full, full + "volcano"])),
    ]
    pieces = embedder._tokenizer.encode(full).ids
    assert len(pieces) == MAX_PIECES
    np.testing.assert_array_equal(alone, encode_batch(embedder._session, [pieces])[0])
    np.testing.assert_allclose(beside, alone, atol=1e-6)
    short, long = ["volcano " * 127 + middle + "dentist " * 127 for middle in ("", full)]
    np.testing.assert_array_equal(await embedder.embed_query(long), await embedder.embed_query(short))


def test_windows_hold_every_piece_once() -> None:
    """In order, each between the marks, none longer than the model's window."""
    for length in (0, 1, 253, 254, 255, 508, 509, 2_000):
        pieces = [101, *range(1_000, 1_000 + length), 102]
        found = windows(pieces)
        assert [piece for window in found for piece in window[1:-1]] == pieces[1:-1]
        assert all(len(window) <= MAX_PIECES and (window[0], window[-1]) == (101, 102) for window in found)
        assert len(found) == max(1, -(-length // (MAX_PIECES - 2)))


def test_a_text_has_a_bounded_number_of_windows_from_all_of_it() -> None:
    """A million brackets are a million pieces, whose windows would take a minute and a half."""
    for length in (16_000, 17_000, 100_000, 900_000):
        found = windows([101, *range(1_000, 1_000 + length), 102])
        assert onnx.MAX_WINDOWS / 2 < len(found) <= onnx.MAX_WINDOWS
        starts = [window[1] - 1_000 for window in found]
        assert starts[0] == 0
        assert len(set(np.diff(starts).tolist())) == 1
        assert length - starts[-1] <= starts[1] + MAX_PIECES


def test_a_mean_that_vanishes_is_the_first_windows() -> None:
    """Never a vector of zeros or NaN."""
    one = np.eye(2, dtype=np.float32)[0]
    vectors = joined_vectors(np.stack([one, -one / onnx.REST_SHARE, one]), [2, 1], [5, 5, 7])
    np.testing.assert_array_equal(vectors, [one, one])


def test_the_windows_after_the_first_count_by_their_lengths() -> None:
    x, y, z = np.eye(3, dtype=np.float32)
    [vector] = joined_vectors(np.stack([x, y, z]), [3], [9, 3, 1])
    expected = np.array([1, 0.75 * onnx.REST_SHARE, 0.25 * onnx.REST_SHARE])
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), rtol=1e-6)


async def test_a_query_does_not_wait_for_documents(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if all threads for documents are busy."""
    at_work, may_end = threading.Semaphore(0), threading.Event()

    def held(*given: Any) -> Any:
        at_work.release()
        may_end.wait()
        return encode_batch(*given)

    monkeypatch.setattr(onnx, "encode_batch", held)
    documents = asyncio.create_task(embedder.embed_documents(["a passage about the sea"] * 64))
    try:
        for _ in range(2):
            await asyncio.to_thread(at_work.acquire)
        async with asyncio.timeout(60):
            await embedder.embed_query("is anyone there?")
        assert not documents.done()
    finally:
        may_end.set()
    await documents


@dataclass(frozen=True, slots=True)
class Held:
    """The encoder of queries, which waits until it may end; `lengths` of those that it began, their marks included."""

    begun: threading.Event
    may_end: threading.Event
    lengths: list[int]

    def __call__(self, session: ort.InferenceSession, inputs: Inputs) -> NDArray[np.float32]:
        self.lengths.append(inputs["input_ids"].shape[1])
        self.begun.set()
        self.may_end.wait(60)
        return encode(session, inputs)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    encoder = Held(threading.Event(), threading.Event(), [])
    monkeypatch.setattr(onnx, "encode", encoder)
    return encoder


async def test_a_query_that_is_given_up_is_not_embedded(embedder: OnnxEmbedder, held: Held) -> None:
    """And one that is cancelled while it is embedded disturbs no other."""
    vectors = [embedder.embed_query("word " * count) for count in (1, 2, 3)]
    await asyncio.to_thread(held.begun.wait, 60)
    for vector in vectors[:2]:
        vector.cancel()
    await asyncio.sleep(0)
    held.may_end.set()
    assert (await vectors[2]).shape == (onnx.DIMENSIONS,)
    assert all(vector.cancelled() for vector in vectors[:2])
    assert held.lengths == [3, 5]


async def test_queries_at_the_end(held: Held) -> None:
    """Running texts are answered, waiting ones cancelled, later ones refused."""
    embedder = OnnxEmbedder(MODEL, TOKENIZER, document_threads=1)
    first, second = embedder.embed_query("first"), embedder.embed_query("second")
    await asyncio.to_thread(held.begun.wait, 60)
    closing = asyncio.create_task(embedder.aclose())
    await asyncio.sleep(0)
    held.may_end.set()
    await closing
    assert (await first).shape == (onnx.DIMENSIONS,)
    with pytest.raises(asyncio.CancelledError):
        await second
    with pytest.raises(RuntimeError, match="after shutdown"):
        await embedder.embed_query("third")


def test_a_loop_that_ended_meanwhile_leaves_the_next_one_answered(held: Held) -> None:
    embedder = OnnxEmbedder(MODEL, TOKENIZER, document_threads=1)

    async def leave() -> None:
        embedder.embed_query("first").add_done_callback(lambda _: None)
        await asyncio.to_thread(held.begun.wait, 60)

    async def stay() -> NDArray[np.float32]:
        return await embedder.embed_query("second")

    asyncio.run(leave())
    held.may_end.set()
    assert asyncio.run(stay()).shape == (onnx.DIMENSIONS,)
    asyncio.run(embedder.aclose())


def test_threads_sleep_between_runs() -> None:
    """An idle server must not burn its processor."""
    options = open_session(MODEL).get_session_options()
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert options.get_session_config_entry("session.inter_op.allow_spinning") == "0"


async def test_calls_side_by_side_give_what_they_give_alone(embedder: OnnxEmbedder) -> None:
    """Batches of several calls run at the same time in one session; none gets another's rows."""
    calls = [[f"writer {writer} notes {number} " * (number + 1) for number in range(20)] for writer in range(4)]
    together = await asyncio.gather(*(embedder.embed_documents(texts) for texts in calls))
    for texts, vectors in zip(calls, together, strict=True):
        np.testing.assert_allclose(vectors, await embedder.embed_documents(texts), atol=1e-6)


GIVEN_BACK = f"""
import asyncio, psutil
from pathlib import Path
from native import malloc
from retrieval.embedding import onnx

def resident():
    return psutil.Process().memory_info().rss

async def main():
    onnx.IDLE_S = 0.05
    malloc.limit_free_memory()  # as a server does
    embedder = onnx.OnnxEmbedder(Path({str(MODEL)!r}), Path({str(TOKENIZER)!r}), document_threads=8)
    malloc.trim_heap()  # as well; else what is free by now would serve the documents, too
    before, query = resident(), await embedder.embed_query("harbour")
    long = ["word " * 254] * 16
    vectors = await embedder.embed_documents(long)
    taken = resident() - before
    assert taken > 30 * 2**20, taken
    for _ in range(400):
        if (kept := resident() - before) < taken / 3:
            break
        await asyncio.sleep(0.05)
    assert kept < taken / 3, (kept, taken)
    assert (await embedder.embed_query("harbour") == query).all()
    assert (await embedder.embed_documents(long) == vectors).all()
    await embedder.aclose()

asyncio.run(main())
"""


def test_memory_that_documents_took_is_given_back() -> None:
    """Once no others come for a while; what is asked afterwards has the same answer.

    In a process of its own, where nothing else takes memory meanwhile.
    """
    python("-c", GIVEN_BACK)


async def test_memory_is_kept_while_documents_come(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given back once, after the last of them, and not after the embedder is closed."""
    given_back: list[object] = []
    timers: list[asyncio.TimerHandle] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def noting(delay_s: float, callback: Any, *given: Any) -> asyncio.TimerHandle:
        timer = call_later(delay_s, callback, *given)
        if delay_s == onnx.IDLE_S:
            timers.append(timer)
        return timer

    monkeypatch.setattr(loop, "call_later", noting)
    monkeypatch.setattr(onnx, "IDLE_S", 3_600.0)
    monkeypatch.setattr(onnx, "shrink_arena", given_back.append)
    for _ in range(5):
        await asyncio.gather(*(embedder.embed_documents(["boats"]) for _ in range(3)))
    assert [timer.cancelled() for timer in timers] == [True] * (len(timers) - 1) + [False]
    monkeypatch.setattr(onnx, "IDLE_S", 0.0)
    await embedder.embed_documents(["boats"])
    async with asyncio.timeout(60):
        while True:
            if given_back:
                break
            await asyncio.sleep(0.01)
    assert len(given_back) == 1
    monkeypatch.setattr(onnx, "IDLE_S", 3_600.0)
    await embedder.embed_documents(["boats"])
    await embedder.aclose()
    assert timers[-1].cancelled()
    assert len(given_back) == 1


async def test_a_cancelled_call_leaves_the_others(embedder: OnnxEmbedder) -> None:
    """Its batches are dropped; texts batched with it are embedded."""
    dropped = asyncio.create_task(embedder.embed_documents(["a long passage about the sea " * 40] * 400))
    await asyncio.sleep(0.05)
    dropped.cancel()
    async with asyncio.timeout(120):
        assert (await embedder.embed_documents(["a short note"])).shape == (1, 384)
    with pytest.raises(asyncio.CancelledError):
        await dropped


async def test_closing_twice_is_harmless() -> None:
    embedder = OnnxEmbedder(MODEL, TOKENIZER, document_threads=1)
    await embedder.aclose()
    await embedder.aclose()


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.onnx"):
        OnnxEmbedder(tmp_path / "absent.onnx", TOKENIZER, document_threads=1)


def test_a_model_with_vectors_of_another_length_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the code's own constant would be after a change of it alone."""
    monkeypatch.setattr(onnx, "DIMENSIONS", 768)
    with pytest.raises(TrivetError, match=r"embedder\.onnx gives vectors of 384 numbers.* made for 768"):
        OnnxEmbedder(MODEL, TOKENIZER, document_threads=1)


def test_nothing_is_reported_to_the_makers_of_the_runtime(tmp_path: Path) -> None:
    """ONNX Runtime would keep what it reports under the user's cache folder."""
    program = f"""
from pathlib import Path
from retrieval.embedding.onnx import OnnxEmbedder
OnnxEmbedder(Path({str(MODEL)!r}), Path({str(TOKENIZER)!r}), document_threads=1)
"""
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []


def test_documents_need_a_thread() -> None:
    with pytest.raises(ValueError, match="document_threads"):
        OnnxEmbedder(MODEL, TOKENIZER, document_threads=0)
