"""Evaluates on queries from elsewhere: as they are, altered, in other languages, and against texts that are no queries.

The classifier is judged without training on the judging set, and in cross-validation with the training data.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from classifier.inference import IntentClassifier, IntentPrediction
from classifier.intents import INTENTS, Intent
from classifier.training.data import DATA, LabelledQuery, misspelt, stories
from classifier.training.embedder import Embed
from classifier.training.fit import FOLDS, fit_members, prepare
from classifier.training.metrics import IntentMetrics, measure, softmax
from classifier.training.model import encode

JUDGE_WEIGHT = 2.0
"""Weight of a query of the judging set when it is added to the training data."""
_SLIPS = 0.15
"""Share of the words of at least four letters that get a typo."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentVerdict:
    """The results on the judging set."""

    with_embedding: IntentMetrics
    without_embedding: IntentMetrics
    lower_case: IntentMetrics
    """With embedding, on the texts in lower case without final punctuation."""
    in_folds: IntentMetrics
    """With embedding, by models also trained on the other folds of the judging set."""
    accuracy_by_source: dict[str, tuple[int, float, float]]
    """Source to (queries, accuracy unseen, accuracy in folds), with embedding."""
    errors: dict[tuple[str, str], int]
    """(source, "truth as prediction") to count, with embedding, unseen."""
    familiar: float
    """Share of the queries with in_domain >= 0.8, with embedding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Robustness:
    """Results on altered queries, other languages and texts that are not queries, with embeddings."""

    altered: dict[str, IntentMetrics]
    """By alteration of the queries."""
    languages: dict[str, tuple[int, float, float]]
    """Language to (queries, accuracy, mean in_domain)."""
    strange: dict[str, tuple[int, float]]
    """Kind of text to (texts, mean in_domain), for texts that are not queries."""
    auroc: float
    """AUROC of in_domain, for queries against texts that are not: 1 is perfect, 0.5 is chance."""
    bare_auroc: float
    """The same without embeddings."""


def judge(
    classifier: IntentClassifier,
    queries: Sequence[LabelledQuery],
    embed: Embed,
    folds: NDArray[np.float64],
) -> IntentVerdict:
    """Evaluate the classifier on labelled queries, at least one, that it was not trained on.

    Args:
        classifier: the model in serving form.
        queries: the judging set.
        embed: embeds texts into unit rows.
        folds: the result of `fold_answers` for them.
    """
    labels = _labels_of(queries)
    hasty = [replace(query, text=query.text.lower().rstrip("?. ")) for query in queries]
    predictions = _predicted(classifier, queries, embed)
    by_source: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    errors: dict[tuple[str, str], int] = defaultdict(int)
    for query, guess, number in zip(queries, predictions, folds.argmax(axis=1), strict=True):
        by_source[query.source].append((guess.label is query.intent, INTENTS[int(number)] is query.intent))
        if guess.label is not query.intent:
            errors[query.source, f"{query.intent} as {guess.label}"] += 1
    return IntentVerdict(
        with_embedding=_measured(predictions, labels),
        without_embedding=_measured(_predicted(classifier, queries, None), labels),
        lower_case=_measured(_predicted(classifier, hasty, embed), labels),
        in_folds=measure(folds, labels),
        accuracy_by_source={
            source: (len(hits), *np.mean(hits, axis=0).tolist()) for source, hits in sorted(by_source.items())
        },
        errors=dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
        familiar=float(np.mean([prediction.in_domain >= 0.8 for prediction in predictions])),
    )


def fold_answers(
    training: Sequence[LabelledQuery],
    queries: Sequence[LabelledQuery],
    embed: Embed,
    seed: int,
    temperature: float,
) -> NDArray[np.float64]:
    """Cross-validate the judging set, adding the training data to every fold.

    Args:
        training: training data of every fold.
        queries: the judging set; each fold is predicted by a model trained on the others.
        embed: embeds texts into unit rows.
        seed: of the folds (stratified by intent) and of the augmentation.
        temperature: of the model trained without the judging set.

    Returns:
        Probabilities with embedding, shape (n, 4).
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


def robustness(classifier: IntentClassifier, queries: Sequence[LabelledQuery], embed: Embed, seed: int) -> Robustness:
    """Evaluate altered copies of the judging set, and the texts in `held_out.jsonl` and `out_of_domain.jsonl`.

    Args:
        classifier: the model in serving form.
        queries: the judging set.
        embed: embeds texts into unit rows.
        seed: of the typos and stories.
    """
    foreign = [
        LabelledQuery(text=row["text"], intent=Intent(row["intent"]), source=row["language"])
        for row in _rows("held_out.jsonl")
    ]
    strange = [
        LabelledQuery(text=row["text"], intent=INTENTS[0], source=row["kind"]) for row in _rows("out_of_domain.jsonl")
    ]
    usual = [*queries, *foreign]
    full, bare = (
        [[prediction.in_domain for prediction in _predicted(classifier, texts, each)] for texts in (usual, strange)]
        for each in (embed, None)
    )
    of_language: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for query, prediction in zip(foreign, _predicted(classifier, foreign, embed), strict=True):
        of_language[query.source].append((prediction.label is query.intent, prediction.in_domain))
    of_kind: dict[str, list[float]] = defaultdict(list)
    for query, in_domain in zip(strange, full[1], strict=True):
        of_kind[query.source].append(in_domain)
    return Robustness(
        altered=_altered(classifier, queries, embed, seed),
        languages={name: (len(each), *np.mean(each, axis=0).tolist()) for name, each in of_language.items()},
        strange={kind: (len(each), float(np.mean(each))) for kind, each in of_kind.items()},
        auroc=_auroc(*full),
        bare_auroc=_auroc(*bare),
    )


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
        found[name] = _measured(_predicted(classifier, copies, embed), _labels_of(queries))
    return found


def _mistyped(text: str, rng: Random) -> str:
    return " ".join(misspelt(word, rng) if rng.random() < _SLIPS else word for word in text.split())


def _auroc(usual: Sequence[float], strange: Sequence[float]) -> float:
    return float(roc_auc_score([1] * len(usual) + [0] * len(strange), [*usual, *strange]))


def _rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


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
