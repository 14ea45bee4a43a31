"""Replaying a saved query gives the search's answer."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from classifier.intents import INTENTS
from retrieval.engine import Trivet
from retrieval.evaluation.folder import read_folders
from retrieval.evaluation.runner import ingest
from retrieval.profiles.profile import DEFAULT, Profile, Recipe
from retrieval.tuning.collection import collect, uncut_profiles
from retrieval.tuning.labels import JudgedQuery, labelled_queries
from retrieval.tuning.replay import Recipes, adaptive_recipes, batch_of, quality
from retrieval.tuning.runs import RunFile
from retrieval.types.search import Leg, Mode, SearchRequest
from tests.folders import evaluation_folder
from tests.serving import settings_for

PEOPLE = ["Ana", "Ben", "Cleo", "Dov", "Edda", "Filip"]
THINGS = ["kettle", "piano", "ferry", "garden", "bicycle", "lamp", "violin", "stove", "boat", "camera", "map", "tent"]
PLACES = ["Lisbon", "Oslo", "Turin", "Ghent", "Riga", "Porto", "Bergen", "Graz"]


def weights(vector: float, bm25: float, graph: float, *, rrf_k: float, fan_out: int) -> Recipe:
    return Recipe(weights={Leg.VECTOR: vector, Leg.BM25: bm25, Leg.GRAPH: graph}, rrf_k=rrf_k, fan_out=fan_out)


LEANING = replace(
    DEFAULT,
    name="leaning",
    version=4,
    fixed=weights(0.1, 0.6, 0.3, rrf_k=20, fan_out=20),
    per_intent=dict.fromkeys(INTENTS, weights(0.7, 0.2, 0.1, rrf_k=2, fan_out=20)),
    learned_share=0.4,
    shrink=0.5,
    bm25_noise=0.6,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An evaluation folder of one namespace; its gold is not used."""
    rng = random.Random(0)
    rows, queries = [], []
    for number in range(150):
        who, what, where = rng.choice(PEOPLE), rng.choice(THINGS), rng.choice(PLACES)
        text = f"{who}: I bought the {what} number {number} in {where} for {rng.randint(3, 900)} euros."
        rows.append({"id": f"m{number:03}", "namespace": "home", "text": text, "speaker": who})
    rows += [{"id": f"x{n}", "namespace": "home", "text": f"{n} euros for the ferry (PO-77120)."} for n in range(2)]
    for number in range(13):
        who, what, where = rng.choice(PEOPLE), rng.choice(THINGS), rng.choice(PLACES)
        text = [f"What did {who} buy in {where}?", f"Where is the {what} of {who} from?", "What could I cook?"][
            number % 3
        ]
        if number == 12:
            text = f"Did {who} pay PO-77120 for the {what} in {where}?"
        intent = {"intent": "relationship"} if number == 1 else {}
        queries.append(
            {
                "id": f"q{number}",
                "namespace": "home",
                "text": text,
                "type": "t",
                "relevant": ["m001"],
                "metadata": intent,
            }
        )
    return evaluation_folder(tmp_path / "toy", rows, queries)


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[Trivet]:
    """An engine that knows the profiles, and those used to run their legs."""
    asked = [LEANING, *uncut_profiles(DEFAULT), *uncut_profiles(LEANING)]
    settings = settings_for(database_url)
    async with Trivet.open(settings, profiles={profile.name: profile for profile in asked}) as opened:
        yield opened


@pytest.mark.parametrize("profile", [DEFAULT, LEANING], ids=["default", "leaning"])
async def test_a_replay_ranks_as_a_search(engine: Trivet, folder: Path, tmp_path: Path, profile: Profile) -> None:
    """Each memory of an answer is used as the gold in turn, which shows its rank in the replay."""
    (read,) = read_folders([folder])
    await ingest(engine, read, read.stored_name)
    labelled = labelled_queries(read, limit=None, seed=0)
    found = await collect(engine, labelled, profile, RunFile(tmp_path / "runs.jsonl", "key"), concurrency=2)
    assert found[1].intent == "relationship"
    for mode in (Mode.HYBRID, Mode.ADAPTIVE):
        for each, saved in zip(labelled, found, strict=True):
            request = SearchRequest(query=each.query.text, mode=mode, profile=profile.label)
            answer = await engine.search(each.searched, request)
            golds = [replace(saved, gains={result.id: 1.0}) for result in answer.results]
            batch = batch_of(golds, profile)
            fixed, adaptive = Recipes.same(profile.fixed, len(batch)), adaptive_recipes(batch, profile)
            worth = quality(batch, fixed if mode is Mode.HYBRID else adaptive)
            places = (2 ** (1 / worth) - 1).round(6).tolist()
            assert places == list(range(1, len(answer.results) + 1)), each.query.text


async def test_what_was_asked_is_not_asked_again(engine: Trivet, folder: Path, tmp_path: Path) -> None:
    """A run continues where it stopped, with the current labels."""
    (read,) = read_folders([folder])
    await ingest(engine, read, read.stored_name)
    labelled = labelled_queries(read, limit=5, seed=3)
    assert len(labelled) == 5
    file, told = RunFile(tmp_path / "runs.jsonl", "key"), list[int]()
    first = await collect(engine, labelled[:3], DEFAULT, file, concurrency=2, progress=told.append)
    whole = await collect(engine, labelled, DEFAULT, file, concurrency=2, progress=told.append)
    assert whole[:3] == first
    assert sum(told) == 5
    regraded = JudgedQuery(
        query=labelled[0].query, set="toy", searched=labelled[0].searched, intent=None, gains={"m002": 0.5}, weight=2.0
    )
    (again,) = await collect(engine, [regraded], DEFAULT, file, concurrency=1, progress=told.append)
    assert (again.gains, again.weight, again.rankings) == ({"m002": 0.5}, 2.0, whole[0].rankings)
    assert sum(told) == 5
