"""The bundled int8 encoder against float32 vectors stored when it was built."""

from pathlib import Path

import numpy as np

from retrieval.embedding.build_onnx.fidelity import load_reference
from retrieval.embedding.build_onnx.texts import FIDELITY_SEED, FIDELITY_TEXTS, sample_texts
from retrieval.embedding.onnx import OnnxEmbedder
from retrieval.models_dir import models_dir

REFERENCE = Path(__file__).parents[1] / "data" / "embedder_reference.npz"


async def test_int8_vectors_stay_close_to_float32() -> None:
    """Mean cosine at least .99 over 1,000 texts, and no text far off."""
    texts = sample_texts(FIDELITY_TEXTS, FIDELITY_SEED)
    reference = load_reference(REFERENCE, texts)
    models = models_dir()
    embedder = OnnxEmbedder(models / "embedder.onnx", models / "embedder.tokenizer.json", document_threads=2)
    try:
        vectors = await embedder.embed_documents(texts)
    finally:
        await embedder.aclose()
    cosines = np.sum(vectors * reference, axis=1)
    assert len(cosines) == 1000
    assert cosines.mean() >= 0.99
    assert cosines.min() >= 0.97
