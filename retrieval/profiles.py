"""Profiles: named, versioned parameters of the fusion."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, structs

from classifier.intents import Intent
from retrieval.errors import InvalidInput
from retrieval.types import Leg

Share = Annotated[float, Meta(ge=0, le=1)]
Boost = Annotated[float, Meta(ge=0, le=4)]
Hops = Annotated[int, Meta(ge=0, le=4)]
Anchors = Annotated[int, Meta(ge=0, le=32)]
CosineGap = Annotated[float, Meta(ge=0, le=2)]
SourceCap = Annotated[int, Meta(ge=1, le=200)]
ModelName = Annotated[str, Meta(min_length=1, max_length=128)]

_NAME = re.compile(r"[\w.:+\-]{1,100}")
_VERSION = re.compile(r"[1-9][0-9]{0,8}")


class Recipe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How rankings become one.

    Attributes:
        weights: one per leg, finite, >= 0, not all 0; only their ratios matter.
        rrf_k: smoothing constant of the reciprocal rank fusion.
        fan_out: candidates of each leg that enter it.
    """

    weights: dict[Leg, Annotated[float, Meta(ge=0, le=1_000)]]
    rrf_k: Annotated[float, Meta(ge=1, le=1_000)]
    fan_out: Annotated[int, Meta(ge=10, le=400)]


class Models(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The learned parts by name: a file of `models/`, or `sha256:` and the checksum of one that the database holds.

    Attributes:
        intent: reads the intent of a query.
        weights: weighs the legs by what they found.
        rescorer: orders the fused candidates anew; None for none.
    """

    intent: ModelName = "intent.onnx"
    weights: ModelName = "weights.onnx"
    rescorer: ModelName | None = None


class Profile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a query becomes a ranking.

    Attributes:
        name: what callers ask for.
        version: counts up with every change.
        fixed: what is best where nothing is known of the query.
        per_intent: what is best for each intent.
        shrink: how far a certain classification moves the fusion from `fixed` to the intent's, in [0, 1].
        trust: how far what the legs found moves the weights from the intent's to the learned ones, in [0, 1].
        rescore: whether the rescorer orders the fused candidates where a request does not say.
        hops: of the graph walk beyond the query's entities, where a request does not say.
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
        models: the learned parts.
    """

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    version: Annotated[int, Meta(ge=1)]
    fixed: Recipe
    per_intent: dict[Intent, Recipe]
    shrink: Share = 1.0
    trust: Share = 1.0
    rescore: bool = True
    hops: Hops = 2
    neighbour_share: Boost = 1.0
    speaker_boost: Boost = 0.3
    asking_share: Share = 0.7
    period_weight: Boost = 1.0
    anchors: Anchors = 5
    adjacency: Share = 0.3
    vector_noise: CosineGap = 0.25
    bm25_noise: Share = 0.3
    source_cap: SourceCap | None = None
    diversity: Share = 0.0
    models: Models = Models()

    @property
    def label(self) -> str:
        """Name and version, as answers show it."""
        return f"{self.name}@{self.version}"

    @property
    def fan_out(self) -> int:
        """Candidates that each leg looks for: as many as any intent's recipe can take."""
        return max(recipe.fan_out for recipe in self.recipes)

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """All that a query's may be mixed from."""
        return (self.fixed, *self.per_intent.values())

    @property
    def parameters(self) -> dict[str, Any]:
        """All but name and version, as JSON has it."""
        fields = msgspec.to_builtins(msgspec.convert(msgspec.to_builtins(self), Profile))  # whole numbers to floats
        return {field: value for field, value in fields.items() if field not in ("name", "version")}

    @property
    def fingerprint(self) -> str:
        """sha256 of the parameters, in hexadecimal: the same for every profile that ranks by the same numbers."""
        return hashlib.sha256(msgspec.json.encode(self.parameters, order="sorted")).hexdigest()


def check_profile(profile: Profile) -> None:
    """Refuse what the types allow and no query can be ranked by.

    Raises:
        InvalidInput: an intent or a leg without its numbers, weights that are not finite or all 0; names the place.
    """
    _check_recipe(profile.fixed, ("fixed",))
    for intent in Intent:
        if intent not in profile.per_intent:
            raise InvalidInput("is missing; every intent needs a recipe", loc=("per_intent", intent.value))
        _check_recipe(profile.per_intent[intent], ("per_intent", intent.value))


def check_name(name: str) -> None:
    """Refuse a name that no profile can have.

    Raises:
        InvalidInput: it is too long or has other characters.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInput("must be 1 to 100 letters, digits or any of _ . : + -", loc=("name",))


def parse_label(text: str) -> tuple[str, int | None]:
    """Name and version of `name@version`; None where the text is a name alone.

    Raises:
        InvalidInput: what follows the @ is no version.

    >>> parse_label("support@4"), parse_label("support")
    (('support', 4), ('support', None))
    """
    name, at, version = text.partition("@")
    if not at:
        return name, None
    if not _VERSION.fullmatch(version):
        raise InvalidInput(f"{version!r} is no version; write {name}@1", loc=("profile",))
    return name, int(version)


def in_order(profile: Profile) -> Profile:
    """The same profile with legs and intents in the order in which answers show them; JSON has none."""
    recipes = {intent: _in_order(profile.per_intent[intent]) for intent in Intent if intent in profile.per_intent}
    return structs.replace(profile, fixed=_in_order(profile.fixed), per_intent=recipes)


def _in_order(recipe: Recipe) -> Recipe:
    return structs.replace(recipe, weights={leg: recipe.weights[leg] for leg in Leg if leg in recipe.weights})


def _check_recipe(recipe: Recipe, loc: tuple[str, ...]) -> None:
    for leg in Leg:
        weight = recipe.weights.get(leg)
        if weight is None:
            raise InvalidInput("is missing; every leg needs a weight", loc=(*loc, "weights", leg.value))
        if not math.isfinite(weight) or weight < 0:
            raise InvalidInput("must be a finite number, 0 or above", loc=(*loc, "weights", leg.value))
    if not any(recipe.weights.values()):
        raise InvalidInput("at least one weight must be above 0", loc=(*loc, "weights"))


def _recipe(vector: float, bm25: float, graph: float) -> Recipe:
    return Recipe(weights={Leg.VECTOR: vector, Leg.BM25: bm25, Leg.GRAPH: graph}, rrf_k=5, fan_out=40)


DEFAULT = Profile(
    name="default",
    version=3,
    fixed=_recipe(0.40, 0.30, 0.30),
    per_intent={
        Intent.FACT_LOOKUP: _recipe(0.30, 0.40, 0.30),
        Intent.RELATIONSHIP: _recipe(0.20, 0.30, 0.50),
        Intent.PREFERENCE: _recipe(0.75, 0.10, 0.15),
        Intent.OPEN_ENDED: _recipe(0.50, 0.20, 0.30),
    },
    models=Models(rescorer="rescorer.onnx"),
)
"""The profile of requests and namespaces that name none."""

PERMISSIVE = structs.replace(
    DEFAULT,
    name="permissive",
    version=1,
    models=Models(weights="weights-permissive.onnx", rescorer="rescorer-permissive.onnx"),
)
"""The same by models that learned only from sets whose licence allows commercial use."""

SHIPPED: Mapping[str, Profile] = {profile.name: profile for profile in (DEFAULT, PERMISSIVE)}
"""The profiles that come with this version, by name."""
