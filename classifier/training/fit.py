"""Fits the intent model: two linear members, their vocabularies, temperature and in_domain."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from classifier.intents import INTENTS
from classifier.training.data import LabelledQuery, altered
from classifier.training.embedder import Embed
from classifier.training.metrics import fit_temperature
from classifier.training.model import (
    FORM_SETS,
    GRAM_SETS,
    EncodedQueries,
    IntentDomain,
    IntentModel,
    Member,
    Scale,
    centroids,
    dense_view,
    encode,
    evidence,
    fit_scale,
    vocabulary,
)
from classifier.training.out_of_domain import out_of_domain_texts

FORM_C, WORDS_C = 0.7, 5.0
"""Inverse regularisation strength of the two members."""
SKELETON_SCALE = 1.5
"""Scale of the skeleton's n-grams in the form member."""
AT_LEAST = {"words": 2, "characters": 3, "skeleton": 2}
"""Minimum number of training queries that contain an n-gram of the vocabulary."""
MIN_TEMPERATURE = 1.0
"""Never sharpen: real queries differ more from the training queries than the folds from each other."""
FOLDS = 5
TOPICS = 40
FEWEST_FOR_TOPICS = 400
"""With fewer queries a topic may contain all queries of an intent; then folds only keep copies together."""
_STRANGE_TEXTS = 900

Advance = Callable[[int], None]
"""Called with the number of models fitted since the last call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingSet:
    """Encoded queries; the rows of augmented copies follow those of all originals."""

    texts: list[str]
    embeddings: NDArray[np.float32]
    """Shape (n, 384)."""
    encoded: EncodedQueries
    labels: NDArray[np.intp]
    """Indices in INTENTS, shape (n,)."""
    original: NDArray[np.intp]
    """Row of the original, shape (n,); an original's own row."""
    weights: NDArray[np.float64]
    """Sample weights, shape (n,)."""
    foreign: NDArray[np.bool_]
    """Whether a query is one of `languages.jsonl`, shape (n,)."""

    @property
    def originals(self) -> NDArray[np.bool_]:
        """Mask of the rows that are not copies, shape (n,)."""
        found: NDArray[np.bool_] = self.original == np.arange(len(self.original))
        return found


def prepare(
    queries: Sequence[LabelledQuery], embed: Embed, seed: int, *, weights: Sequence[float] | None = None
) -> TrainingSet:
    """Augment, embed and encode the training data; `weights` of the queries and their copies are 1 by default."""
    rng = Random(seed)
    written = [query.text for query in queries]
    copies = [(row, copy) for row, text in enumerate(written) if (copy := altered(text, rng)) != text]
    original = np.array([*range(len(queries)), *(row for row, _ in copies)], dtype=np.intp)
    texts = [*written, *(copy for _, copy in copies)]
    embeddings = embed(texts)
    given = np.ones(len(queries)) if weights is None else np.array(weights, dtype=np.float64)
    labels = np.array([INTENTS.index(query.intent) for query in queries], dtype=np.intp)
    foreign = np.array([query.language is not None for query in queries])
    return TrainingSet(
        texts=texts,
        embeddings=embeddings,
        encoded=encode(texts, embeddings),
        labels=labels[original],
        original=original,
        weights=given[original],
        foreign=foreign[original],
    )


class HeldOut(NamedTuple):
    """Predictions for originals by models that did not see them."""

    rows: NDArray[np.intp]
    """Rows of the originals, shape (m,)."""
    averaged: NDArray[np.float64]
    """Logarithms of the mean probabilities before temperature, shape (m, 4)."""
    bare: NDArray[np.float64]
    """The same without embeddings."""
    evidence: NDArray[np.float64]
    """Evidence of in_domain, shape (m, 4)."""


