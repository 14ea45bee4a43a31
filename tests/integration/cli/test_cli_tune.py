"""`trivet tune` and `trivet profile check`, from labelled queries to a profile that is live."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from classifier.intents import INTENTS
from retrieval.engine import Trivet
from retrieval.profiles.profile import DEFAULT, Recipe
from retrieval.profiles.schema import StoredVersion
from retrieval.types.journal import FeedbackRequest
from retrieval.types.memory import MemoryInput
from retrieval.types.search import Leg
from tests.command import NOWHERE, trivet
from tests.folders import evaluation_folder
from tests.serving import settings_for

VECTOR_ONLY = Recipe(weights={Leg.VECTOR: 0.98, Leg.BM25: 0.01, Leg.GRAPH: 0.01}, rrf_k=5, fan_out=40)
BAD = replace(DEFAULT, fixed=VECTOR_ONLY, per_intent=dict.fromkeys(INTENTS, VECTOR_ONLY), learned_share=0.0)
"""Ranks by meaning although only a note's name identifies it."""


TOPICS = [
    ("A cat slept on the sofa all afternoon.", "Was the kitten napping on the couch"),
    ("Dinner was burnt and we ordered pizza.", "Did the cooking go wrong in the evening"),
    ("The train stood still for two hours.", "Was there a railway delay"),
    ("My grandmother turned ninety.", "Was there an old relative's birthday"),
    ("It rained through the roof of the shed.", "Did the hut leak in the storm"),
    ("The dentist pulled a tooth.", "Was there an appointment about teeth"),
    ("We planted tomatoes and beans.", "Were vegetables put into the garden"),
    ("The football team lost again.", "Was there a defeat in sports"),
]
"""What a memory tells, and a question about that in other words."""


def name_of(namespace: int, number: int) -> str:
    """A number that is neither a year nor long enough for an identifier, which would find the note in any profile."""
    return f"{3000 * namespace + 37 * number}"


def texts(namespace: int) -> dict[str, str]:
    return {
        f"note{number}": f"{name_of(namespace, number)}: {TOPICS[number % len(TOPICS)][0]}" for number in range(1, 41)
    }


WORDS = ("na", "rta", "lio", "mka", "von", "bas", "dek", "gor", "hun", "jap")


def question(namespace: int, number: int) -> str:
    """For a note by its name, with the words of what another note tells."""
    return f"{TOPICS[(number + 3) % len(TOPICS)][1]} in {name_of(namespace, number)}?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The evaluation folder `notes`: two namespaces, 60 queries with a relevant memory and one without."""
    spaces = {f"hall{space}": space for space in (1, 2)}
    rows = [
        {"id": id_, "namespace": name, "text": text}
        for name, space in spaces.items()
        for id_, text in texts(space).items()
    ]
    queries = [
        {
            "id": f"{name}.{number}",
            "namespace": name,
            "text": question(space, number),
            "type": "fact_lookup",
            "relevant": [f"note{number}"],
        }
        for name, space in spaces.items()
        for number in range(1, 31)
    ]
    queries.append({"id": "none", "namespace": "hall1", "text": "Who called?", "type": "fact_lookup", "relevant": []})
    return evaluation_folder(tmp_path / "notes", rows, queries)


def with_bad_profile(database_url: str) -> None:
    async def put() -> None:
        async with Trivet.open(settings_for(database_url)) as engine:
            await engine.profiles.put("bad", BAD)

    asyncio.run(put())


def stored(database_url: str, name: str) -> Sequence[StoredVersion]:
    async def read() -> Sequence[StoredVersion]:
        async with Trivet.open(settings_for(database_url)) as engine:
            versions = (await engine.profiles.describe(name)).versions
            return [await engine.profiles.version(name, each.version) for each in versions]

    return asyncio.run(read())


def test_a_profile_is_tuned_judged_and_promoted(database_url: str, folder: Path, tmp_path: Path) -> None:
    """It continues where it stopped, finds the same result, and refuses to promote a worse profile."""
    with_bad_profile(database_url)
    work, out, html = tmp_path / "work", tmp_path / "figures" / "tuning.json", tmp_path / "reports" / "tuning.html"
    options = ("--profile", "notes", "--from", "bad@1", "--work", work)
    done = trivet(database_url, "tune", folder, *options, "--out", out, "--html", html)
    for line in (
        "60 queries (notes 60), 1 without relevant memories skipped",
        "stored as notes@1",
        "gate: passed",
        "next: trivet profile promote notes@1",
        "by intent",
    ):
        assert line in done.stdout
    found = json.loads(out.read_text())
    assert (found["label"], found["base"], found["sets"]) == ("notes@1", "bad@1", {"notes": 60})
    assert found["profile"]["fixed"]["weights"]["vector"] < 0.9
    scores = {score["system"]: score["ndcg"]["mean"] for score in found["scores"]}
    assert scores["tuned (held out)"] > scores["bad@1"] + 0.1
    assert [point["share"] for point in found["curve"]] == [0.1, 0.25, 0.5, 1.0]
    assert found["reliability"] is not None
    text = html.read_text()
    assert text.startswith("<!doctype html>")
    assert text.count("<svg") == 4
    (version,) = stored(database_url, "notes")
    assert (version.origin, version.live, version.report is not None) == ("tuned", False, True)

    assert "to see the newest: trivet profile show notes@1\n" in trivet(database_url, "profile", "show", "notes").stdout

    (file,) = work.iterdir()
    before = file.stat().st_mtime_ns
    again = json.loads(trivet(database_url, "tune", folder, *options, "--promote", "--json").stdout)
    assert file.stat().st_mtime_ns == before
    assert again["profile"] == found["profile"]
    assert again["curve"] == found["curve"]
    assert stored(database_url, "notes")[0].live

    qrels = folder / "qrels.trec"  # for the saved queries
    qrels.write_text("".join(f"hall{space}.{number} 0 note31 1\n" for space in (1, 2) for number in range(1, 31)))
    regraded = json.loads(trivet(database_url, "tune", folder, *options, "--dry-run", "--json").stdout)
    means = {score["system"]: score["ndcg"]["mean"] for score in regraded["scores"]}
    assert max(means.values()) < scores["bad@1"]
    qrels.unlink()

    assert (
        "`trivet profile show bad` lists them"
        in trivet(database_url, "profile", "check", "bad", folder, status=2).stderr
    )
    refused = trivet(database_url, "profile", "check", "bad@1", folder, status=1)
    assert refused.stdout.startswith("1 query without relevant memories skipped\n")
    assert "gate: refused bad@1" in refused.stdout
    assert "below that of default@" in refused.stdout
    assert "the gate refuses bad@1" in trivet(database_url, "profile", "promote", "bad@1", status=1).stderr


