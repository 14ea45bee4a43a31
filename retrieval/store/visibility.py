"""Which memories a query may see: the single predicate that every leg and listing applies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString

from psycopg.types.json import Jsonb

from retrieval.types.search import SearchOptions

# By parameter: the condition that applies if it is not null.
_FILTERS: Mapping[str, LiteralString] = {
    "tags_all": "m.tags @> %(tags_all)s::text[]",
    "tags_any": "m.tags && %(tags_any)s::text[]",
    "kind": "m.kind = any(%(kind)s::text[])",
    "session_id": "m.session_id = any(%(session_id)s::text[])",
    "document_id": "m.document_id = any(%(document_id)s::text[])",
    "speaker": "m.speaker = any(%(speaker)s::text[])",
    "created_after": "m.created_at > %(created_after)s::timestamptz",
    "created_before": "m.created_at < %(created_before)s::timestamptz",
    "metadata": "m.metadata @> %(metadata)s::jsonb",
    "not_id": "m.id <> all(%(not_id)s::text[])",
    "not_session_id": "(m.session_id = any(%(not_session_id)s::text[])) is not true",
    "not_created_after": "m.created_at <= %(not_created_after)s::timestamptz",
}

_AND: LiteralString = " and "


def eligibility(options: SearchOptions) -> dict[str, Any]:
    """The parameters of `eligible_by` for what a search may see."""
    filters, exclude = options.filters, options.exclude
    return {
        "as_of": options.as_of,
        "include_superseded": options.include_superseded,
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


def matching_by(parameters: Mapping[str, Any]) -> LiteralString:
    """SQL over `memory m`: it matches the filters and is not excluded, by these parameters of `eligibility`."""
    used = [condition for name, condition in _FILTERS.items() if parameters[name] is not None]
    return _AND.join(used) if used else "true"


def eligible_by(parameters: Mapping[str, Any]) -> LiteralString:
    """The same, and it is created, not expired and not superseded at `as_of` (null: now).

    >>> from retrieval.types.search import Filters
    >>> eligible_by(eligibility(SearchOptions(filters=Filters(kind=["chunk"]), include_superseded=True)))
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
    return _AND.join([*conditions, matching_by(parameters)])
