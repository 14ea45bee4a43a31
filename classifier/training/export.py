"""Exports the intent model as an ONNX graph, and checks its equality with scikit-learn's."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from classifier.features import EMBEDDING_DIM, FEATURE_DIM, FEATURES_VERSION, LEXICAL
from classifier.inference import IntentClassifier
from classifier.intents import INTENTS
from classifier.training.model import FORM_SETS, GRAM_SETS, IntentModel, Scale, encode, evidence

PARITY_TOLERANCE = 1e-4
GOLDEN_TEXTS = (
    "When did Caroline move into the flat above the bakery?",
    "Are Akira Kurosawa and Yasujiro Ozu both Japanese film directors?",
    "what kind of present would Maya like",
    "Summarise what happened with my kitchen renovation so far.",
    "",
)
_OPSET = 17
_IR_VERSION = 8


def export(model: IntentModel, path: Path) -> None:
    """Write the model with its metadata: intents, features_version and golden answers."""
    graph = _IntentGraph()
    embedded = graph.columns("row", FEATURE_DIM - 1, FEATURE_DIM)
    embedding = graph.columns("row", 0, EMBEDDING_DIM)
    lexical = graph.columns("row", EMBEDDING_DIM, LEXICAL.stop)
    sums, shares = _grams(graph, model)
    form = _sum(
        graph,
        [
            _product(graph, embedding, model.form.dense[:EMBEDDING_DIM]),
            _product(graph, lexical, model.form.dense[EMBEDDING_DIM:]),
            sums["form"],
        ],
        model.form.intercept,
    )
    bare = _sum(graph, [_product(graph, lexical, model.bare_form.dense), sums["bare_form"]], model.bare_form.intercept)
    words = _sum(graph, [sums["words"]], model.words.intercept)
    has = graph.add("Greater", embedded, np.float32(0.5))
    chosen = graph.add("Softmax", graph.add("Where", has, form, bare), axis=1)
    mean = graph.add("Mul", graph.add("Add", chosen, graph.add("Softmax", words, axis=1)), np.float32(0.5))
    temperature = graph.add("Where", has, np.float32(model.temperature), np.float32(model.bare_temperature))
    cooled = graph.add("Div", graph.add("Log", mean), temperature)
    graph.add("Softmax", cooled, axis=1, output="probabilities")
    cosines = _product(graph, embedding, model.in_domain.centroids.T)
    nearest = graph.add("ReduceMax", cosines, axes=[1], keepdims=1)
    near = _scaled(graph, graph.add("Concat", *shares, nearest, axis=1), model.in_domain.embedded)
    known = _scaled(graph, graph.add("Concat", *shares, axis=1), model.in_domain.bare)
    graph.add("Where", has, near, known, output="familiarity")
    path.write_bytes(graph.serialised(_metadata(model)))


def check_parity(model: IntentModel, path: Path, texts: Sequence[str], embeddings: NDArray[np.float32]) -> float:
    """Compare the numpy model with the exported file, through the serving code, with and without embeddings.

    Returns the largest difference of a probability or of in_domain; raises ValueError above `PARITY_TOLERANCE`.
    """
    classifier = IntentClassifier(path)
    worst = 0.0
    for embedded in (True, False):
        expected = _expected(model, texts, embeddings, embedded=embedded)
        for text, vector, row in zip(texts, embeddings, expected, strict=True):
            served = classifier.predict(text, vector if embedded else None)
            found = [*served.probabilities.values(), served.in_domain]
            worst = max(worst, float(np.abs(row - found).max()))
    if worst > PARITY_TOLERANCE:
        raise ValueError(f"{path} differs from scikit-learn by {worst}")
    return worst


def _expected(
    model: IntentModel, texts: Sequence[str], embeddings: NDArray[np.float32], *, embedded: bool
) -> NDArray[np.float64]:
    """Probabilities and in_domain from numpy, shape (n, 5)."""
    encoded = encode(texts, embeddings)
    seen = evidence(encoded, model.vocabularies, model.in_domain.centroids)
    scale = model.in_domain.embedded if embedded else model.in_domain.bare
    familiar = scale.in_domain(seen[:, : len(scale.weights)])
    return np.column_stack([model.probabilities(encoded, embedded=embedded), familiar])


def _metadata(model: IntentModel) -> dict[str, str]:
    wave = np.sin(np.arange(EMBEDDING_DIM, dtype=np.float64))
    vectors = np.tile((wave / np.linalg.norm(wave)).astype(np.float32), (len(GOLDEN_TEXTS), 1))
    without = _expected(model, GOLDEN_TEXTS, vectors, embedded=False)
    with_embedding = _expected(model, GOLDEN_TEXTS, vectors, embedded=True)
    golden = [
        {"text": text, "without": bare[:4].tolist(), "with": full[:4].tolist()}
        for text, bare, full in zip(GOLDEN_TEXTS, without, with_embedding, strict=True)
    ]
    return {"intents": json.dumps(INTENTS), "features_version": str(FEATURES_VERSION), "golden": json.dumps(golden)}


class _IntentGraph:
    """Builds a graph; values are named by number."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def add(self, operator: str, *inputs: object, output: str = "", **attributes: Any) -> str:
        """Add a node, of values by their names and of constants, and return the name of its output."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        name = output or f"value_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, names, [name], **attributes))
        return name

    def constant(self, value: object) -> str:
        """Add a constant and return its name; lists become int64, arrays keep their type."""
        array = np.array(value, dtype=np.int64) if isinstance(value, list) else np.asarray(value)
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def columns(self, value: str, start: int, end: int) -> str:
        """Some columns of a matrix."""
        return self.add("Slice", value, [start], [end], [1])

    def serialised(self, metadata: dict[str, str]) -> bytes:
        """The file's bytes; deterministic for the same nodes, constants and metadata."""
        inputs = [
            helper.make_tensor_value_info("row", TensorProto.FLOAT, [1, FEATURE_DIM]),
            *(helper.make_tensor_value_info(name, TensorProto.INT64, [1, None]) for name in GRAM_SETS),
        ]
        outputs = [
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, len(INTENTS)]),
            helper.make_tensor_value_info("familiarity", TensorProto.FLOAT, [1, 1]),
        ]
        graph = helper.make_graph(self._nodes, "trivet_intent", inputs, outputs, self._constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
        helper.set_model_props(made, metadata)
        onnx.checker.check_model(made)
        serialised: bytes = made.SerializeToString(deterministic=True)
        return serialised


def _grams(graph: _IntentGraph, model: IntentModel) -> tuple[dict[str, str], list[str]]:
    """Per member the sum of its n-gram weights, and per set the share of seen n-grams."""
    sums: dict[str, list[str]] = {"form": [], "bare_form": [], "words": []}
    shares: list[str] = []
    for name in GRAM_SETS:
        vocabulary = model.vocabularies[name]
        readers = ["words", *(("form", "bare_form") if name in FORM_SETS else ())]
        tables = [getattr(model, reader).tables[name] for reader in readers]
        idf = vocabulary.idf[:, np.newaxis]
        seen = (idf > 0).astype(np.float64)
        table = np.hstack([*(idf * each for each in tables), idf**2, seen]).astype(np.float32)
        slots = graph.add("Gather", vocabulary.slots, name, axis=0)
        rows = graph.add("Gather", table, slots, axis=0)
        total = graph.add("ReduceSum", rows, [1], keepdims=0)
        ends = np.cumsum([0, *[len(INTENTS)] * len(readers), 1, 1]).tolist()
        *found, squares, known = (graph.columns(total, start, end) for start, end in pairwise(ends))
        length = graph.add("Max", graph.add("Sqrt", squares), np.float32(1e-6))
        for reader, each in zip(readers, found, strict=True):
            sums[reader].append(graph.add("Div", each, length))
        present = graph.add("Cast", graph.add("Greater", name, np.int64(0)), to=TensorProto.FLOAT)
        count = graph.add("ReduceSum", present, [1], keepdims=1)
        shares.append(graph.add("Div", known, graph.add("Max", count, np.float32(1.0))))
    return {reader: _sum(graph, each, np.zeros(len(INTENTS))) for reader, each in sums.items()}, shares


def _product(graph: _IntentGraph, value: str, weights: NDArray[np.float64]) -> str:
    return graph.add("MatMul", value, weights.astype(np.float32))


def _sum(graph: _IntentGraph, values: Sequence[str], start: NDArray[np.float64]) -> str:
    total = graph.constant(start.astype(np.float32)[np.newaxis, :])
    for value in values:
        total = graph.add("Add", total, value)
    return total


def _scaled(graph: _IntentGraph, value: str, scale: Scale) -> str:
    """in_domain from the evidence: a piecewise linear function with a knee at `usual`, clipped to [0, 1]."""
    score = _sum(graph, [_product(graph, value, scale.weights[:, np.newaxis])], np.array([scale.intercept]))
    lines = []
    for start, end, low, high in scale.lines():
        slope = (high - low) / (end - start)
        moved = graph.add("Mul", score, np.float32(slope))
        lines.append(graph.add("Add", moved, np.float32(low - slope * start)))
    joined = graph.add("Where", graph.add("Less", score, np.float32(scale.usual)), *lines)
    return graph.add("Clip", joined, np.float32(0.0), np.float32(1.0))
