"""Shadow runs: a candidate profile's ranking of a query beside the live profile's. No query text is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString

from msgspec import Struct

from postgres.connection import Connection, fetch
from retrieval.store.agreement import kendall_tau, overlap, rank_biased_overlap
from retrieval.store.query_log import NUMBERED

MAX_ROWS = 50_000
"""Most runs per namespace; the oldest are deleted first."""

_RECORD: LiteralString = (
    NUMBERED.replace("queries", "shadow_runs").replace("query_log", "shadow_run")
    + """
    insert into shadow_run (ns, number, id, live, candidate, live_ids, candidate_ids, overlap, rbo, tau, live_ms,
        candidate_ms)
    select %(ns)s, number, %(id)s, %(live)s, %(candidate)s, %(live_ids)s::text[], %(candidate_ids)s::text[],
        %(overlap)s, %(rbo)s, %(tau)s, %(live_ms)s, %(candidate_ms)s
    from numbered
"""
)

# In the order of `ShadowSummary`'s fields. Over all namespaces, as they share profiles; reveals nothing of their
# contents.
_SUMMARY: LiteralString = """
    select count(*), avg(overlap), avg((live_ids[1] is not distinct from candidate_ids[1])::integer::real), avg(rbo),
        avg(tau), percentile_cont(0.5) within group (order by live_ms),
        percentile_cont(0.5) within group (order by candidate_ms)
    from shadow_run where live = %(live)s and candidate = %(candidate)s
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShadowRanking:
    """One profile's ranking of a query: the profile's label, ids best first, milliseconds."""

    profile: str
    ids: Sequence[str]
    total_ms: float


class ShadowSummary(Struct, frozen=True):
    """How a candidate profile compares with a live one over `n` queries that both ranked; figures are null if `n` is 0.

    Attributes:
        mean_overlap: share of ids in common, in [0, 1].
        same_first: share of queries with the same memory first.
        mean_rank_biased_overlap: with p = 0.9, in [0, 1].
        mean_tau: Kendall's tau of the ids in common, in [-1, 1], over the queries with two or more.
    """

    live: str
    candidate: str
    n: int
    mean_overlap: float | None
    same_first: float | None
    mean_rank_biased_overlap: float | None
    mean_tau: float | None
    median_live_ms: float | None
    median_candidate_ms: float | None


async def record(conn: Connection, ns: int, search_id: str, *, live: ShadowRanking, candidate: ShadowRanking) -> None:
    """Insert one comparison and delete those beyond the limit; `conn` is in autocommit mode.

    Does nothing if the namespace is gone.
    """
    parameters = {
        "ns": ns,
        "most": MAX_ROWS,
        "id": search_id,
        "live": live.profile,
        "candidate": candidate.profile,
        "live_ids": list(live.ids),
        "candidate_ids": list(candidate.ids),
        "overlap": overlap(live.ids, candidate.ids),
        "rbo": rank_biased_overlap(live.ids, candidate.ids),
        "tau": kendall_tau(live.ids, candidate.ids),
        "live_ms": live.total_ms,
        "candidate_ms": candidate.total_ms,
    }
    await conn.execute(_RECORD, parameters)


async def summary(conn: Connection, live: str, candidate: str) -> ShadowSummary:
    """Compare two profiles, given by label, over all namespaces."""
    [row] = await fetch(conn, _SUMMARY, {"live": live, "candidate": candidate})
    return ShadowSummary(live, candidate, *row)
