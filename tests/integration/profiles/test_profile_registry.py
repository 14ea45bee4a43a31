"""Profiles in the database: versions, promotions, rollbacks, shadows, models, and several processes."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from postgres.connection import Connection
from retrieval.errors import Conflict, InvalidInput, NotFound
from retrieval.installation import models_dir
from retrieval.profiles.live import MAX_AGE_S
from retrieval.profiles.models import ModelRegistry
from retrieval.profiles.profile import DEFAULT, Models, Profile
from retrieval.profiles.registry import ProfileRegistry
from retrieval.profiles.schema import ModelsInput, ProfileInput, ShadowSettings
from retrieval.store import profiles as store
from retrieval.store.pool import Pool, open_pool
from retrieval.store.profiles import VersionRow
from retrieval.types.search import Leg
from tests.gates import report_on
from tests.processes import PATIENCE_S

QUICK_S = 0.05


def book_on(pool: Pool, *, max_age_s: float = QUICK_S) -> ProfileRegistry:
    return ProfileRegistry(pool, ModelRegistry(pool, models_dir()), max_age_s=max_age_s)


@pytest.fixture
async def profile_registry(pool: Pool) -> ProfileRegistry:
    """One in which the shipped default is live."""
    made = book_on(pool)
    await made.ship(DEFAULT, None)
    return made


@pytest.fixture
async def other(database_url: str) -> AsyncIterator[ProfileRegistry]:
    """Another process's, as far as the database can tell."""
    async with open_pool(database_url, 2) as pool:
        yield book_on(pool)


async def measured(profile_registry: ProfileRegistry, shrink: float) -> Profile:
    """A new version that passes the gate."""
    profile = await profile_registry.put("default", ProfileInput(shrink=shrink), origin="tuned")
    live = await profile_registry.find("default")
    await profile_registry.attach_report("default", profile.version, report_on(profile, live=live.label))
    return profile


