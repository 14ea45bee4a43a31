"""Fusion profiles: read, write a version, promote, roll back, shadow."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from litestar import Request, Response, delete, get, post, put
from msgspec import UNSET, Struct, UnsetType

from classifier.intents import Intent
from retrieval.api.bodies import read_json
from retrieval.api.operation import Operation, QueryParameter
from retrieval.api.state import engine_of
from retrieval.errors import InvalidInput
from retrieval.parsing import invalid_input
from retrieval.profile_types import (
    ProfileInfo,
    ProfileInput,
    ProfileShadow,
    ProfileSummary,
    PromoteRequest,
    ShadowSettings,
    StoredVersion,
    Version,
)
from retrieval.profiles import DEFAULT, check_name

ITEM = "/v1/profiles/{name:str}"
SHADOW = ITEM + "/shadow"


class ProfileList(Struct, frozen=True, kw_only=True):
    """All profiles by name."""

    profiles: list[ProfileSummary]


class _VersionField(Struct, forbid_unknown_fields=True):
    version: Version | UnsetType = UNSET


_input_decoder = msgspec.json.Decoder(ProfileInput)
_promote_decoder = msgspec.json.Decoder(PromoteRequest)
_shadow_decoder = msgspec.json.Decoder(ShadowSettings)

_CREATED = "2026-02-03T08:00:00Z"
_RECIPE = {"weights": {"vector": 0.3, "bm25": 0.4, "graph": 0.3}, "rrf_k": 10.0, "fan_out": 60}
_STORED = {
    "profile": msgspec.to_builtins(DEFAULT),
    "origin": "shipped",
    "note": "",
    "created_at": _CREATED,
    "live": True,
    "report": None,
}
_WRITTEN = {
    "profile": {
        **DEFAULT.parameters,
        "name": "default",
        "version": 4,
        "fixed": _RECIPE,
        "per_intent": {**DEFAULT.parameters["per_intent"], Intent.PREFERENCE.value: _RECIPE},
    },
    "origin": "written",
    "note": "deeper for our documents",
    "created_at": _CREATED,
    "live": False,
    "report": None,
}
_INFO = {
    "name": "default",
    "live": 3,
    "shown": _STORED,
    "versions": [
        {"version": 4, "origin": "written", "note": "", "created_at": _CREATED, "live": False, "gate": True},
        {"version": 3, "origin": "shipped", "note": "", "created_at": _CREATED, "live": True, "gate": None},
    ],
    "history": [{"version": 3, "by": "shipped", "at": _CREATED}],
    "shadow": None,
}
_SHADOWED = {
    "name": "default",
    "live": 3,
    "shadow": {"version": 4, "share": 0.1},
    "compared": {
        "live": "default@3",
        "candidate": "default@4",
        "n": 128,
        "mean_overlap": 0.91,
        "same_first": 0.84,
        "mean_rank_biased_overlap": 0.93,
        "mean_tau": 0.88,
        "median_live_ms": 8.4,
        "median_candidate_ms": 8.6,
    },
}

_LIST = Operation(
    id="list_profiles",
    tag="profiles",
    summary="List profiles",
    response=ProfileList,
    answer={"profiles": [{"name": "default", "live": 3, "versions": 2, "shadow": None}]},
)
_GET = Operation(
    id="get_profile",
    tag="profiles",
    summary="A profile with its versions and their history",
    description="`shown` has the parameters and the gate's report of the live version, or of the one asked for.",
    response=ProfileInfo,
    errors=(404,),
    answer=_INFO,
    query=(QueryParameter(name="version", type=Version, description="the version to show; the live one if left out"),),
)
_PUT = Operation(
    id="put_profile",
    tag="profiles",
    summary="Write a new version of a profile",
    description="It is not live until it is promoted; a search may name it as `name@version`. What is left out is as "
    "in the live version, or for a new name as in `default`. The parameters of the newest version again are a 200 "
    "and no new version.",
    request=ProfileInput,
    response=StoredVersion,
    status=201,
    unchanged_status=200,
    errors=(409,),
    example={
        "fixed": _RECIPE,
        "per_intent": {**DEFAULT.parameters["per_intent"], Intent.PREFERENCE.value: _RECIPE},
        "note": "deeper for our documents",
    },
    answer=_WRITTEN,
)
_PROMOTE = Operation(
    id="promote_profile",
    tag="profiles",
    summary="Make a version of a profile live",
    description="Without a body, the newest. Every server process sees it within about a second. A version that did "
    "not come with Trivet needs a gate report that lets it pass (`trivet tune`, `trivet profile check`); without one "
    "it is a 409.",
    request=PromoteRequest,
    response=ProfileInfo,
    errors=(404, 409),
    example={"version": 3},
    answer=_INFO,
)
_ROLLBACK = Operation(
    id="rollback_profile",
    tag="profiles",
    summary="Make the version live that was so before",
    description="Twice goes back two promotions. Where none was live before it is a 409.",
    response=ProfileInfo,
    errors=(404, 409),
    answer=_INFO,
)
_GET_SHADOW = Operation(
    id="get_profile_shadow",
    tag="profiles",
    summary="What answers beside the live version",
    response=ProfileShadow,
    errors=(404,),
    answer=_SHADOWED,
)
_PUT_SHADOW = Operation(
    id="put_profile_shadow",
    tag="profiles",
    summary="Let a version answer a share of the queries, unseen",
    description="Callers get the live version's answers; those of the other are compared with them.",
    request=ShadowSettings,
    response=ProfileShadow,
    errors=(404, 409),
    example={"version": 4, "share": 0.1},
    answer=_SHADOWED,
)
_DELETE_SHADOW = Operation(
    id="delete_profile_shadow",
    tag="profiles",
    summary="Let nothing answer beside the live version",
    status=204,
    errors=(404,),
)


@get("/v1/profiles", opt=_LIST.as_opt)
async def list_profiles(request: Request[Any, Any, Any]) -> ProfileList:
    """All names."""
    return ProfileList(profiles=list(await engine_of(request).profiles.list()))


@get(ITEM, opt=_GET.as_opt)
async def get_profile(request: Request[Any, Any, Any]) -> ProfileInfo:
    """Its versions and history."""
    return await engine_of(request).profiles.describe(_name_of(request), _version_of(request))


@put(ITEM, opt=_PUT.as_opt)
async def put_profile(request: Request[Any, Any, Any]) -> Response[StoredVersion]:
    """Write a version."""
    name, given = _name_of(request), await read_json(request, _input_decoder)
    book = engine_of(request).profiles
    profile, is_new = await book.write(name, given, note=given.note)
    return Response(await book.version(name, profile.version), status_code=201 if is_new else 200)


@post(ITEM + "/promote", status_code=200, opt=_PROMOTE.as_opt)
async def promote_profile(request: Request[Any, Any, Any]) -> ProfileInfo:
    """Make a version live."""
    name = _name_of(request)
    wanted = await read_json(request, _promote_decoder) if await request.body() else PromoteRequest()
    book = engine_of(request).profiles
    await book.promote(name, wanted.version)
    return await book.describe(name)


@post(ITEM + "/rollback", status_code=200, opt=_ROLLBACK.as_opt)
async def rollback_profile(request: Request[Any, Any, Any]) -> ProfileInfo:
    """Back to what was live before."""
    name, book = _name_of(request), engine_of(request).profiles
    await book.rollback(name)
    return await book.describe(name)


@get(SHADOW, opt=_GET_SHADOW.as_opt)
async def get_profile_shadow(request: Request[Any, Any, Any]) -> ProfileShadow:
    """The shadow's settings."""
    return await _shadow(request)


