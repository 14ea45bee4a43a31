"""Which memories a query may see: the one predicate that every leg and every listing applies."""

from __future__ import annotations

from datetime import datetime
from typing import Any, LiteralString

from psycopg.types.json import Jsonb

from retrieval.types import Filters

VISIBLE: LiteralString = """
    (%(as_of)s::timestamptz is null or m.created_at <= %(as_of)s::timestamptz)
    and (m.expires_at is null or m.expires_at > coalesce(%(as_of)s::timestamptz, now()))
    and (%(include_superseded)s or m.superseded_at is null or m.superseded_at > %(as_of)s::timestamptz)
"""
"""SQL over `memory m`: created, not expired and not superseded at `as_of` (null: now)."""

MATCHES: LiteralString = """
    (%(tags_all)s::text[] is null or m.tags @> %(tags_all)s::text[])
    and (%(tags_any)s::text[] is null or m.tags && %(tags_any)s::text[])
    and (%(kind)s::text[] is null or m.kind = any(%(kind)s::text[]))
    and (%(session_id)s::text[] is null or m.session_id = any(%(session_id)s::text[]))
    and (%(document_id)s::text[] is null or m.document_id = any(%(document_id)s::text[]))
    and (%(speaker)s::text[] is null or m.speaker = any(%(speaker)s::text[]))
    and (%(created_after)s::timestamptz is null or m.created_at > %(created_after)s::timestamptz)
    and (%(created_before)s::timestamptz is null or m.created_at < %(created_before)s::timestamptz)
    and (%(metadata)s::jsonb is null or m.metadata @> %(metadata)s::jsonb)
"""
"""SQL over `memory m`: meets the caller's filters; a null parameter is no condition."""

ELIGIBLE: LiteralString = "(" + VISIBLE + ") and (" + MATCHES + ")"
"""Both; wants the parameters of `eligibility`."""


def eligibility(filters: Filters, *, as_of: datetime | None = None, include_superseded: bool = False) -> dict[str, Any]:
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
    }
