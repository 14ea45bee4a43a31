"""Profiles: named, versioned parameters of the fusion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from classifier.intents import Intent
from retrieval.errors import InvalidInput
from retrieval.types import Leg


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """How rankings are fused.

    Attributes:
        name: what callers ask for.
        version: counts up with every change.
        rrf_k: smoothing constant of the reciprocal rank fusion.
        fan_out: candidates per leg.
        fixed: weights that are best where nothing is known of the query; sum to 1.
        per_intent: weights that are best for each intent; sum to 1.
        shrink: how far a certain classification moves the weights from `fixed` to the intent's, in [0, 1].
        trust: how far what the legs found moves the weights from the intent's to the learned ones, in [0, 1].
        neighbour_share: what the turns around a turn count in BM25, against 1 as they were tuned.
        speaker_boost: what a memory's BM25 gains, as a share of it, when the query names who said it.
        asking_share: what the BM25 of a chat turn that only asks counts, against 1 of one that says something.
        period_weight: what a memory's BM25 gains, times idf, for being of the time the query speaks of.
        anchors: best memories of the other legs from which the graph leg walks on.
        adjacency: share of a turn's activation in the graph that each turn beside it gets.
        vector_noise: memories whose cosine is this far below the best one's have no say.
        bm25_noise: memories with less than this share of the best BM25 have no say.
        source_cap: most memories of one session or document in an answer; None for no bound.
        diversity: how much an answer avoids repeating itself, in [0, 1]; 0 ranks by relevance alone.
    """

    name: str
    version: int
    rrf_k: int
    fan_out: int
    fixed: Mapping[str, float]
    per_intent: Mapping[Intent, Mapping[str, float]]
    shrink: float
    trust: float = 1.0
    neighbour_share: float = 1.0
    speaker_boost: float = 0.3
    asking_share: float = 0.7
    period_weight: float = 1.0
    anchors: int = 5
    adjacency: float = 0.3
    vector_noise: float = 0.25
    bm25_noise: float = 0.3
    source_cap: int | None = None
    diversity: float = 0.0

    @property
    def label(self) -> str:
        """Name and version, as answers show it."""
        return f"{self.name}@{self.version}"


def _weights(vector: float, bm25: float, graph: float) -> Mapping[str, float]:
    return {Leg.VECTOR.value: vector, Leg.BM25.value: bm25, Leg.GRAPH.value: graph}


DEFAULT = Profile(
    name="default",
    version=2,
    rrf_k=5,
    fan_out=40,
    fixed=_weights(0.40, 0.30, 0.30),
    per_intent={
        Intent.FACT_LOOKUP: _weights(0.30, 0.40, 0.30),
        Intent.RELATIONSHIP: _weights(0.20, 0.30, 0.50),
        Intent.PREFERENCE: _weights(0.75, 0.10, 0.15),
        Intent.OPEN_ENDED: _weights(0.50, 0.20, 0.30),
    },
    shrink=1.0,
)

PROFILES: Mapping[str, Profile] = {DEFAULT.name: DEFAULT}


def find_profile(name: str | None, profiles: Mapping[str, Profile] = PROFILES) -> Profile:
    """The profile of that name among `profiles`, the default for None.

    Raises:
        InvalidInput: there is none of that name.
    """
    profile = profiles.get(name or DEFAULT.name)
    if profile is None:
        raise InvalidInput(f"there is no profile {name!r}; there is: {', '.join(sorted(profiles))}", loc=("profile",))
    return profile
