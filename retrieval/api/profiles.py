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

        `shown` has the parameters and the gate report of the live version, or of the requested one.
        """
        return await api.engine.profiles.describe(name, version)

    @put(ITEM, status_code=201, responses={200: _UNCHANGED, **problems(409)})
    async def put_profile(self, api: Api, name: ProfileName, data: JSONBody[ProfileInput]) -> Response[StoredVersion]:
        """Write a new version of a profile.

        It is not live until it is promoted; a search may name it as `name@version`. Parameters that are left out are
        those of the live version, or of `default` if none is live: repeat the changes of a version that is not live
        yet. If nothing differs from the newest version, the response is a 200 and no version is written.
        """
        book = api.engine.profiles
        profile, is_new = await book.write(name, data, note=data.note)
        return Response(await book.version(name, profile.version), status_code=201 if is_new else 200)

    @post(ITEM + "/promote", status_code=200, responses=problems(404, 409))
    async def promote_profile(
        self, api: Api, name: ProfileName, data: JSONBody[PromoteRequest] = _NEWEST
    ) -> ProfileInfo:
        """Make a version of a profile live.

        Without a body, the newest. Every server process sees it within about a second. A version that is not shipped
        with Trivet needs a passing gate report (`trivet tune`, `trivet profile check`) against the version of this name
        that is live now; without one, the response is a 409.
        """
        await api.engine.profiles.promote(name, data.version)
        return await api.engine.profiles.describe(name)

    @post(ITEM + "/rollback", status_code=200, responses=problems(404, 409))
    async def rollback_profile(self, api: Api, name: ProfileName) -> ProfileInfo:
        """Make the previous live version live again.

        Calling it twice goes back two promotions. If none was live before, the response is a 409.
        """
        await api.engine.profiles.rollback(name)
        return await api.engine.profiles.describe(name)

    @get(SHADOW, responses=problems(404))
    async def get_profile_shadow(self, api: Api, name: ProfileName) -> ProfileShadow:
        """The shadow version, and how its answers compare."""
        return await api.engine.shadow(name)

    @put(SHADOW, responses=problems(404, 409))
    async def put_profile_shadow(self, api: Api, name: ProfileName, data: JSONBody[ShadowSettings]) -> ProfileShadow:
        """Let a version answer a share of the queries in shadow mode.

        Callers get the live version's answers; the shadow version's answers are only compared with them.
        """
        await api.engine.profiles.set_shadow(name, data.version, data.share)
        return await api.engine.shadow(name)

    @delete(SHADOW, status_code=204, responses=problems(404))
    async def delete_profile_shadow(self, api: Api, name: ProfileName) -> None:
        """Switch shadow mode off."""
        await api.engine.profiles.clear_shadow(name)
