"""Which memories a query may see: the single predicate that every leg and listing applies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, LiteralString

from psycopg.types.json import Jsonb

from retrieval.types.search import Exclude, Filters, SearchOptions

NOTHING_EXCLUDED = Exclude()

VISIBLE: LiteralString = """
    (%(as_of)s::timestamptz is null or m.created_at <= %(as_of)s::timestamptz)
    and (m.expires_at is null or m.expires_at > coalesce(%(as_of)s::timestamptz, now()))
    and (%(include_superseded)s or m.superseded_at is null or m.superseded_at > %(as_of)s::timestamptz)
"""
"""SQL over `memory m`: created, not expired and not superseded at `as_of` (null: now)."""

# By parameter: its type, and the condition that applies if it is not null.
_FILTERS: Mapping[str, tuple[LiteralString, LiteralString]] = {
    "tags_all": ("text[]", "m.tags @> %(tags_all)s::text[]"),
    "tags_any": ("text[]", "m.tags && %(tags_any)s::text[]"),
    "kind": ("text[]", "m.kind = any(%(kind)s::text[])"),
    "session_id": ("text[]", "m.session_id = any(%(session_id)s::text[])"),
    "document_id": ("text[]", "m.document_id = any(%(document_id)s::text[])"),
    "speaker": ("text[]", "m.speaker = any(%(speaker)s::text[])"),
    "created_after": ("timestamptz", "m.created_at > %(created_after)s::timestamptz"),
    "created_before": ("timestamptz", "m.created_at < %(created_before)s::timestamptz"),
    "metadata": ("jsonb", "m.metadata @> %(metadata)s::jsonb"),
    "not_id": ("text[]", "m.id <> all(%(not_id)s::text[])"),
    "not_session_id": ("text[]", "(m.session_id = any(%(not_session_id)s::text[])) is not true"),
    "not_created_after": ("timestamptz", "m.created_at <= %(not_created_after)s::timestamptz"),
}

_AND: LiteralString = " and "

MATCHES: LiteralString = _AND.join(
    "(%(" + name + ")s::" + type_ + " is null or " + condition + ")" for name, (type_, condition) in _FILTERS.items()
)
"""SQL over `memory m`: matches the caller's filters and is not excluded; null parameters are ignored."""

ELIGIBLE: LiteralString = "(" + VISIBLE + ") and (" + MATCHES + ")"
"""Both; requires the parameters of `eligibility`."""


def eligibility(
    filters: Filters,
    *,
    exclude: Exclude = NOTHING_EXCLUDED,
    as_of: datetime | None = None,
    include_superseded: bool = False,
) -> dict[str, Any]:
    """The parameters of `ELIGIBLE`."""
    return {
        "as_of": as_of,
        "include_superseded": include_superseded,
        "tags_all": filters.tags_all or None,
        "tags_any": filters.tags_any or None,
        "kind": list(filters.kind) or None,
        "session_id": filters.session_id or None,
        "document_id": filters.document_id or None,
        "speaker": filters.speaker or None,
        "created_after": filters.created_after,
        "created_before": filters.created_before,
        "metadata": Jsonb(filters.metadata) if filters.metadata else None,
        "not_id": exclude.ids or None,
        "not_session_id": exclude.session_id or None,
        "not_created_after": exclude.created_after,
    }


def eligible_for(request: SearchOptions) -> dict[str, Any]:
    """The parameters of `ELIGIBLE` for a search."""
    return eligibility(
        request.filters,
        exclude=request.exclude,
        as_of=request.as_of,
        include_superseded=request.include_superseded,
    )


def eligible_by(parameters: Mapping[str, Any]) -> LiteralString:
    """`ELIGIBLE` reduced to the conditions that these parameters of `eligibility` use.

    For statements that scan many rows.

    >>> eligible_by(eligibility(Filters(kind=["fact"]), include_superseded=True))
    '(m.expires_at is null or m.expires_at > now()) and m.kind = any(%(kind)s::text[])'
    """
    as_of: LiteralString = "%(as_of)s::timestamptz"
    conditions: list[LiteralString] = []
    if parameters["as_of"] is None:
        conditions.append("(m.expires_at is null or m.expires_at > now())")
        superseded: LiteralString = "m.superseded_at is null"
    else:
        conditions += ["m.created_at <= " + as_of, "(m.expires_at is null or m.expires_at > " + as_of + ")"]
        superseded = "(m.superseded_at is null or m.superseded_at > " + as_of + ")"
    if not parameters["include_superseded"]:
        conditions.append(superseded)
    conditions += [condition for name, (_, condition) in _FILTERS.items() if parameters[name] is not None]
    return _AND.join(conditions)
