"""Shadow runs: recorded without text, bounded, summed up per pair of profiles."""

from __future__ import annotations

import pytest

from retrieval.journal.writer import JournalWriter
from retrieval.store import namespaces, shadow
from retrieval.store.pool import Pool
from retrieval.store.shadow import ShadowRanking, ShadowSummary

LIVE, CANDIDATE = "default@3", "default@4"


async def compare(
    pool: Pool, live: str, candidate: str, *, name: str = "n", ms: float = 1.0, to: str = CANDIDATE
) -> None:
    """Record a pair of rankings, given as letters."""
    async with pool.connection() as conn:
        namespace = await namespaces.create(conn, await namespaces.find_or_new(conn, name))
    journal = JournalWriter(pool)
    ranked = (
        ShadowRanking(profile=LIVE, ids=list(live), total_ms=ms),
        ShadowRanking(profile=to, ids=list(candidate), total_ms=2 * ms),
    )
    journal.log_shadow_run(namespace, "s1", live=ranked[0], candidate=ranked[1])
    await journal.aclose()


async def summary(pool: Pool, candidate: str = CANDIDATE) -> ShadowSummary:
    async with pool.connection() as conn:
        return await shadow.summary(conn, LIVE, candidate)


async def test_the_summary_of_two_profiles(pool: Pool) -> None:
    """Over all namespaces, from single figures worked out by hand."""
    await compare(pool, "abc", "abc", ms=1)
    await compare(pool, "abc", "acb", ms=3)
    await compare(pool, "ab", "xy", name="other", ms=5)
    await compare(pool, "ab", "ba", to="default@5")
    found = await summary(pool)
    assert (found.live, found.candidate, found.n) == (LIVE, CANDIDATE, 3)
    assert found.mean_overlap == pytest.approx(2 / 3)
    assert found.same_first == pytest.approx(2 / 3)
    assert found.mean_rank_biased_overlap == pytest.approx((1 + 0.955 + 0) / 3, abs=1e-6)
    assert found.mean_tau == pytest.approx((1 + 1 / 3) / 2, abs=1e-6), "of the pairs that have two ids in common"
    assert (found.median_live_ms, found.median_candidate_ms) == (3, 6)
    assert (await summary(pool, "default@5")).same_first == 0


async def test_two_empty_answers_agree(pool: Pool) -> None:
    await compare(pool, "", "")
    await compare(pool, "a", "")
    found = await summary(pool)
    assert (found.mean_overlap, found.same_first, found.mean_rank_biased_overlap) == (0.5, 0.5, 0.5)
    assert found.mean_tau is None


async def test_profiles_that_were_never_compared(pool: Pool) -> None:
    found = await summary(pool)
    assert found.n == 0
    assert found.mean_overlap is found.median_live_ms is None


async def test_the_oldest_falls_out(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its namespace alone."""
    monkeypatch.setattr(shadow, "MAX_ROWS", 2)
    await compare(pool, "a", "a", name="other")
    for candidate in "xxaa":
        await compare(pool, "a", candidate)
    found = await summary(pool)
    assert (found.n, found.mean_overlap) == (3, 1)


async def test_they_go_with_their_namespace(pool: Pool) -> None:
    for name in ("n", "n", "other"):
        await compare(pool, "a", "a", name=name)
    async with pool.connection() as conn:
        receipt = await namespaces.delete(conn, "n")
    assert receipt.deleted["shadow_runs"] == 2
    assert (await summary(pool)).n == 1
