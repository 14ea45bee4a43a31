"""What goes over the wire about profiles."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from classifier.intents import Intent
from retrieval.gate import GateReport
from retrieval.profiles import Anchors, Boost, CosineGap, Hops, ModelName, Models, Profile, Recipe, Share, SourceCap
from retrieval.store.shadow import ShadowSummary
from retrieval.types import Zoned

Origin = Literal["shipped", "written", "tuned"]
Promoter = Literal["promote", "rollback", "shipped"]
Version = Annotated[int, Meta(ge=1, le=2_147_483_647)]
ShadowShare = Annotated[float, Meta(gt=0, le=1, description="of the queries that the live version answers")]
Note = Annotated[str, Meta(max_length=1_000)]


class ModelsInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Learned parts of a new version; one left out is as before, a rescorer of null is none."""

    intent: ModelName | UnsetType = UNSET
    weights: ModelName | UnsetType = UNSET
    rescorer: ModelName | UnsetType | None = UNSET

    def over(self, models: Models) -> Models:
        """These, and where nothing is said those of `models`."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return structs.replace(models, **{name: value for name, value in given.items() if value is not UNSET})


class ProfileInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a new version; one left out is as in the live version, of a new name as in `default`."""

    fixed: Recipe | UnsetType = UNSET
    per_intent: Annotated[dict[Intent, Recipe], Meta(description="all four intents")] | UnsetType = UNSET
    shrink: Share | UnsetType = UNSET
    trust: Share | UnsetType = UNSET
    rescore: bool | UnsetType = UNSET
    hops: Hops | UnsetType = UNSET
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
    note: Annotated[Note, Meta(description="why there is this version, for those who read the list")] = ""


class PromoteRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which version is to be live."""

    version: Annotated[Version | None, Meta(description="null: the newest")] = None


class ShadowSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version that answers beside the live one, unseen by the callers, and how often."""

    version: Version
    share: ShadowShare


class ProfileSummary(Struct, frozen=True, kw_only=True):
    """A profile in the list."""

    name: str
    live: Annotated[int | None, Meta(description="the live version; null: none")]
    versions: int
    shadow: ShadowSettings | None


class StoredVersion(Struct, frozen=True, kw_only=True):
    """A version with its parameters and what the gate measured of it."""

    profile: Profile
    origin: Origin
    note: str
    created_at: Zoned
    live: bool
    report: Annotated[GateReport | None, Meta(description="null: not measured, cannot be promoted unless shipped")]


class VersionSummary(Struct, frozen=True, kw_only=True):
    """A version in the list of them."""

    version: int
    origin: Origin
    note: str
    created_at: Zoned
    live: bool
    gate: Annotated[bool | None, Meta(description="whether the gate lets it pass; null: not measured")]


class Promotion(Struct, frozen=True, kw_only=True):
    """A version became live."""

    version: int
    by: Promoter
    at: Zoned


class ProfileInfo(Struct, frozen=True, kw_only=True):
    """A profile with all its versions and how they came to be live, newest first."""

    name: str
    live: Annotated[int | None, Meta(description="the live version; null: none")]
    shown: Annotated[StoredVersion | None, Meta(description="the version asked for, or the live one")]
    versions: list[VersionSummary]
    history: list[Promotion]
    shadow: ShadowSettings | None


class ProfileShadow(Struct, frozen=True, kw_only=True):
    """What answers beside the live version of a profile, and how the two compared so far; null without a shadow."""

    name: str
    live: int | None
    shadow: ShadowSettings | None
    compared: ShadowSummary | None
