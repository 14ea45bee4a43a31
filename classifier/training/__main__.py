"""Train the intent classifier and write the model, its card and its checksum."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from classifier.inference import IntentClassifier
from classifier.training.calibration import softmax
from classifier.training.card import IntentFacts, render
from classifier.training.checksums import file_sha256, record_checksum
from classifier.training.data import TRAINING_FILE, read_judge, read_training, shared_texts
from classifier.training.embedder import Embed, bundled_embedder, remembering
from classifier.training.export import check_parity, export
from classifier.training.fit import learn, prepare
from classifier.training.judge import fold_answers, judge
from classifier.training.metrics import measure
from classifier.training.robustness import robustness


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentOptions:
    """Training data and output folder."""

    data: Path
    models: Path
    """Contains the embedder; receives `intent.onnx`, `intent.md` and a line in `SHA256SUMS`."""
    judge: Path | None
    """A folder of labelled queries to report on; the written model is never trained on them."""
    seed: int


def train(options: IntentOptions, embed: Embed) -> IntentFacts:
    """Train, export, verify, evaluate and write everything; the same seed gives the same bytes.

    Args:
        options: training data and output folder.
        embed: embeds texts into unit rows.

    Returns:
        The facts stated in the card.

    Raises:
        ValueError: the data are malformed or share a text with the judging set, or the exported model differs from
            scikit-learn's; then no card is written.
    """
    queries = read_training(options.data)
    judged = None if options.judge is None else read_judge(options.judge)
    if judged and (shared := shared_texts(queries, judged)):
        raise ValueError(f"{len(shared)} training texts are in the judging set, such as {shared[0]!r}")
    data = prepare(queries, embed, options.seed)
    model, held = learn(data, embed, options.seed)
    path = options.models / "intent.onnx"
    export(model, path)
    classifier = IntentClassifier(path)
    labels = data.labels[held.rows]
    folds = (
        measure(softmax(held.averaged, model.temperature), labels),
        measure(softmax(held.bare, model.bare_temperature), labels),
    )
    verdict = None
    if judged is not None:
        answers = fold_answers(queries, judged, embed, options.seed, model.temperature)
        verdict = judge(classifier, judged, embed, answers)
    facts = IntentFacts(
        queries=queries,
        data_sha256=file_sha256(options.data),
        model_sha256=file_sha256(path),
        model_bytes=path.stat().st_size,
        embedder_sha256=file_sha256(options.models / "embedder.onnx"),
        seed=options.seed,
        parity=check_parity(model, path, data.texts, data.embeddings),
        model=model,
        folds=folds,
        verdict=verdict,
        robustness=None if judged is None else robustness(classifier, judged, embed, options.seed),
    )
    (options.models / "intent.md").write_text(render(facts), encoding="utf-8")
    record_checksum(path)
    return facts


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; see `--help`."""
    parser = argparse.ArgumentParser(prog="python -m classifier.training", description=__doc__)
    models = Path(__file__).resolve().parents[2] / "models"
    parser.add_argument("--data", type=Path, default=TRAINING_FILE, help="labelled queries (default: %(default)s)")
    parser.add_argument("--models", type=Path, default=models, help="folder of models (default: %(default)s)")
    parser.add_argument("--judge", type=Path, help="evaluation folder of labelled queries to report on")
    parser.add_argument("--seed", type=int, default=20251121)
    given = parser.parse_args(arguments)
    options = IntentOptions(data=given.data, models=given.models, judge=given.judge, seed=given.seed)
    facts = train(options, remembering(bundled_embedder(options.models)))
    print(render(facts))


if __name__ == "__main__":
    main()
