"""Conditions that select memories; what a query may see is one predicate, shared by every leg and listing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, LiteralString, NamedTuple

from msgspec.structs import asdict
from psycopg.types.json import Jsonb

from postgres.arrays import array_text, text_array
from retrieval.types.search import Exclude, Filters, SearchOptions

# By field of `Filters`, and of `Exclude` after `not_`: the condition that applies if it has a value.
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
    "not_ids": "m.id <> all(%(not_ids)s::text[])",
    "not_session_id": "(m.session_id = any(%(not_session_id)s::text[])) is not true",
    "not_created_after": "m.created_at <= %(not_created_after)s::timestamptz",
}

_AND: LiteralString = " and "

_NOTHING = Exclude()


class Condition(NamedTuple):
    """A selection of memories: a condition on `memory m` in SQL, and its parameters."""

    sql: LiteralString
    parameters: Mapping[str, Any]


def by_id(ids: Collection[str]) -> Condition | None:
    """The memories with these ids; None without ids."""
    return Condition("m.id = any(%(ids)s)", {"ids": text_array([*ids])}) if ids else None


def by_ordinal(docs: Collection[int]) -> Condition:
    """The memories with these ordinals."""
    return Condition("m.doc = any(%(docs)s::integer[])", {"docs": array_text(docs)})


def matching(filters: Filters, exclude: Exclude = _NOTHING) -> Condition:
    """The memories that match the filters and are not excluded."""
    values = asdict(filters) | {"not_" + name: value for name, value in asdict(exclude).items()}
    parameters = {name: Jsonb(value) if name == "metadata" else value for name, value in values.items() if value}
    return Condition(_AND.join(_FILTERS[name] for name in parameters) or "true", parameters)


def seen_by(options: SearchOptions) -> Condition:
    """The memories that a search may see: matching, created, not expired and not superseded at `as_of` (null: now).

    >>> seen_by(SearchOptions(filters=Filters(kind=["chunk"]), include_superseded=True)).sql
    '(m.expires_at is null or m.expires_at > now()) and m.kind = any(%(kind)s::text[])'
    """
    as_of: LiteralString = "%(as_of)s::timestamptz"
    if options.as_of is None:
        conditions: list[LiteralString] = ["(m.expires_at is null or m.expires_at > now())"]
        superseded: LiteralString = "m.superseded_at is null"
    else:
        conditions = ["m.created_at <= " + as_of, "(m.expires_at is null or m.expires_at > " + as_of + ")"]
        superseded = "(m.superseded_at is null or m.superseded_at > " + as_of + ")"
    if not options.include_superseded:
        conditions.append(superseded)
    matched = matching(options.filters, options.exclude)
    return Condition(_AND.join([*conditions, matched.sql]), {**matched.parameters, "as_of": options.as_of})
