"""Records of long-running jobs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from retrieval.types.memory import Zoned

JobKind = Literal["import", "reembed"]
JobState = Literal["running", "done", "failed", "interrupted"]


class Job(Struct, frozen=True, kw_only=True):
    """A long-running job on a namespace: its progress, or how it ended."""

    id: str
    kind: JobKind
    namespace: str
    state: JobState
    done: int
    total: int | None
    started_at: Zoned
    updated_at: Zoned
    finished_at: Zoned | None
    error: str | None
