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
    """

    name: str
    version: int
    rrf_k: int
    fan_out: int
    fixed: Mapping[str, float]
    per_intent: Mapping[Intent, Mapping[str, float]]
    shrink: float

    @property
    def label(self) -> str:
        """Name and version, as answers show it."""
        return f"{self.name}@{self.version}"


def _weights(vector: float, bm25: float, graph: float) -> Mapping[str, float]:
    return {Leg.VECTOR.value: vector, Leg.BM25.value: bm25, Leg.GRAPH.value: graph}


DEFAULT = Profile(
    name="default",
    version=1,
    rrf_k=10,
    fan_out=40,
    fixed=_weights(0.40, 0.40, 0.20),
    per_intent={
        Intent.FACT_LOOKUP: _weights(0.30, 0.50, 0.20),
        Intent.RELATIONSHIP: _weights(0.30, 0.40, 0.30),
        Intent.PREFERENCE: _weights(0.70, 0.20, 0.10),
        Intent.OPEN_ENDED: _weights(0.45, 0.40, 0.15),
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
