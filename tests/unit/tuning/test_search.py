"""The search: it finds the best leg for each intent, and nothing if there is nothing to find."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest
from msgspec.structs import replace

from classifier.intents import Intent
from retrieval.tuning.replay import JudgedQueries
from retrieval.tuning.runs import SavedQuery
from retrieval.tuning.search import Fitter, Study, data_of, fit, folds, study, without
from retrieval.types.search import Leg
from tests.tuned import BASE, found_by, saved, sure


def query(number: int, rng: random.Random, right: Leg, intent: Intent = Intent.FACT_LOOKUP) -> SavedQuery:
    return found_by(right, number, rng, probabilities=sure(intent), namespace=f"n{number % 4}")


def studied(queries: list[SavedQuery], *, seed: int = 0) -> Study:
    return study(data_of(queries, BASE), count=2, seed=seed)


def test_the_leg_that_is_right_gains_weight() -> None:
    rng = random.Random(1)
    found = studied([query(number, rng, Leg.BM25) for number in range(60)])
    assert found.final.settings is not None
    weights = found.final.profile.fixed.weights
    assert weights[Leg.BM25] > weights[Leg.VECTOR]
    assert weights[Leg.BM25] > weights[Leg.GRAPH]
    present = JudgedQueries(found.data.queries, BASE).adaptive(BASE)
    assert found.held_out[1.0].mean() > present.mean() + 0.05


def test_intents_that_ask_for_different_legs_get_different_recipes() -> None:
    rng = random.Random(2)
    queries = [query(n, rng, Leg.BM25, Intent.FACT_LOOKUP) for n in range(80)]
    queries += [query(80 + n, rng, Leg.VECTOR, Intent.PREFERENCE) for n in range(80)]
    profile = studied(queries).final.profile
    fact, preference = profile.per_intent[Intent.FACT_LOOKUP], profile.per_intent[Intent.PREFERENCE]
    assert fact.weights[Leg.BM25] > fact.weights[Leg.VECTOR]
    assert preference.weights[Leg.VECTOR] > preference.weights[Leg.BM25]


def test_nothing_is_found_where_nothing_is_better() -> None:
    """Whether any leg is right is chance: the base stays."""
    rng = random.Random(3)
    queries = [query(number, rng, rng.choice(list(Leg))) for number in range(60)]
    found = studied(queries)
    assert found.final.settings is None
    assert found.final.profile == BASE


def test_the_same_seed_gives_the_same_profile_bit_for_bit() -> None:
    rng = random.Random(4)
    queries = [query(n, rng, rng.choice([Leg.BM25, Leg.BM25, Leg.GRAPH])) for n in range(60)]
    one, other = studied(queries, seed=7), studied(queries, seed=7)
    assert one.final == other.final
    for share, values in one.held_out.items():
        assert np.array_equal(values, other.held_out[share])


def test_a_fit_sees_only_its_rows() -> None:
    """The other queries make no difference."""
    rng = random.Random(5)
    ours = [query(number, rng, Leg.BM25) for number in range(40)]
    others = [[query(40 + number, rng, leg) for number in range(40)] for leg in (Leg.VECTOR, Leg.GRAPH)]
    fits = [fit(data_of([*ours, *theirs], BASE), np.arange(40), seed=0) for theirs in others]
    assert fits[0] == fits[1]
    assert fits[0].settings is not None


def test_a_fit_copies_no_more_than_a_part_of_the_table() -> None:
    rng = random.Random(8)
    data = data_of([query(number, rng, Leg.BM25) for number in range(10)], BASE)
    rows = np.tile(np.arange(10), 40)
    tracemalloc.start()
    Fitter(data, rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < data.table.values[:, rows].astype(np.float64).nbytes


def test_learned_weights_are_trusted_as_far_as_they_help() -> None:
    """The best leg differs by query, and only the learned weights know it."""
    rng = random.Random(6)
    queries = []
    for number in range(80):
        right = rng.choice(list(Leg))
        knows = tuple(0.96 if leg is right else 0.02 for leg in Leg)
        queries.append(replace(query(number, rng, right), learned=dict.fromkeys((20, 40, 80), knows)))
    assert studied(queries).final.profile.learned_share > BASE.learned_share


@pytest.mark.parametrize("count", [2, 5])
def test_folds_keep_namespaces_whole_and_miss_nobody(count: int) -> None:
    rng = random.Random(7)
    queries = [saved(n, namespace=f"n{rng.randrange(9)}", set_="chat") for n in range(90)]
    queries += [saved(90 + n, set_="manual", asked=f"words {n // 2}") for n in range(40)]
    parts = folds(queries, count, seed=0)
    assert len(parts) == count
    assert sorted(np.concatenate(parts).tolist()) == list(range(130))
    for part in parts:
        rest = without(part, 130)
        assert not {queries[row].namespace for row in part if row < 90} & {
            queries[row].namespace for row in rest if row < 90
        }
        assert not {queries[row].asked for row in part if row >= 90} & {queries[row].asked for row in rest if row >= 90}
        assert {queries[row].set for row in part} == {"chat", "manual"}


def test_few_namespaces_make_few_folds() -> None:
    queries = [saved(n, namespace=f"n{n % 3}") for n in range(30)]
    assert len(folds(queries, 5, seed=0)) == 3
