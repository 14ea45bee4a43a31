"""Made-up queries with candidates, and a small rescorer trained on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from classifier.candidates import CandidateInputs, describe
from classifier.intents import INTENTS
from classifier.query_performance import LegScores, QueryPerformanceFeatures
from classifier.rescorer import RescoredCandidates
from classifier.training.examples import Example
from classifier.traits import MEMORY_TRAITS, QUERY_TRAITS, pack_traits, unpack_traits

if TYPE_CHECKING:
    from classifier.training.rescorer import FittedRescorer

SETS = ("chats", "notes", "papers")

SAID = (
    "I love hiking.",
    "I prefer tea, never coffee!",
    "We met in Rome on Friday.",
    "What did you do in 2019?",
    "Ana and Boris Chen have 3 dogs",
    "ok",
    "The treaty of 1648 ended a war of thirty years that had begun in Prague.",
    "Do you enjoy it? I strongly dislike it and my sister hates it.",
)
"""Texts of several kinds."""

LIKING = MEMORY_TRAITS.index("liking")


def require_training() -> None:
    """Skip the test, or the calling module, if trees cannot be grown."""
    try:
        import lightgbm  # noqa: F401
    except (ImportError, OSError) as exc:  # without the system's OpenMP runtime it is an OSError
        pytest.skip(f"lightgbm cannot be loaded: {exc}", allow_module_level=True)


def findings(rng: np.random.Generator, ids: Sequence[str], least: float = 0.0, most: float = 1.0) -> LegScores:
    """A ranking of these ids, in this order."""
    scores = np.sort(rng.uniform(least, most, len(ids)))[::-1]
    return LegScores(list(ids), scores.tolist())


def evidence(rng: np.random.Generator, ids: Sequence[str]) -> QueryPerformanceFeatures:
    """Legs that each found two thirds of the ids and together all of them, in some order."""
    third = len(ids) // 3
    order = rng.permutation(len(ids))
    parts = [[ids[at] for at in rng.permutation(np.roll(order, third * turn)[: len(ids) - third])] for turn in range(3)]
    shares = rng.dirichlet(np.ones(len(INTENTS))).tolist()
    return QueryPerformanceFeatures(
        vector=findings(rng, parts[0], 0.2, 0.8),
        bm25=findings(rng, parts[1], 0.5, 9.0),
        graph=findings(rng, parts[2]),
        score_upper_bound=12.5,
        entity_idfs=rng.random(2).tolist(),
        words=int(rng.integers(1, 20)),
        probabilities=dict(zip(INTENTS, shares, strict=True)),
    )


def particulars(rng: np.random.Generator, ids: Sequence[str], said: Sequence[str] = SAID) -> CandidateInputs:
    """Of memories of 8 dimensions, by up to 3 speakers in up to 4 sessions, that say some of these texts."""
    n = len(ids)
    directions = rng.normal(size=(n, 8))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    vectors = (directions / lengths).astype(np.float16).astype(np.float32)
    own, mixed, covered, shared, rarest = (rng.random(n).astype(np.float32) for _ in range(5))
    has_title = rng.random(n) < 0.3
    return CandidateInputs(
        ids=list(ids),
        own=own,
        mixed=mixed,
        vectors=vectors,
        covered=covered,
        shared=shared,
        rarest=rarest,
        traits=[pack_traits(said[at]) for at in rng.integers(len(said), size=n)],
        assistant=(rng.random(n) < 0.3).tolist(),
        named=(rng.random(n) < 0.3).tolist(),
        speakers=rng.integers(-1, 3, n).tolist(),
        sessions=rng.integers(-1, 4, n).tolist(),
        titled=np.where(has_title, rng.random(n), 0.0).tolist(),
        has_title=has_title.tolist(),
        query=rng.integers(0, 2, len(QUERY_TRAITS)).astype(float).tolist(),
    )


def example(seed: int, *, set_: str = SETS[0], namespace: str = "n0", candidates: int = 24) -> Example:
    """A query whose gold covers its terms and states what somebody likes; the texts depend on its set's kind."""
    rng = np.random.default_rng(seed)
    ids = [f"m{at:03}" for at in range(candidates)]
    kind = SETS.index(set_)
    known = particulars(rng, ids, SAID[kind : kind + 6])
    liking = unpack_traits(known.traits)[0][:, LIKING]
    worth = known.covered + liking + rng.normal(0, 0.05, candidates)
    legs = evidence(rng, ids)
    return Example(
        set=set_,
        namespace=namespace,
        type="fact",
        relevant=frozenset(ids[at] for at in np.argsort(-worth)[:3]),
        evidence=legs,
        known=known,
        fused=list(dict.fromkeys([*legs.vector.ids, *legs.bm25.ids, *legs.graph.ids])),
    )


def examples(count: int = 120, *, first: int = 0) -> list[Example]:
    """Queries of three sets with four namespaces each."""
    return [
        example(first + at, set_=SETS[at % len(SETS)], namespace=f"n{at // len(SETS) % 4}", candidates=20 + at % 9)
        for at in range(count)
    ]


def learned(*, seed: int = 0, share: float | None = None, queries: Sequence[Example] | None = None) -> FittedRescorer:
    """A rescorer of a few small trees; with a `share`, its order is followed to that extent for all memories."""
    from classifier.training.rescorer import fit
    from classifier.training.rescorer_share import LEVELS
    from classifier.training.trees import TreeOptions

    trees = TreeOptions(trees=20, rate=0.2, leaves=7, least_in_leaf=20, seed=seed)
    fitted = fit(examples() if queries is None else queries, trees)
    if share is None:
        return fitted
    always = replace(fitted.share, linear=0 * fitted.share.linear, intercept=np.where(share == LEVELS, 9.0, 0.0))
    far = replace(fitted.guard, far=0.0, near=-1.0)  # nothing is near enough to be familiar
    return replace(fitted, guard=far if share < 1 else fitted.guard, share=always)


def rescored(fitted: FittedRescorer, some: Example) -> RescoredCandidates:
    """A newly trained rescorer's output for a query's candidates, without ONNX and kernels."""
    from scipy.special import expit

    from classifier.training.rescorer import scores_of, shares_of

    described = describe(some.evidence, some.known)
    corpus = described.corpus[np.newaxis, :].astype(np.float64)
    logits = np.asarray(fitted.relevance.booster.predict(described.rows, raw_score=True))
    relevance = expit(fitted.relevance.slope * logits + fitted.relevance.offset)
    relevance_of = dict(zip(some.known.ids, relevance.tolist(), strict=True))
    return RescoredCandidates(
        scores=scores_of(fitted.booster, some, described),
        relevance=lambda candidates: [relevance_of[each] for each in candidates],
        in_domain=fitted.guard.in_domain(corpus).item(),
        share=shares_of(fitted.guard, fitted.share, corpus).item(),
    )