def learn(
    data: TrainingSet, embed: Embed, seed: int, advance: Advance = lambda more: None
) -> tuple[IntentModel, HeldOut]:
    """Fit a model, and cross-validate it on folds it has not seen.

    Folds keep topics together (k-means clusters of the embeddings), and copies with their original: temperature and
    in_domain are fitted on queries that are new to the model, as those in serving are. Queries in other languages
    are only kept together with their copies, as their clusters would each contain all queries in a script.

    The seed determines the clusters and the out-of-domain texts; `advance` is called FOLDS + 1 times in all.
    """
    found = [_answers(data, train, test, seed, advance) for train, test in _folds(data, seed)]
    held = HeldOut(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    labels = data.labels[held.rows]
    model = fit_members(data, np.arange(len(data.labels)))
    middles = centroids(data.embeddings[data.originals], seed)
    strange = out_of_domain_texts(_STRANGE_TEXTS, Random(seed))
    against = evidence(encode(strange, embed(strange)), model.vocabularies, middles)
    advance(1)
    return (
        replace(
            model,
            temperature=max(MIN_TEMPERATURE, fit_temperature(held.averaged, labels)),
            bare_temperature=max(MIN_TEMPERATURE, fit_temperature(held.bare, labels)),
            in_domain=IntentDomain(
                centroids=middles,
                embedded=fit_scale(held.evidence, against),
                bare=fit_scale(held.evidence[:, :-1], against[:, :-1]),
            ),
        ),
        held,
    )


def fit_members(data: TrainingSet, rows: NDArray[np.intp]) -> IntentModel:
    """Fit vocabularies and members on some rows, with neutral temperature and in_domain."""
    encoded, labels, weights = data.encoded[rows], data.labels[rows], data.weights[rows]
    vocabularies = {name: vocabulary(encoded.grams[name], data.originals[rows], AT_LEAST[name]) for name in GRAM_SETS}
    scaled = {name: each.scaled(encoded.grams[name]) for name, each in vocabularies.items()}
    skeleton = {name: SKELETON_SCALE * scaled[name] for name in FORM_SETS}
    bare, full = (
        Scale(weights=np.zeros(width), intercept=1.0, strange=-1.0, usual=0.0, best=1.0)
        for width in (len(GRAM_SETS), len(GRAM_SETS) + 1)
    )
    return IntentModel(
        vocabularies=vocabularies,
        form=_member(dense_view(encoded, embedded=True), skeleton, labels, weights, FORM_C),
        bare_form=_member(dense_view(encoded, embedded=False), skeleton, labels, weights, FORM_C),
        words=_member(np.zeros((len(rows), 0)), scaled, labels, weights, WORDS_C),
        temperature=1.0,
        bare_temperature=1.0,
        in_domain=IntentDomain(centroids=np.zeros((1, data.embeddings.shape[1])), embedded=full, bare=bare),
    )


def _answers(
    data: TrainingSet, train: NDArray[np.intp], test: NDArray[np.intp], seed: int, advance: Advance
) -> HeldOut:
    model = fit_members(data, train)
    held = test[data.originals[test]]
    unseen = data.encoded[held]
    middles = centroids(data.embeddings[train[data.originals[train]]], seed)
    advance(1)
    return HeldOut(
        rows=held,
        averaged=model.averaged(unseen, embedded=True),
        bare=model.averaged(unseen, embedded=False),
        evidence=evidence(unseen, model.vocabularies, middles),
    )


def _folds(data: TrainingSet, seed: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    originals = data.embeddings[data.originals].astype(np.float64)
    if len(originals) < FEWEST_FOR_TOPICS:
        yield from StratifiedGroupKFold(FOLDS).split(data.labels, data.labels, data.original)
    else:
        clusters = KMeans(TOPICS, n_init=1, random_state=seed).fit_predict(originals)
        groups = np.where(data.foreign, TOPICS + data.original, clusters[data.original])
        yield from GroupKFold(FOLDS).split(data.labels, data.labels, groups)


def _member(
    dense: NDArray[np.float64],
    grams: dict[str, csr_matrix],
    labels: NDArray[np.intp],
    weights: NDArray[np.float64],
    strength: float,
) -> Member:
    """Fit a member; the scale of its n-grams is folded into its tables."""
    blocks = [csr_matrix(dense), *grams.values()]
    model = LogisticRegression(C=strength, max_iter=400, tol=1e-3, class_weight="balanced")
    model.fit(hstack(blocks).tocsr(), labels, sample_weight=weights)
    coefficients = np.zeros((model.coef_.shape[1], len(INTENTS)))
    intercept = np.full(len(INTENTS), -30.0)
    coefficients[:, model.classes_], intercept[model.classes_] = model.coef_.T, model.intercept_
    tables, start = {}, dense.shape[1]
    for name, block in grams.items():
        scale = SKELETON_SCALE if dense.shape[1] else 1.0
        tables[name] = scale * coefficients[start : start + block.shape[1]]
        start += block.shape[1]
    return Member(dense=coefficients[: dense.shape[1]], tables=tables, intercept=intercept)
