"""Evaluates on queries from elsewhere: unchanged, altered, in other languages, and against texts that are not queries.

The classifier is judged without training on the judging set, and in cross-validation with the training data.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from classifier.inference import IntentClassifier, IntentPrediction
from classifier.intents import INTENTS, Intent
from classifier.training.data import DATA, LabelledQuery, json_lines, misspelt, stories
from classifier.training.embedder import Embed
from classifier.training.fit import FOLDS, fit_members, prepare
from classifier.training.metrics import IntentMetrics, measure, softmax
from classifier.training.model import encode

Value = TypeVar("Value")

JUDGE_WEIGHT = 2.0
"""Weight of a query of the judging set when it is added to the training data."""
_SLIPS = 0.15
"""Share of the words of at least four letters that get a typo."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentVerdict:
    """The results on the judging set, with embeddings unless stated otherwise."""

    with_embedding: IntentMetrics
    without_embedding: IntentMetrics
    lower_case: IntentMetrics
    """On the texts in lower case without final punctuation."""
    in_folds: IntentMetrics
    """By models also trained on the other folds of the judging set."""
    accuracy_by_source: dict[str, tuple[int, float, float]]
    """Source to (queries, accuracy unseen, accuracy in folds)."""
    errors: dict[tuple[str, str], int]
    """(source, "truth as prediction") to count, unseen."""
    familiar: float
    """Share of the queries with in_domain >= 0.8."""
    altered: dict[str, IntentMetrics]
    """By alteration of the queries."""
    languages: dict[str, tuple[int, float, float]]
    """Language to (queries, accuracy, mean in_domain), of `held_out.jsonl`."""
    strange: dict[str, tuple[int, float]]
    """Kind of text to (texts, mean in_domain), of `out_of_domain.jsonl`: texts that are not queries."""
    auroc: float
    """AUROC of in_domain, for queries against texts that are not: 1 is perfect, 0.5 is chance."""
    bare_auroc: float
    """The same without embeddings."""


def judge(
    classifier: IntentClassifier,
    queries: Sequence[LabelledQuery],
    embed: Embed,
    folds: NDArray[np.float64],
    seed: int,
) -> IntentVerdict:
    """Evaluate the classifier on labelled queries, at least one, that it was not trained on.

    `folds` is the result of `fold_answers` for them; the seed determines the typos and stories in altered queries.
    """
    labels = _labels_of(queries)
    foreign, strange = _texts("held_out.jsonl", "language"), _texts("out_of_domain.jsonl", "kind")
    full, bare = ([_predicted(classifier, texts, by) for texts in (queries, foreign, strange)] for by in (embed, None))
    hasty = [replace(query, text=query.text.lower().rstrip("?. ")) for query in queries]
    unseen = [guess.label is query.intent for query, guess in zip(queries, full[0], strict=True)]
    folded = (folds.argmax(axis=1) == labels).tolist()
    errors = Counter(
        (query.source, f"{query.intent} as {guess.label}")
        for query, guess in zip(queries, full[0], strict=True)
        if guess.label is not query.intent
    )
    spoken = [(guess.label is query.intent, guess.in_domain) for query, guess in zip(foreign, full[1], strict=True)]
    familiar = [guess.in_domain for guess in full[2]]
    return IntentVerdict(
        with_embedding=_measured(full[0], labels),
        without_embedding=_measured(bare[0], labels),
        lower_case=measure_on(hasty, classifier, embed),
        in_folds=measure(folds, labels),
        accuracy_by_source={
            source: (len(hits), *np.mean(hits, axis=0).tolist())
            for source, hits in sorted(_by_source(queries, zip(unseen, folded, strict=True)).items())
        },
        errors=dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
        familiar=float(np.mean([guess.in_domain >= 0.8 for guess in full[0]])),
        altered=_altered(classifier, queries, embed, seed),
        languages={
            name: (len(each), *np.mean(each, axis=0).tolist()) for name, each in _by_source(foreign, spoken).items()
        },
        strange={kind: (len(each), float(np.mean(each))) for kind, each in _by_source(strange, familiar).items()},
        auroc=_auroc(*full),
        bare_auroc=_auroc(*bare),
    )


