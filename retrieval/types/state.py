"""What a server process reports about itself."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Finding(Struct, frozen=True):
    """The result of one check of the installation."""

    name: str
    ok: bool
    detail: str


class LoadedIndex(Struct, frozen=True, kw_only=True):
    """A namespace's index as this process holds it in memory."""

    namespace: str
    memories: int
    bytes: Annotated[int, Meta(description="approximate size in memory")]


class ServerState(Struct, frozen=True, kw_only=True):
    """What this process holds and what the checks of its installation found."""

    findings: Annotated[list[Finding], Meta(description="as `trivet doctor` prints them")]
    indexes: Annotated[list[LoadedIndex], Meta(description="of the process that answered, most recently used first")]
    max_index_bytes: Annotated[int, Meta(description="`TRIVET_INDEX_BYTES`")]
    unpacked: Annotated[
        dict[str, int], Meta(description="memories that await compaction, by namespace, where there are any")
    ]
