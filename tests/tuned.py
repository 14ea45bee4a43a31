"""Made-up saved queries for the tests of tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from msgspec.structs import replace

from classifier.intents import INTENTS, Intent
from retrieval.profiles.profile import DEFAULT, Recipe
from retrieval.tuning.runs import DEPTHS, Rescoring, SavedQuery
from retrieval.types.search import Leg

EVEN = (0.25, 0.25, 0.25, 0.25)

_BALANCED = Recipe(weights={Leg.VECTOR: 0.4, Leg.BM25: 0.3, Leg.GRAPH: 0.3}, rrf_k=5, fan_out=40)
BASE = replace(
    DEFAULT,
    fixed=_BALANCED,
    per_intent=dict.fromkeys(INTENTS, _BALANCED),
    learned_share=0.0,
    vector_noise=2.0,
    bm25_noise=0.0,
)
"""A base profile with the same recipe for all intents and no noise cut."""


def sure(intent: Intent) -> tuple[float, float, float, float]:
    """The probabilities of a certain classifier."""
    fact, relation, preference, open_ended = (float(each is intent) for each in INTENTS)
    return fact, relation, preference, open_ended


def saved(
    number: int,
    *,
    vector: Sequence[tuple[str, float]] = (),
    bm25: Sequence[tuple[str, float]] = (),
    graph: Sequence[tuple[str, float]] = (),
    gains: Mapping[str, float] | None = None,
    probabilities: tuple[float, float, float, float] = EVEN,
    learned: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3),
    set_: str = "toy",
    namespace: str = "n",
    asked: str | None = None,
    intent: Intent | None = None,
    weight: float = 1.0,
    duplicates: Sequence[Sequence[str]] = (),
    rescored: Rescoring | None = None,
    fragment_share: float = 0.0,
) -> SavedQuery:
    """A query of which the graph leg found the same at every depth."""
    return SavedQuery(
        id=f"q{number}",
        set=set_,
        namespace=namespace,
        type="fact",
        intent=intent,
        asked=asked or f"q{number}",
        gains=dict(gains or {"gold": 1.0}),
        weight=weight,
        probabilities=probabilities,
        in_domain=1.0,
        learned=dict.fromkeys(DEPTHS, learned),
        fragment_share=fragment_share,
        rankings={Leg.VECTOR: list(vector), Leg.BM25: list(bm25)},
        graph={depth: list(graph)[:depth] for depth in DEPTHS},
        duplicates=[list(group) for group in duplicates],
        rescored={} if rescored is None else dict.fromkeys(DEPTHS, rescored),
    )


def ranking(length: int, gold_at: int | None, prefix: str) -> list[tuple[str, float]]:
    """Hits with falling scores, all above the noise; `gold` is at a rank from 1, or absent."""
    ids = [f"{prefix}{number:03}" for number in range(length)]
    if gold_at is not None:
        ids[gold_at - 1] = "gold"
    return [(id_, 1.0 - at / 1_000) for at, id_ in enumerate(ids)]


def found_by(right: Leg, number: int, rng: Random, **fields: Any) -> SavedQuery:
    """A query to which one leg has the gold among its first, and no other has it."""
    hits = {leg: ranking(15, rng.randint(1, 2) if leg is right else None, leg.value[0]) for leg in Leg}
    return saved(number, vector=hits[Leg.VECTOR], bm25=hits[Leg.BM25], graph=hits[Leg.GRAPH], **fields)
