"""Request and response types of the profiles API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs

from classifier.intents import Intent
from retrieval.profiles.gate import GateReport
from retrieval.profiles.profile import (
    Anchors,
    Boost,
    CosineGap,
    FanOut,
    ModelName,
    Profile,
    RecipeWeights,
    SmoothingConstant,
    TermSaturation,
)
from retrieval.store.shadow import ShadowSummary
from retrieval.types.memory import Zoned
from retrieval.types.search import Hops, Share, SourceCap

Origin = Literal["shipped", "written", "tuned"]
Promoter = Literal["promote", "rollback", "shipped"]
Version = Annotated[int, Meta(ge=1, le=2_147_483_647)]
ShadowShare = Annotated[float, Meta(gt=0, le=1, description="of the queries that the live version answers")]
Note = Annotated[str, Meta(max_length=1_000)]


class ModelsInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The models of a new version; one left out stays as before, a null rescorer disables rescoring."""

    intent: ModelName | UnsetType = UNSET
    weights: ModelName | UnsetType = UNSET
    rescorer: ModelName | UnsetType | None = UNSET


class RecipeInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipe of a new version; an `rrf_k` or a `fan_out` left out stays as before."""

    weights: RecipeWeights
    rrf_k: SmoothingConstant | UnsetType = UNSET
    fan_out: FanOut | UnsetType = UNSET


class ProfileInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a new version; missing ones are taken from the live version, or for a new name from `default`."""

    fixed: RecipeInput | UnsetType = UNSET
    per_intent: Annotated[dict[Intent, RecipeInput], Meta(description="all four intents")] | UnsetType = UNSET
    shrink: Share | UnsetType = UNSET
    learned_share: Share | UnsetType = field(default=UNSET, name="trust")
    rescore: bool | UnsetType = UNSET
    hops: Hops | UnsetType = UNSET
    bm25_k1: TermSaturation | UnsetType = UNSET
    bm25_b: Share | UnsetType | None = UNSET
    neighbour_share: Boost | UnsetType = UNSET
    speaker_boost: Boost | UnsetType = UNSET
    asking_share: Share | UnsetType = UNSET
    period_weight: Boost | UnsetType = UNSET
    anchors: Anchors | UnsetType = UNSET
    adjacency: Share | UnsetType = UNSET
    vector_noise: CosineGap | UnsetType = UNSET
    bm25_noise: Share | UnsetType = UNSET
    source_cap: SourceCap | UnsetType | None = UNSET
    diversity: Share | UnsetType = UNSET
    models: ModelsInput | UnsetType = UNSET
    note: Annotated[Note, Meta(description="the reason for this version, shown in lists")] = ""

    def over(self, base: Profile) -> Profile:
        """`base` with the fields given here; recipes and models may leave out fields, too."""
        changed = _given(self)
        del changed["note"]
        if isinstance(self.fixed, RecipeInput):
            changed["fixed"] = structs.replace(base.fixed, **_given(self.fixed))
        if not isinstance(self.per_intent, UnsetType):
            changed["per_intent"] = {
                intent: structs.replace(base.per_intent[intent], **_given(recipe))
                for intent, recipe in self.per_intent.items()
            }
        if isinstance(self.models, ModelsInput):
            changed["models"] = structs.replace(base.models, **_given(self.models))
        return structs.replace(base, **changed)


def _given(fields: Struct) -> dict[str, Any]:
    return {name: value for name, value in structs.asdict(fields).items() if value is not UNSET}


class PromoteRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version to make live."""

    version: Annotated[Version | None, Meta(description="null: the newest")] = None


class ShadowSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version that runs in the shadow of the live one, unseen by callers, and its share of queries."""

    version: Version
    share: ShadowShare


class ProfileSummary(Struct, frozen=True, kw_only=True):
    """A profile in the list."""

    name: str
    live: Annotated[int | None, Meta(description="the live version; null: none")]
    versions: int
    shadow: ShadowSettings | None


class StoredVersion(Struct, frozen=True, kw_only=True):
    """A version with its parameters and its gate report."""

    profile: Profile
    origin: Origin
    note: str
    created_at: Zoned
    live: bool
    report: Annotated[GateReport | None, Meta(description="null: not measured, cannot be promoted unless shipped")]


class VersionSummary(Struct, frozen=True, kw_only=True):
    """A version in a list."""

    version: int
    origin: Origin
    note: str
    created_at: Zoned
    live: bool
    gate: Annotated[bool | None, Meta(description="whether it passed the gate; null: not measured")]


class Promotion(Struct, frozen=True, kw_only=True):
    """A promotion of a version."""

    version: int
    by: Promoter
    at: Zoned


class ProfileInfo(Struct, frozen=True, kw_only=True):
    """A profile with its versions and its promotions, newest first."""

    name: str
    live: Annotated[int | None, Meta(description="the live version; null: none")]
    shown: Annotated[StoredVersion | None, Meta(description="the version asked for, or the live one")]
    versions: list[VersionSummary]
    history: list[Promotion]
    shadow: ShadowSettings | None


class ProfileShadow(Struct, frozen=True, kw_only=True):
    """The shadow of a profile's live version, and how the two have compared so far; null without a shadow."""

    name: str
    live: int | None
    shadow: ShadowSettings | None
    compared: ShadowSummary | None
