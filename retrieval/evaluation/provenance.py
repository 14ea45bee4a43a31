"""What an evaluation ran on: versions and checksums, so that a figure can be made again."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import version

from retrieval.models_dir import models_dir
from retrieval.version import installed_version

_MODEL_FILES = frozenset({".onnx", ".json"})


def model_checksums() -> dict[str, str]:
    """sha256 of each bundled model and tokenizer, by its path below the folder of the models."""
    folder = models_dir()
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.suffix in _MODEL_FILES
    }


def versions() -> dict[str, str]:
    """Versions of Trivet and of what its figures depend on."""
    libraries = {name: version(name) for name in ("numpy", "onnxruntime", "tokenizers")}
    return {"trivet": installed_version(), "python": platform.python_version(), **libraries}
