"""The replay gives the same results as the pipeline's own functions."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from classifier.inference import IntentPrediction
from classifier.intents import INTENTS
from retrieval.evaluation.metrics import ndcg
from retrieval.legs.base import LegRanking
from retrieval.profiles.profile import DEFAULT, Models, Profile, Recipe
from retrieval.ranking.noise import cut_noise, truncate
from retrieval.ranking.weighting import adaptive_weighting, allowing_for_fragments, with_learned_weights
from retrieval.tuning.grid import MIXTURES, RRF_KS, SHAPE, recipe_at, tabulate
from retrieval.tuning.replay import CUTOFF, Recipes, adaptive_recipes, batch_of, quality, weights_of
from retrieval.tuning.runs import DEPTHS, Rescoring, SavedQuery
from retrieval.types.search import Leg
from tests.examples import share_of_examples
from tests.rankings import blended, ranking_of, weighted_rrf
from tests.tuned import saved


def query_of(rng: random.Random, number: int) -> SavedQuery:
    """Rankings over few ids, so that they meet, with scores that fall below the noise somewhere."""

    def hits() -> list[tuple[str, float]]:
        ids = rng.sample([f"m{i:02}" for i in range(60)], rng.choice([0, 3, 12, 50]))
        return [(id_, score) for id_, score in zip(ids, sorted((rng.random() for _ in ids), reverse=True), strict=True)]

    shares = [rng.random() for _ in INTENTS]
    fact, relation, preference, open_ended = (share / sum(shares) for share in shares)
    learned = [rng.random() + 0.01 for _ in Leg]
    v, b, g = (each / sum(learned) for each in learned)
    query = saved(
        number,
        vector=hits(),
        bm25=hits(),
        graph=hits(),
        gains=dict.fromkeys(rng.sample([f"m{i:02}" for i in range(60)], rng.randint(1, 15)), 1.0),
        probabilities=(fact, relation, preference, open_ended),
        learned=(v, b, g),
        fragment_share=rng.choice([0.0, rng.random()]),
        rescored=Rescoring(
            share=rng.choice([0.0, rng.random(), 1.0]),
            scores={f"m{number:02}": rng.random() for number in rng.sample(range(60), rng.choice([0, 30, 60]))},
            identified=[f"m{number:02}" for number in rng.sample(range(60), rng.choice([0, 1, 9]))],
        ),
    )
    return replace(query, in_domain=rng.choice([rng.random(), 1.0]))


def recipe_of(rng: random.Random, *, fan_out: int) -> Recipe:
    """Weights for which no two sums differ only by the order of summation."""
    weights = {leg: rng.choice([0.0, rng.uniform(0.1, 1.0)]) for leg in Leg} | {rng.choice(list(Leg)): 0.3}
    return Recipe(weights=weights, rrf_k=rng.uniform(1.0, 60.0), fan_out=fan_out)


@dataclass
class AsServed:
    """The pipeline's functions on a saved query."""

    query: SavedQuery
    profile: Profile

    def rankings(self, fan_out: int) -> dict[Leg, LegRanking]:
        depth = max(fan_out, 2 * CUTOFF)
        found = {leg: ranking_of((id_, int(id_[1:]), score) for id_, score in self.query.hits(leg, 80)) for leg in Leg}
        return truncate(found, depth)

    def ndcg(self, recipe: Recipe) -> float:
        rankings = self.rankings(recipe.fan_out)
        identified = {int(id_[1:]) for id_ in self.query.rescored[DEPTHS[0]].identified if self.profile.rescore}
        heard = cut_noise(rankings, self.profile, enough=CUTOFF, identified=identified)
        fused = self.fused(heard, recipe)
        if len(fused) < CUTOFF and heard != rankings:
            fused = self.fused(rankings, recipe)
        return ndcg(fused, dict.fromkeys(self.query.gains, 1), cutoff=CUTOFF)

    def fused(self, rankings: dict[Leg, LegRanking], recipe: Recipe) -> list[str]:
        ids = {leg: [hit.id for hit in ranking.hits] for leg, ranking in rankings.items()}
        fused = [each.id for each in weighted_rrf(ids, recipe.weights, rrf_k=recipe.rrf_k)]
        if not self.profile.rescore:
            return fused
        said = self.query.rescored[DEPTHS[0]]
        order = [fused[number] for number in blended(fused, said.scores, said.share).numbers]
        return sorted(order, key=lambda id_: id_ not in said.identified)

    def adaptive(self) -> Recipe:
        probabilities = dict(zip(INTENTS, self.query.probabilities, strict=True))
        prediction = IntentPrediction(probabilities=probabilities, in_domain=self.query.in_domain)
        mixed = adaptive_weighting(prediction, self.profile)
        learned = dict(zip(Leg, self.query.learned[DEPTHS[0]], strict=True))
        weights = {leg.value: weight for leg, weight in learned.items()}
        weighting = with_learned_weights(mixed, weights, self.profile)
        return allowing_for_fragments(weighting, self.query.fragment_share).recipe