def test_a_version_is_checked_as_it_is_served(database_url: str, tmp_path: Path) -> None:
    """By its order of time, too, which does not depend on the legs' results."""
    flat = tmp_path / "flat.json"
    names = [f"{first}{last}" for first in ("An", "Be", "Cle", "Do", "Ed", "Fi") for last in WORDS]
    rows = [
        {"id": f"{name}{year}", "namespace": "n", "text": f"{name} lives in {city}.", "timestamp": f"{year}-03-01"}
        for name in names
        for year, city in ((2020, "Oslo"), (2023, "Graz"))
    ]
    asked = [
        {
            "id": name,
            "namespace": "n",
            "text": f"Where did {name} live before?",
            "type": "t",
            "relevant": [f"{name}2020"],
        }
        for name in names
    ]
    folder = evaluation_folder(tmp_path / "moves", rows, asked)
    flat.write_text('{"period_weight": 0}')
    trivet(database_url, "profile", "put", "flat", flat, "--note", "Flat.\n  9: tuned, gate passed")
    assert "  Flat.   9: tuned" in trivet(database_url, "profile", "show", "flat").stdout, "it begins no line"
    refused = trivet(database_url, "profile", "check", "flat@1", folder, status=1)
    assert "below that of default@3 fixed" in refused.stdout


def test_a_dry_run_stores_nothing(database_url: str, folder: Path, tmp_path: Path) -> None:
    with_bad_profile(database_url)
    options = ("--profile", "bad", "--from", "bad@1", "--work", tmp_path, "--limit", "50", "--dry-run", "--folds", "2")
    done = trivet(database_url, "tune", folder, *options)
    assert "found, not stored" in done.stdout
    assert [version.profile.version for version in stored(database_url, "bad")] == [1]


def test_feedback_is_learned_from(database_url: str, tmp_path: Path) -> None:
    """Once there is enough, with each search counted once; before that the error has the numbers."""
    with_bad_profile(database_url)

    async def judge(first: int, last: int) -> None:
        async with Trivet.open(settings_for(database_url)) as engine:
            await engine.add("hall", [MemoryInput(id=id_, text=text) for id_, text in texts(1).items()])
            for number in range(first, last + 1):
                note = 1 + number % 40
                asked = question(1, note) + " Please." * (number // 40)
                shown = [f"note{note}"]
                judged = FeedbackRequest(query=asked, shown=shown, clicked=shown)
                for each in (judged, msgspec.structs.replace(judged, relevant=shown)):
                    await engine.journal.add_feedback("hall", each)

    async def judge_irrelevant() -> None:
        async with Trivet.open(settings_for(database_url)) as engine:
            judged = FeedbackRequest(query="Who called?", shown=["note1"], irrelevant=["note1"])
            await engine.journal.add_feedback("hall", judged)

    work = tmp_path / "work"
    options = ("tune", "--from-feedback", "-n", "hall", "--profile", "hall", "--from", "bad@1", "--work", work)
    asyncio.run(judge(1, 49))
    done = trivet(database_url, *options, status=1)
    assert "feedback on 49 searches, 49 of them with anything relevant, rated or clicked" in done.stderr
    asyncio.run(judge(50, 60))
    asyncio.run(judge_irrelevant())
    found = json.loads(trivet(database_url, *options, "--json").stdout)
    assert (found["source"], found["sets"], found["label"]) == ("feedback of namespace hall", {"hall": 60}, "hall@1")
    assert found["skipped"] == 1
    assert found["profile"]["fixed"]["weights"]["vector"] < 0.9
    assert not list(work.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--profile", "mine"], "name evaluation folders, or --from-feedback"),
        (["--profile", "mine", "--from-feedback"], "go together"),
        (["--profile", "a b", "FOLDER"], "Invalid value for '--profile': must be"),
        (["FOLDER"], "--profile"),
        (["--profile", "mine", "--seed", "-1", "FOLDER"], "-1 is not in the range x>=0"),
    ],
)
def test_bad_usage_is_told_before_a_database_is_opened(folder: Path, options: list[str], message: str) -> None:
    arguments = [str(folder) if option == "FOLDER" else option for option in options]
    assert message in trivet(NOWHERE, "tune", *arguments, status=2).stderr
