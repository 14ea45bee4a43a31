"""Profiles: named, versioned ranking parameters."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field, structs

from classifier.intents import Intent
from classifier.weights import Weightings
from retrieval.errors import InvalidInput
from retrieval.types.search import Hops, Leg, Share, SourceCap
from retrieval.validation import LETTER

RecipeWeights = dict[Leg, Annotated[float, Meta(ge=0, le=1_000)]]
SmoothingConstant = Annotated[float, Meta(ge=1, le=1_000)]
FanOut = Annotated[int, Meta(ge=10, le=400)]
Boost = Annotated[float, Meta(ge=0, le=4)]
Anchors = Annotated[int, Meta(ge=0, le=32)]
TermSaturation = Annotated[float, Meta(ge=0, le=100)]
CosineGap = Annotated[float, Meta(ge=0, le=2)]
ModelName = Annotated[str, Meta(min_length=1, max_length=128)]

_ADDED = {"bm25_k1": 1.2, "bm25_b": None}
"""Parameters that fingerprints leave out at these values: gate reports from before they existed stay valid."""

_NAME = re.compile(rf"(?:{LETTER}|[.:+\-]){{1,100}}")
_VERSION = re.compile(r"[1-9][0-9]{0,8}")


class Recipe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How rankings are fused.

    Attributes:
        weights: one per leg, finite, >= 0, not all 0; only their ratios matter.
        rrf_k: smoothing constant of reciprocal rank fusion.
        fan_out: number of candidates taken from each leg.
    """

    weights: RecipeWeights
    rrf_k: SmoothingConstant
    fan_out: FanOut


class Models(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """References to the learned models: a file in `models/`, or `sha256:` and the checksum of one in the database.

    Attributes:
        intent: classifies the intent of a query.
        weights: predicts leg weights from the legs' results.
        rescorer: reorders the fused candidates; None for no rescoring.
    """

    intent: ModelName = "intent.onnx"
    weights: ModelName = "weights.onnx"
    rescorer: ModelName | None = None


class Profile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """How a query becomes a ranking.

    Attributes:
        name: what callers refer to.
        version: increases with every change.
        fixed: recipe used without knowledge of the query.
        per_intent: recipe of each intent.
        shrink: how far a certain classification moves the fusion from `fixed` to the intent's recipe, in [0, 1].
        learned_share: how far the learned weights replace the intent's weights, in [0, 1].
        rescore: whether to rescore the fused candidates, unless the request decides.
        hops: of the graph walk beyond the query's entities, unless the request sets them.
        bm25_k1: saturation of term frequency in BM25: the larger, the longer repetitions keep adding to the score; 0
            counts a term once.
        bm25_b: how much a memory's length counts against it in BM25, in [0, 1]; None for the namespace's average length
            over that and 30 terms.
        neighbour_share: scale of the neighbouring turns' contribution to BM25; 1 is the tuned value.
        speaker_boost: BM25 bonus, as a share of the score, for a memory whose speaker the query names.
        asking_share: factor on the BM25 score of a chat turn that only asks a question.
        period_weight: how much the time that a query names or asks for counts: the BM25 bonus, times idf, for a memory
            of that period, and how far later memories rise if the query asks for the present; 0: not at all.
        anchors: number of top memories of the other legs from which the graph leg continues its walk.
        adjacency: share of a turn's graph activation that each neighbouring turn receives.
        vector_noise: drop memories whose cosine is this far below the best.
        bm25_noise: drop memories with less than this share of the best BM25 score.
        source_cap: most memories of one session or document in an answer; None for no limit.
        diversity: how much an answer avoids repeating itself, in [0, 1]; 0 ranks by relevance alone.
        models: the learned models.
    """

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    version: Annotated[int, Meta(ge=1)]
    fixed: Recipe
    per_intent: dict[Intent, Recipe]
    shrink: Share = 1.0
    learned_share: Share = field(default=1.0, name="trust")
    rescore: bool = True
    hops: Hops = 2
    bm25_k1: TermSaturation = 1.2
    bm25_b: Share | None = None
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
        """Name and version, as in answers."""
        return f"{self.name}@{self.version}"

    @property
    def fan_out(self) -> int:
        """Candidates that each leg retrieves: the most that any recipe takes."""
        return max(recipe.fan_out for recipe in self.recipes)

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """All recipes that a query's recipe can be interpolated from."""
        return (self.fixed, *self.per_intent.values())

    @cached_property
    def weightings(self) -> Weightings[Leg]:
        """The weights of the recipes, checked once, to be mixed by the probabilities of the intents."""
        return Weightings({intent: each.weights for intent, each in self.per_intent.items()}, self.fixed.weights)

    @property
    def parameters(self) -> dict[str, Any]:
        """Everything except name and version, as JSON types."""
        fields = msgspec.to_builtins(msgspec.convert(msgspec.to_builtins(self), Profile))  # integers to floats
        return {field: value for field, value in fields.items() if field not in ("name", "version")}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the parameters, in hexadecimal; equal for profiles that rank the same."""
        parameters = {name: value for name, value in self.parameters.items() if (name, value) not in _ADDED.items()}
        return hashlib.sha256(msgspec.json.encode(parameters, order="sorted")).hexdigest()


def check_profile(profile: Profile) -> None:
    """Check what the types cannot: that queries can be ranked by the profile.

    Raises:
        InvalidInput: an intent or leg is missing, or weights are not finite or all 0; names the place.
    """
    _check_recipe(profile.fixed, ("fixed",))
    for intent in Intent:
        if intent not in profile.per_intent:
            raise InvalidInput("is missing; every intent needs a recipe", loc=("per_intent", intent.value))
        _check_recipe(profile.per_intent[intent], ("per_intent", intent.value))


def check_name(name: str) -> str:
    """Return the name if it is valid.

    Raises:
        InvalidInput: it is too long or contains invalid characters.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInput("must be 1 to 100 letters, digits or any of _ . : + -, without a version", loc=("name",))
    return name


def parse_label(text: str) -> tuple[str, int | None]:
    """Split `name@version`; the version is None if the text is only a name.

    Raises:
        InvalidInput: the part after the @ is not a version.

    >>> parse_label("support@4"), parse_label("support")
    (('support', 4), ('support', None))
    """
    name, at, version = text.partition("@")
    if not at:
        return name, None
    if not _VERSION.fullmatch(version):
        raise InvalidInput(f"{version!r} is no version; write {name}@1", loc=("profile",))
    return name, int(version)


def profile_of(name: str, version: int, parameters: Mapping[str, object]) -> Profile:
    """Build a profile from stored parameters.

    Raises:
        InvalidInput: they do not fit this version of Trivet.
    """
    try:
        return in_order(msgspec.convert({**parameters, "name": name, "version": version}, Profile))
    except msgspec.ValidationError as exc:
        raise InvalidInput(f"{name}@{version} is of another version of Trivet: {exc}", loc=("profile",)) from exc


def in_order(profile: Profile) -> Profile:
    """The profile with legs and intents in the order of answers; JSON objects have none."""
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
"""The profile of requests and namespaces that do not choose one."""

RESEARCH = structs.replace(
    DEFAULT,
    name="research",
    version=1,
    models=Models(weights="weights-research.onnx", rescorer="rescorer-research.onnx"),
)
"""Like `default`, with models trained also on data sets that may not be used commercially."""

SHIPPED: Mapping[str, Profile] = {profile.name: profile for profile in (DEFAULT, RESEARCH)}
"""The profiles that come with this version, by name."""