async def test_a_version_that_another_process_promotes_meanwhile_is_described_or_not(
    profile_registry: ProfileRegistry, other: ProfileRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written and promoted between two of the statements that read the profile."""
    await other.find("default")
    versions, promoted = store.versions, False

    async def and_then_promote(conn: Connection, name: str) -> Sequence[VersionRow]:
        nonlocal promoted
        rows = await versions(conn, name)
        if not promoted:
            promoted = True
            await other.promote("default", (await measured(other, 0.5)).version)
        return rows

    monkeypatch.setattr(store, "versions", and_then_promote)
    assert (await profile_registry.describe("default")).live == DEFAULT.version
    described = await profile_registry.describe("default")
    assert described.live == DEFAULT.version + 1
    assert described.shown is not None
    assert described.shown.profile.shrink == 0.5


async def test_versions_count_up_and_what_is_left_out_is_as_in_the_live_one(profile_registry: ProfileRegistry) -> None:
    first = await profile_registry.put("support", ProfileInput(shrink=0.5), note="half")
    second = await profile_registry.put("support", ProfileInput(shrink=0.25, hops=1))
    assert (first.label, second.label) == ("support@1", "support@2")
    assert first == replace(DEFAULT, name="support", version=1, shrink=0.5)
    assert second == replace(DEFAULT, name="support", version=2, shrink=0.25, hops=1), "support has no live version"
    assert [(await profile_registry.version("support", number)).profile for number in (2, 1)] == [second, first]
    assert [each.note for each in (await profile_registry.describe("support")).versions] == ["", "half"]
    await profile_registry.attach_report("support", 1, report_on(first))
    await profile_registry.promote("support", 1)
    assert await profile_registry.put("support", ProfileInput(hops=3)) == replace(first, version=3, hops=3)


async def test_the_newest_parameters_again_are_no_new_version(profile_registry: ProfileRegistry) -> None:
    first = await profile_registry.put("support", ProfileInput(shrink=0.5))
    assert await profile_registry.write("support", ProfileInput(shrink=0.5), note="again") == (first, False)
    assert len((await profile_registry.describe("support")).versions) == 1


async def test_what_a_name_means(profile_registry: ProfileRegistry) -> None:
    """Without a number its live version, with a number that one, promoted or not."""
    assert (
        await profile_registry.find(None)
        == await profile_registry.find("default")
        == await profile_registry.find("default@3")
        == DEFAULT
    )
    support = await profile_registry.put("support", ProfileInput(shrink=0.5))
    assert await profile_registry.find("support@1") == support
    for wanted, message in (
        ("support", r"no version of profile 'support' is live; promote one .* trivet profile promote support"),
        ("support@2", "'support' has no version 2"),
        ("unheard-of", "there is no profile 'unheard-of'; there are: default, support"),
        ("unheard-of@1", "there is no profile 'unheard-of'"),
        ("default@latest", "'latest' is no version"),
        ("default@0", "'0' is no version"),
    ):
        with pytest.raises(InvalidInput, match=message) as refused:
            await profile_registry.find(wanted)
        assert refused.value.loc == ("profile",)


async def test_what_a_process_has_of_its_own_wins(pool: Pool, profile_registry: ProfileRegistry) -> None:
    mine = replace(DEFAULT, shrink=0.1)
    alone = replace(DEFAULT, name="alone")
    with_own = ProfileRegistry(pool, ModelRegistry(pool, models_dir()), own={"default": mine, "alone": alone})
    assert await with_own.find(None) == mine
    assert await with_own.find("alone") == alone
    await profile_registry.put("support", ProfileInput(shrink=0.5))
    assert (await with_own.find("support@1")).shrink == 0.5
    assert [each.name for each in await profile_registry.list()] == ["default", "support"]


async def test_a_promotion_needs_a_report_that_lets_it_pass(profile_registry: ProfileRegistry) -> None:
    profile = await profile_registry.put("default", ProfileInput(shrink=0.5))
    with pytest.raises(Conflict, match="default@4 has no gate report: run trivet tune or trivet profile check"):
        await profile_registry.promote("default")
    await profile_registry.attach_report("default", 4, report_on(profile, passed=False))
    with pytest.raises(Conflict, match="the gate refuses default@4: it is worse on preference"):
        await profile_registry.promote("default")
    assert await profile_registry.find(None) == DEFAULT
    await profile_registry.attach_report("default", 4, report_on(profile))
    assert await profile_registry.promote("default") == profile == await profile_registry.find(None)


async def test_a_report_on_other_parameters_is_refused(profile_registry: ProfileRegistry) -> None:
    profile = await profile_registry.put("default", ProfileInput(shrink=0.5))
    with pytest.raises(InvalidInput, match="not about the parameters of default@4"):
        await profile_registry.attach_report("default", 4, report_on(replace(profile, shrink=0.51)))
    await profile_registry.attach_report("default", 4, report_on(replace(profile, name="candidate", version=9)))


async def test_rollbacks_go_back_promotion_by_promotion(profile_registry: ProfileRegistry) -> None:
    """Twice in a row, and after a new promotion to what was live then."""
    for shrink in (0.4, 0.5, 0.6):
        newest = await measured(profile_registry, shrink)
        await profile_registry.promote("default")
    assert (await profile_registry.rollback("default")).version == 5
    assert (await profile_registry.rollback("default")).version == 4
    await profile_registry.attach_report("default", 6, report_on(newest, live="default@4"))
    await profile_registry.promote("default", 6)
    assert (await profile_registry.rollback("default")).version == 4
    assert (await profile_registry.rollback("default")).version == 3
    with pytest.raises(Conflict, match=r"nothing to roll back to.*another one in its setting `profile`"):
        await profile_registry.rollback("default")
    assert await profile_registry.find(None) == DEFAULT
    history = (await profile_registry.describe("default")).history
    assert [(each.version, each.by) for each in history] == [
        (3, "rollback"), (4, "rollback"), (6, "promote"), (4, "rollback"), (5, "rollback"),
        (6, "promote"), (5, "promote"), (4, "promote"), (3, "shipped"),
    ]  # fmt: skip


async def test_a_report_against_what_is_no_longer_live_is_refused(profile_registry: ProfileRegistry) -> None:
    """Two measured at the same time: after promoting the first, the second must be measured against it."""
    await measured(profile_registry, 0.5)
    second = await measured(profile_registry, 0.6)
    await profile_registry.promote("default", 4)
    with pytest.raises(Conflict, match="default@5 is against default@3 fixed, but default@4 is live: run"):
        await profile_registry.promote("default", 5)
    assert (await profile_registry.find(None)).version == 4
    await profile_registry.attach_report("default", 5, report_on(second, live="default@4"))
    await profile_registry.promote("default", 5)
    for version in (4, 3):
        assert (await profile_registry.rollback("default")).version == version, "a rollback asks no gate"


async def test_what_is_live_is_not_promoted_again(profile_registry: ProfileRegistry) -> None:
    """A rollback would go nowhere."""
    await profile_registry.promote("default", 3)
    await measured(profile_registry, 0.5)
    await profile_registry.promote("default")
    await profile_registry.promote("default")
    assert (await profile_registry.rollback("default")).version == 3


async def test_names_and_versions_that_there_are_not(profile_registry: ProfileRegistry) -> None:
    registry = profile_registry
    for attempt in (
        registry.version("unheard-of", None), registry.describe("unheard-of"), registry.describe("default", 9),
        registry.promote("unheard-of"), registry.promote("default", 9), registry.rollback("unheard-of"),
        registry.set_shadow("default", 9, 0.5), registry.clear_shadow("unheard-of"),
        registry.attach_report("default", 9, report_on(DEFAULT)),
    ):  # fmt: skip
        with pytest.raises(NotFound):
            await attempt
    for name in ("", "a b", "a@1", "a" * 101):
        with pytest.raises(InvalidInput):
            await profile_registry.put(name, ProfileInput())


async def test_an_upgrade_makes_the_new_shipped_version_live(profile_registry: ProfileRegistry) -> None:
    """With its own number if that is free; restarting changes nothing and does not undo a rollback."""
    newer = replace(DEFAULT, version=4, shrink=0.9)
    await profile_registry.ship(newer, report_on(newer))
    assert await profile_registry.find(None) == newer
    assert (await profile_registry.version("default", None)).report == report_on(newer)
    await profile_registry.rollback("default")
    await profile_registry.ship(newer, None)
    assert await profile_registry.find(None) == DEFAULT
    assert len((await profile_registry.describe("default")).versions) == 2


async def test_an_upgrade_with_models_trained_again_replaces_the_report(profile_registry: ProfileRegistry) -> None:
    """With the newest one, whichever version starts last."""
    former = report_on(DEFAULT)
    newer = replace(former, created_at=former.created_at + timedelta(days=1))
    for shipped, stored in ((former, former), (newer, newer), (former, newer), (None, newer)):
        await profile_registry.ship(DEFAULT, shipped)
        described = await profile_registry.describe("default")
        assert described.shown is not None
        assert (described.shown.report, len(described.versions), len(described.history)) == (stored, 1, 1)


async def test_an_upgrade_leaves_a_tuned_live_version(profile_registry: ProfileRegistry) -> None:
    tuned = await measured(profile_registry, 0.5)
    await profile_registry.promote("default")
    newer = replace(DEFAULT, version=4, shrink=0.9)
    await profile_registry.ship(newer, None)
    assert await profile_registry.find(None) == tuned
    shipped = await profile_registry.version("default", None)
    assert (shipped.profile.version, shipped.origin) == (5, "shipped"), "4 is the tuned one"
    assert (await profile_registry.promote("default")).shrink == 0.9, "without a report, for it came with the program"


async def test_another_process_sees_a_promotion(profile_registry: ProfileRegistry, other: ProfileRegistry) -> None:
    """Once its knowledge is too old; by default after a second."""
    assert await other.find(None) == DEFAULT
    tuned = await measured(profile_registry, 0.5)
    await profile_registry.promote("default")
    assert await profile_registry.find(None) == tuned, "at once in the process that did it"
    await asyncio.sleep(2 * QUICK_S)
    assert await other.find(None) == tuned


async def test_a_database_that_was_restored_may_count_to_the_same_number(
    pool: Pool, profile_registry: ProfileRegistry
) -> None:
    idle = book_on(pool, max_age_s=0)
    async with pool.connection() as conn:
        before = await (await conn.execute("select counter from profile_change")).fetchone()
        assert await idle.find(None) == DEFAULT
        tuned = await measured(profile_registry, 0.5)
        await profile_registry.promote("default")
        await conn.execute("update profile_change set counter = %s", before)
    assert await idle.find(None) == tuned


async def test_the_database_is_asked_once_in_a_while(pool: Pool, profile_registry: ProfileRegistry) -> None:
    """A thousand searches use what the first one read, until it is too old: after a second."""
    lasting, usual = book_on(pool, max_age_s=600), book_on(pool, max_age_s=MAX_AGE_S)
    for each in (lasting, usual):
        await each.find(None)
    tuned = await measured(profile_registry, 0.5)
    await profile_registry.promote("default")
    before = int(pool.get_stats()["requests_num"])
    assert {(await lasting.find(None)).label for _ in range(1_000)} == {DEFAULT.label}
    assert pool.get_stats()["requests_num"] == before
    async with asyncio.timeout(60):
        while True:
            if await usual.find(None) == tuned:
                break
            await asyncio.sleep(0.02)


def test_two_processes_that_start_together_ship_it_once(database_url: str) -> None:
    program = """
import asyncio, sys
from retrieval.profiles.models import ModelRegistry
from retrieval.installation import models_dir
from retrieval.profiles.registry import ProfileRegistry
from retrieval.profiles.profile import DEFAULT
from retrieval.store.pool import open_pool

async def main():
    async with open_pool(sys.argv[1], 4) as pool:
        books = [ProfileRegistry(pool, ModelRegistry(pool, models_dir())) for _ in range(4)]
        await asyncio.gather(*(book.ship(DEFAULT, None) for book in books))
        found = await books[0].describe("default")
        print(len(found.versions), len(found.history))

asyncio.run(main())
"""
    command = (sys.executable, "-c", program, database_url)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    assert [process.communicate(timeout=PATIENCE_S) for process in processes] == [("1 1\n", ""), ("1 1\n", "")]


async def test_writers_at_the_same_moment_get_versions_of_their_own(
    profile_registry: ProfileRegistry, other: ProfileRegistry
) -> None:
    made = await asyncio.gather(
        *((profile_registry, other)[at % 2].put("support", ProfileInput(shrink=at / 10)) for at in range(8))
    )
    assert sorted(each.version for each in made) == list(range(1, 9))


async def test_a_shadow_answers_beside_the_live_version_alone(
    profile_registry: ProfileRegistry, other: ProfileRegistry
) -> None:
    candidate = await profile_registry.put("default", ProfileInput(shrink=0.5))
    assert profile_registry.shadow_of(await profile_registry.find(None)) is None
    await profile_registry.set_shadow("default", 4, 0.1)
    await asyncio.sleep(2 * QUICK_S)
    for each in (profile_registry, other):
        assert each.shadow_of(await each.find(None)) == (candidate, 0.1)
        assert each.shadow_of(await each.find("default@4")) is None
    shown = (await profile_registry.describe("default")).shadow
    assert shown == ShadowSettings(version=4, share=0.1)
    assert (await profile_registry.list())[0].shadow == shown
    await profile_registry.clear_shadow("default")
    assert profile_registry.shadow_of(await profile_registry.find(None)) is None


async def test_a_promoted_shadow_is_none_any_more(profile_registry: ProfileRegistry) -> None:
    await measured(profile_registry, 0.5)
    await profile_registry.set_shadow("default", 4, 1.0)
    await profile_registry.promote("default", 4)
    assert (await profile_registry.describe("default")).shadow is None
    with pytest.raises(Conflict, match="default@4 is live itself"):
        await profile_registry.set_shadow("default", 4, 0.5)


async def test_a_shadow_that_is_live_again_is_none_any_more(profile_registry: ProfileRegistry) -> None:
    await measured(profile_registry, 0.5)
    await profile_registry.promote("default", 4)
    await profile_registry.set_shadow("default", 3, 1.0)
    assert (await profile_registry.rollback("default")).version == 3
    assert (await profile_registry.describe("default")).shadow is None


async def test_shadows_that_cannot_be(profile_registry: ProfileRegistry) -> None:
    await profile_registry.put("support", ProfileInput(shrink=0.5))
    with pytest.raises(Conflict, match="no version of profile 'support' is live"):
        await profile_registry.set_shadow("support", 1, 0.5)
    for share in (0.0, -0.1, 1.1, float("nan")):
        with pytest.raises(InvalidInput) as refused:
            await profile_registry.set_shadow("default", 3, share)
        assert refused.value.loc == ("share",)


async def test_numbers_that_nothing_can_be_ranked_by(profile_registry: ProfileRegistry) -> None:
    fixed, intents = DEFAULT.fixed, DEFAULT.per_intent
    without = {intent: recipe for intent, recipe in intents.items() if intent != "preference"}
    for change, loc in (
        ({"fixed": replace(fixed, weights=dict.fromkeys(Leg, 0.0))}, ("fixed", "weights")),
        ({"fixed": replace(fixed, weights={Leg.BM25: 1.0})}, ("fixed", "weights", "vector")),
        ({"fixed": replace(fixed, weights=dict.fromkeys(Leg, float("nan")))}, ("fixed", "weights", "vector")),
        ({"fixed": replace(fixed, weights=dict.fromkeys(Leg, -1.0))}, ("fixed", "weights", "*")),
        ({"per_intent": without}, ("per_intent", "preference")),
        ({"models": ModelsInput(intent="../intent.onnx")}, ("models", "intent")),
        ({"models": ModelsInput(weights="unheard-of.onnx")}, ("models", "weights")),
        ({"models": ModelsInput(intent="embedder.md")}, ("models", "intent")),
        ({"models": ModelsInput(intent="weights.onnx")}, ("models", "intent")),
        ({"models": ModelsInput(weights="sha256:" + "0" * 64)}, ("models", "weights")),
    ):
        with pytest.raises(InvalidInput) as refused:
            await profile_registry.put("bad", replace(DEFAULT, **change))
        assert refused.value.loc == loc
    with pytest.raises(NotFound):
        await profile_registry.version("bad", None)


async def test_a_model_of_the_database(pool: Pool, profile_registry: ProfileRegistry) -> None:
    """It is found by its checksum, in any process, and only as the kind it was stored as."""
    path = models_dir() / "weights.onnx"
    reference = await ModelRegistry(pool, models_dir()).put_model("weights", path)
    assert reference == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    profile = await profile_registry.put("stored", ProfileInput(models=ModelsInput(weights=reference)))
    model_registry = ModelRegistry(pool, models_dir())
    learned = await model_registry.load(profile.models)
    again = await model_registry.load(profile.models)
    assert learned.leg_weights is again.leg_weights
    assert learned.leg_weights is not (await model_registry.load(DEFAULT.models)).leg_weights
    with pytest.raises(InvalidInput, match="no model"):
        await model_registry.load(Models(intent=reference))
    with pytest.raises(InvalidInput):
        await model_registry.put_model("intent", path)


async def test_a_damaged_model_is_not_used(pool: Pool) -> None:
    model_registry = ModelRegistry(pool, models_dir())
    reference = await model_registry.put_model("weights", models_dir() / "weights.onnx")
    async with pool.connection() as conn:
        await conn.execute("update model set content = content || 'x'::bytea")
    with pytest.raises(InvalidInput, match="is damaged"):
        await model_registry.load(Models(weights=reference))


def test_the_fingerprint_is_of_the_numbers_alone() -> None:
    """Not of name and version, nor of how a number is written."""
    whole = replace(DEFAULT, fixed=replace(DEFAULT.fixed, rrf_k=5))
    point = replace(DEFAULT, name="other", version=7, fixed=replace(DEFAULT.fixed, rrf_k=5.0))
    turned = replace(DEFAULT, per_intent=dict(reversed(DEFAULT.per_intent.items())))
    assert whole.fingerprint == point.fingerprint == turned.fingerprint
    assert replace(DEFAULT, hops=1).fingerprint != DEFAULT.fingerprint
    assert replace(DEFAULT, bm25_k1=1.5).fingerprint != replace(DEFAULT, bm25_b=0.75).fingerprint != DEFAULT.fingerprint
