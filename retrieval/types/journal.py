"""Query log settings of a namespace."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Redaction = Literal["email", "phone", "number", "url", "all"]


class QueryLogSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of a namespace's searches, for replay and labelling, and for how long."""

    max_entries: Annotated[int, Meta(ge=1, le=1_000_000, description="beyond these the oldest are deleted")] = 10_000
    max_age_days: Annotated[int, Meta(ge=1, le=36_500, description="null: no limit")] | None = 30
    redact: Annotated[
        tuple[Redaction, ...],
        Meta(max_length=16, description="removed before a query is stored; `all` keeps its length and a keyed hash"),
    ] = ("email", "phone", "url")
    store_results: Annotated[bool, Meta(description="whether to store the ids and scores of the results")] = True
