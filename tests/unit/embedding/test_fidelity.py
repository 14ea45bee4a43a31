"""The bundled int8 encoder against float32 vectors stored when it was built."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval.embedding.build_onnx.card import texts_checksum
from retrieval.embedding.build_onnx.texts import FIDELITY_SEED, FIDELITY_TEXTS, sample_texts
from retrieval.embedding.onnx import OnnxEmbedder
from retrieval.installation import models_dir

REFERENCE = Path(__file__).parents[2] / "data" / "embedder_reference.npz"


def load_reference(path: Path, texts: Sequence[str]) -> NDArray[np.float32]:
    """Read unit rows written by `save_reference` for the same texts.

    Raises:
        ValueError: the file was written for other texts.
    """
    with np.load(path, allow_pickle=False) as stored:
        if str(stored["texts_sha256"]) != texts_checksum(texts):
            raise ValueError(f"{path} was written for other texts: build it anew")
        vectors: NDArray[np.float32] = stored["steps"] * stored["scale"]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


async def test_int8_vectors_stay_close_to_float32() -> None:
    """Mean cosine at least .99 over 1,000 texts, and no text far off."""
    texts = sample_texts(FIDELITY_TEXTS, FIDELITY_SEED)
    reference = load_reference(REFERENCE, texts)
    models = models_dir()
    embedder = OnnxEmbedder(models / "embedder.onnx", models / "embedder.tokenizer.json", document_threads=2)
    try:
        vectors = await embedder.embed_documents(texts)
        is_whole = np.array(embedder._pieces(texts)[1]) == 1  # the reference is of the first window alone
    finally:
        await embedder.aclose()
    cosines = np.sum(vectors * reference, axis=1)
    assert len(cosines) == 1000
    assert is_whole.sum() > 900
    assert cosines[is_whole].mean() >= 0.99
    assert cosines[is_whole].min() >= 0.97