@put(SHADOW, opt=_PUT_SHADOW.as_opt)
async def put_profile_shadow(request: Request[Any, Any, Any]) -> ProfileShadow:
    """Set the shadow."""
    name, wanted = _name_of(request), await read_json(request, _shadow_decoder)
    await engine_of(request).profiles.set_shadow(name, wanted.version, wanted.share)
    return await _shadow(request)


@delete(SHADOW, status_code=204, opt=_DELETE_SHADOW.as_opt)
async def delete_profile_shadow(request: Request[Any, Any, Any]) -> None:
    """No shadow."""
    await engine_of(request).profiles.clear_shadow(_name_of(request))


async def _shadow(request: Request[Any, Any, Any]) -> ProfileShadow:
    return await engine_of(request).shadow(_name_of(request))


def _name_of(request: Request[Any, Any, Any]) -> str:
    """The profile that the path names.

    Raises:
        InvalidInput: no profile can have that name.
    """
    try:
        name = unquote_to_bytes(request.path_params["name"].encode("latin-1")).decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidInput("is not percent-encoded UTF-8", loc=("name",)) from exc
    check_name(name)
    return name


def _version_of(request: Request[Any, Any, Any]) -> int | None:
    """The parameter `version` of the query string.

    Raises:
        InvalidInput: it is no version, is given twice, or there are other parameters.
    """
    pairs = list(request.query_params.multi_items())
    given = dict(pairs)
    if len(given) < len(pairs):
        raise InvalidInput("is given twice", loc=("version",))
    try:
        version = msgspec.convert(given, _VersionField, strict=False).version
    except msgspec.ValidationError as exc:
        raise invalid_input(exc) from exc
    return None if version is UNSET else version
