"""The shipped models, loaded once for tests that assemble an engine themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from classifier.inference import IntentClassifier
from retrieval.embedding.onnx import OnnxEmbedder
from retrieval.installation import models_dir


@pytest.fixture(scope="session")
def embedder() -> Iterator[OnnxEmbedder]:
    models = models_dir()
    opened = OnnxEmbedder(models / "embedder.onnx", models / "embedder.tokenizer.json", document_threads=2)
    yield opened
    asyncio.run(opened.aclose())


@pytest.fixture(scope="session")
def classifier() -> IntentClassifier:
    return IntentClassifier(models_dir() / "intent.onnx")
