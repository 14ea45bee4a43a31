"""Parts of the ranking that can be switched off to see what each contributes.

An ablation maps a profile to a profile. To add one, add a line to `ABLATIONS`; for a part that a field of the profile
controls, `lambda profile: replace(profile, field=its_off_value)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from retrieval.errors import InvalidInput
from retrieval.profiles.profile import Profile, Recipe
from retrieval.types.search import Leg

Ablation = Callable[[Profile], Profile]


def without_leg(leg: Leg, profile: Profile) -> Profile:
    """Weight 0 for a leg, fixed and in every intent; the others keep their proportions and sum to 1."""
    return replace(
        profile,
        fixed=_without(profile.fixed, leg, profile),
        per_intent={intent: _without(recipe, leg, profile) for intent, recipe in profile.per_intent.items()},
    )


ABLATIONS: Mapping[str, Ablation] = {
    **{leg.value: partial(without_leg, leg) for leg in Leg},
    "neighbours": lambda profile: replace(profile, neighbour_share=0.0),
    "speakers": lambda profile: replace(profile, speaker_boost=0.0),
    "questions": lambda profile: replace(profile, asking_share=1.0),
    "periods": lambda profile: replace(profile, period_weight=0.0),
    "anchors": lambda profile: replace(profile, anchors=0),
    "adjacency": lambda profile: replace(profile, adjacency=0.0),
    "noise-cut": lambda profile: replace(profile, vector_noise=2.0, bm25_noise=0.0),  # no two cosines differ by more
    "intents": lambda profile: replace(profile, shrink=0.0),
    "evidence": lambda profile: replace(profile, learned_share=0.0),
    "rescorer": lambda profile: replace(profile, rescore=False),
}
"""What can be switched off, by name."""


def ablated_name(part: str, profile: Profile) -> str:
    """The name of a profile without that part."""
    return f"{profile.name}-without-{part}"


def ablated(parts: Sequence[str], profile: Profile) -> dict[str, Profile]:
    """The profile without each of these parts, by name.

    Raises:
        InvalidInput: no leg is left to rank with.
    """
    names = {part: ablated_name(part, profile) for part in parts}
    return {name: replace(ABLATIONS[part](profile), name=name) for part, name in names.items()}


def parse_parts(text: str) -> list[str]:
    """Parse a comma-separated list of parts, dropping repeats; `all` means all of them.

    Raises:
        InvalidInput: an unknown part.

    >>> parse_parts("graph, bm25,graph")
    ['graph', 'bm25']
    """
    if text.strip() == "all":
        return list(ABLATIONS)
    parts = list(dict.fromkeys(part.strip() for part in text.split(",")))
    for part in parts:
        if part not in ABLATIONS:
            raise InvalidInput(f"{part!r} cannot be switched off; choose from: {', '.join(ABLATIONS)}, or all")
    return parts


def _without(recipe: Recipe, leg: Leg, profile: Profile) -> Recipe:
    """The recipe with weight 0 for the leg, the others scaled to sum 1."""
    left = sum(weight for name, weight in recipe.weights.items() if name != leg)
    if left <= 0.0:
        raise InvalidInput(f"profile {profile.label} ranks by {leg} alone somewhere; nothing is left without it")
    return replace(
        recipe, weights={name: 0.0 if name == leg else weight / left for name, weight in recipe.weights.items()}
    )
