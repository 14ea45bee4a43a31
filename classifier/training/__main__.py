"""Train the intent classifier and write the model, its card and its checksum."""

import argparse
from pathlib import Path

import numpy as np

from classifier.inference import IntentClassifier
from classifier.training.card import IntentFacts, render
from classifier.training.checksums import MODELS, file_sha256, write_card
from classifier.training.data import read_judge, read_training, shared_texts
from classifier.training.embedder import Embed, bundled_embedder, multilingual_embedder, remembering
from classifier.training.export import check_parity, export
from classifier.training.fit import learn, prepare
from classifier.training.judge import fold_answers, judge
from classifier.training.metrics import measure, softmax

EMBEDDERS = {"intent.onnx": bundled_embedder, "intent.multilingual.onnx": multilingual_embedder}
"""By file name of the model that reads their vectors."""


def train(embed: Embed, *, path: Path, judge_folder: Path | None, seed: int) -> str:
    """Train, export, verify, evaluate and write everything; returns the card. The same seed gives the same bytes.

    `embed` is the embedder used in serving, `path` the model, beside which its card is written, and a line in
    `SHA256SUMS`; `judge_folder` has labelled queries to report on, on which the written model is never trained. Raises
    ValueError if the data are malformed or share a text with the judging set, or if the exported model differs from
    scikit-learn's; then no card is written.
    """
    queries = read_training()
    judged = None if judge_folder is None else read_judge(judge_folder)
    if judged and (shared := shared_texts(queries, judged)):
        raise ValueError(f"{len(shared)} training texts are in the judging set, such as {shared[0]!r}")
    examples = prepare(queries, embed, seed)
    model, held = learn(examples, embed, seed)
    export(model, path)
    labels = examples.labels[held.rows]
    verdict = None
    if judged is not None:
        folds = fold_answers(queries, judged, embed, seed, model.temperature)
        verdict = judge(IntentClassifier(path), judged, embed, folds, seed)
    answers = softmax(held.averaged, model.temperature)
    spoken = np.array([queries[row].language or "" for row in held.rows])
    facts = IntentFacts(
        queries=queries,
        name=path.name,
        model_sha256=file_sha256(path),
        model_bytes=path.stat().st_size,
        seed=seed,
        parity=check_parity(model, path, examples.texts, examples.embeddings),
        model=model,
        folds=(measure(answers, labels), measure(softmax(held.bare, model.bare_temperature), labels)),
        languages={
            language: measure(answers[spoken == language], labels[spoken == language])
            for language in dict.fromkeys(query.language for query in queries if query.language)
        },
        verdict=verdict,
    )
    card = render(facts)
    write_card(path, card)
    return card


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; see `--help`."""
    parser = argparse.ArgumentParser(prog="python -m classifier.training", description=__doc__)
    parser.add_argument("--model", choices=EMBEDDERS, default="intent.onnx", help="(default: %(default)s)")
    parser.add_argument("--judge", type=Path, help="evaluation folder of labelled queries to report on")
    parser.add_argument("--seed", type=int, default=20251121)
    given = parser.parse_args(arguments)
    embed = remembering(EMBEDDERS[given.model](MODELS))
    print(train(embed, path=MODELS / given.model, judge_folder=given.judge, seed=given.seed))


if __name__ == "__main__":
    main()