@settings(max_examples=share_of_examples(0.8))
@given(st.integers(0, 10_000), st.sampled_from(DEPTHS), st.sampled_from([0.0, 0.4, 1.0]))
def test_any_profile_is_replayed_as_it_would_be_served(seed: int, fan_out: int, trust: float) -> None:
    rng = random.Random(seed)
    queries = [query_of(rng, number) for number in range(4)]
    profile = replace(
        DEFAULT,
        fixed=recipe_of(rng, fan_out=fan_out),
        per_intent={intent: recipe_of(rng, fan_out=fan_out) for intent in INTENTS},
        learned_share=trust,
        shrink=rng.choice([0.0, 0.5, 1.0, 3.0]),
        vector_noise=rng.choice([0.1, 0.4, 2.0]),
        bm25_noise=rng.choice([0.0, 0.3, 0.8]),
        rescore=rng.random() < 0.5,
        models=Models(rescorer="rescorer.onnx"),
    )
    batch = batch_of(queries, profile)
    served = [AsServed(query, profile) for query in queries]
    fixed = quality(batch, Recipes.same(profile.fixed, len(batch)))
    assert fixed == pytest.approx([each.ndcg(profile.fixed) for each in served], abs=1e-9)
    recipes, expected = adaptive_recipes(batch, profile), [each.adaptive() for each in served]
    assert recipes.weights == pytest.approx(np.array([weights_of(each) for each in expected]))
    assert recipes.rrf_k == pytest.approx([each.rrf_k for each in expected])
    adaptive = quality(batch, recipes)
    assert adaptive == pytest.approx([each.ndcg(each.adaptive()) for each in served], abs=1e-9)


@settings(max_examples=share_of_examples(0.1))
@given(st.integers(0, 10_000))
def test_the_table_holds_what_replaying_gives(seed: int) -> None:
    """At any recipe of the grid, with the weights moved towards the learned ones."""
    rng = random.Random(seed)
    queries = [query_of(rng, number) for number in range(3)]
    profile = replace(DEFAULT, rescore=seed % 2 == 1, models=Models(rescorer="rescorer.onnx"))
    table = tabulate(queries, profile, (0.0, 0.5, 1.0))
    for _ in range(20):
        at = rng.randrange(len(DEPTHS) * len(RRF_KS) * len(MIXTURES))
        recipe = recipe_at(at)
        batch = batch_of(queries, profile, recipe.fan_out)
        same = Recipes.same(recipe, len(queries))
        assert table.values[0][:, at] == pytest.approx(quality(batch, same), abs=1e-6)
        learned = np.array([query.learned[recipe.fan_out] for query in queries])
        for row, trust in enumerate((0.5, 1.0), start=1):
            moved = (1 - trust) * same.weights + trust * learned
            recipes = Recipes(weights=moved, rrf_k=same.rrf_k, fan_out=same.fan_out)
            assert table.values[row][:, at] == pytest.approx(quality(batch, recipes), abs=1e-6)
    assert table.values.shape == (3, 3, int(np.prod(SHAPE)))


def test_a_duplicate_is_found_where_its_twin_stands() -> None:
    """And shares its rank: `gold` and its twin count as one memory of the answer."""
    hits = [("a", 0.9), ("twin", 0.8), ("b", 0.7), ("gold", 0.6), *((f"z{i:02}", 0.5) for i in range(20))]
    plain, folded = (saved(1, vector=hits, duplicates=groups) for groups in ([], [["twin", "gold"]]))
    profile = replace(DEFAULT, vector_noise=2.0)
    recipes = Recipes.same(Recipe(weights={Leg.VECTOR: 1.0, Leg.BM25: 0.0, Leg.GRAPH: 0.0}, rrf_k=5, fan_out=20), 1)
    assert quality(batch_of([plain], profile), recipes) == pytest.approx([1 / np.log2(5)])
    assert quality(batch_of([folded], profile), recipes) == pytest.approx([1 / np.log2(3)])


def test_relevant_memories_that_change_places_are_a_tie() -> None:
    """In any order of summation: paired tests count a win wherever one score is above another."""
    gains = dict.fromkeys("abc", 1.0)
    found = [saved(1, vector=[*zip(order, (0.9, 0.8, 0.7), strict=True)], gains=gains) for order in permutations("abc")]
    recipes = Recipes.same(Recipe(weights={Leg.VECTOR: 1.0, Leg.BM25: 0.0, Leg.GRAPH: 0.0}, rrf_k=5, fan_out=20), 6)
    assert len({*quality(batch_of(found, replace(DEFAULT, vector_noise=2.0)), recipes).tolist()}) == 1


def test_two_relevant_twins_take_two_places_as_they_are_judged() -> None:
    hits = [("gold", 0.9), ("twin", 0.8), ("also", 0.7), *((f"z{i:02}", 0.5) for i in range(20))]
    gains = {"gold": 1.0, "twin": 1.0, "also": 1.0}
    query = saved(1, vector=hits, gains=gains, duplicates=[["gold", "twin"]])
    recipes = Recipes.same(Recipe(weights={Leg.VECTOR: 1.0, Leg.BM25: 0.0, Leg.GRAPH: 0.0}, rrf_k=5, fan_out=20), 1)
    assert quality(batch_of([query], replace(DEFAULT, vector_noise=2.0)), recipes) == pytest.approx([1.0])