def measure_on(queries: Sequence[LabelledQuery], classifier: IntentClassifier, embed: Embed) -> IntentMetrics:
    """The classifier's metrics on labelled queries."""
    return _measured(_predicted(classifier, queries, embed), _labels_of(queries))


def fold_answers(
    training: Sequence[LabelledQuery],
    queries: Sequence[LabelledQuery],
    embed: Embed,
    seed: int,
    temperature: float,
) -> NDArray[np.float64]:
    """Cross-validate the judging set, adding the training data to every fold.

    The seed determines the folds (stratified by intent) and the augmentation; the temperature is that of the model
    trained without the judging set. Returns probabilities with embedding, shape (n, 4).
    """
    labels = _labels_of(queries)
    answers = np.zeros((len(queries), len(INTENTS)))
    for seen, unseen in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(labels, labels):
        weights = [1.0] * len(training) + [JUDGE_WEIGHT] * len(seen)
        data = prepare([*training, *(queries[row] for row in seen)], embed, seed, weights=weights)
        model = fit_members(data, np.arange(len(data.labels)))
        texts = [queries[row].text for row in unseen]
        answers[unseen] = softmax(model.averaged(encode(texts, embed(texts)), embedded=True), temperature)
    return answers


def _altered(
    classifier: IntentClassifier, queries: Sequence[LabelledQuery], embed: Embed, seed: int
) -> dict[str, IntentMetrics]:
    rng = Random(seed)
    ways: dict[str, Callable[[str], str]] = {
        "as they are": lambda text: text,
        "lower case": str.lower,
        "UPPER CASE": str.upper,
        "without punctuation": lambda text: "".join(char for char in text if char.isalnum() or char in " '-"),
        f"{_SLIPS:.0%} of the longer words mistyped": lambda text: _mistyped(text, rng),
        "after a long chatty paragraph": lambda text: f"{rng.choice(stories('check'))} {text}",
    }
    found = {}
    for name, alter in ways.items():
        copies = [replace(query, text=alter(query.text)) for query in queries]
        found[name] = measure_on(copies, classifier, embed)
    return found


def _mistyped(text: str, rng: Random) -> str:
    return " ".join(misspelt(word, rng) if rng.random() < _SLIPS else word for word in text.split())


def _auroc(
    judged: Sequence[IntentPrediction], foreign: Sequence[IntentPrediction], strange: Sequence[IntentPrediction]
) -> float:
    usual = [1] * (len(judged) + len(foreign)) + [0] * len(strange)
    return float(roc_auc_score(usual, [guess.in_domain for guess in (*judged, *foreign, *strange)]))


def _texts(name: str, source: str) -> list[LabelledQuery]:
    """The texts of a file of our own, never trained on; texts that are not queries get an arbitrary intent."""
    return [
        LabelledQuery(text=row["text"], intent=Intent(row.get("intent", INTENTS[0])), source=row[source])
        for row in json_lines(DATA / name)
    ]


def _by_source(queries: Sequence[LabelledQuery], values: Iterable[Value]) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = {}
    for query, value in zip(queries, values, strict=True):
        found.setdefault(query.source, []).append(value)
    return found


def _labels_of(queries: Sequence[LabelledQuery]) -> NDArray[np.intp]:
    return np.array([INTENTS.index(query.intent) for query in queries], dtype=np.intp)


def _predicted(
    classifier: IntentClassifier, queries: Sequence[LabelledQuery], embed: Embed | None
) -> list[IntentPrediction]:
    """The classifier's predictions; without an embedder, from the words alone."""
    texts = [query.text for query in queries]
    vectors: Sequence[NDArray[np.float32] | None] = [None] * len(texts) if embed is None else list(embed(texts))
    return [classifier.predict(text, vector) for text, vector in zip(texts, vectors, strict=True)]


def _measured(predictions: Sequence[IntentPrediction], labels: NDArray[np.intp]) -> IntentMetrics:
    return measure(np.array([list(each.probabilities.values()) for each in predictions], dtype=np.float64), labels)
