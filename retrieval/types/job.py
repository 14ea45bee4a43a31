"""Records of long-running jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

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
    started_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    error: str | None
