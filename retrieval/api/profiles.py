"""Fusion profiles: read, write a version, promote, roll back, shadow."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, Response, delete, get, post, put
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, QueryParameter
from msgspec import Struct

from retrieval.api.parameters import ProfileName
from retrieval.api.problems import problems
from retrieval.api.state import Api
from retrieval.profiles.schema import (
    ProfileInfo,
    ProfileInput,
    ProfileShadow,
    ProfileSummary,
    PromoteRequest,
    ShadowSettings,
    StoredVersion,
)

ITEM = "/{name:str}"
SHADOW = ITEM + "/shadow"
_NEWEST = PromoteRequest()
_UNCHANGED = ResponseSpec(StoredVersion, generate_examples=False)


class ProfileList(Struct, frozen=True, kw_only=True):
    """All profiles by name."""

    profiles: list[ProfileSummary]


class ProfilesController(Controller):
    """How rankings are fused."""

    path = "/v1/profiles"
    tags = ("profiles",)

    @get()
    async def list_profiles(self, api: Api) -> ProfileList:
        """List profiles."""
        return ProfileList(profiles=list(await api.engine.profiles.list()))

    @get(ITEM, responses=problems(404))
    async def get_profile(
        self,
        api: Api,
        name: ProfileName,
        version: Annotated[
            int | None,
            QueryParameter(ge=1, le=2_147_483_647, description="the version to show; the live one if left out"),
        ] = None,
    ) -> ProfileInfo:
        """A profile with its versions and their history.

        `shown` has the parameters and the gate's report of the live version, or of the one asked for.
        """
        return await api.engine.profiles.describe(name, version)

    @put(ITEM, status_code=201, responses={200: _UNCHANGED, **problems(409)})
    async def put_profile(self, api: Api, name: ProfileName, data: JSONBody[ProfileInput]) -> Response[StoredVersion]:
        """Write a new version of a profile.

        It is not live until it is promoted; a search may name it as `name@version`. What is left out is as in the live
        version, or where none is live as in `default`: what a version that is not live yet has changed has to be given
        again. The parameters of the newest version again are a 200 and no new version.
        """
        book = api.engine.profiles
        profile, is_new = await book.write(name, data, note=data.note)
        return Response(await book.version(name, profile.version), status_code=201 if is_new else 200)

    @post(ITEM + "/promote", status_code=200, responses=problems(404, 409))
    async def promote_profile(
        self, api: Api, name: ProfileName, data: JSONBody[PromoteRequest] = _NEWEST
    ) -> ProfileInfo:
        """Make a version of a profile live.

        Without a body, the newest. Every server process sees it within about a second. A version that did not come
        with Trivet needs a gate report that lets it pass (`trivet tune`, `trivet profile check`), against the version
        of this name that is live now; without one it is a 409.
        """
        await api.engine.profiles.promote(name, data.version)
        return await api.engine.profiles.describe(name)

    @post(ITEM + "/rollback", status_code=200, responses=problems(404, 409))
    async def rollback_profile(self, api: Api, name: ProfileName) -> ProfileInfo:
        """Make the version live that was so before.

        Twice goes back two promotions. Where none was live before it is a 409.
        """
        await api.engine.profiles.rollback(name)
        return await api.engine.profiles.describe(name)

    @get(SHADOW, responses=problems(404))
    async def get_profile_shadow(self, api: Api, name: ProfileName) -> ProfileShadow:
        """What answers beside the live version."""
        return await api.engine.shadow(name)

    @put(SHADOW, responses=problems(404, 409))
    async def put_profile_shadow(self, api: Api, name: ProfileName, data: JSONBody[ShadowSettings]) -> ProfileShadow:
        """Let a version answer a share of the queries, unseen.

        Callers get the live version's answers; those of the other are compared with them.
        """
        await api.engine.profiles.set_shadow(name, data.version, data.share)
        return await api.engine.shadow(name)

    @delete(SHADOW, status_code=204, responses=problems(404))
    async def delete_profile_shadow(self, api: Api, name: ProfileName) -> None:
        """Switch shadow mode off."""
        await api.engine.profiles.clear_shadow(name)
