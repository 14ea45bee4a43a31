"""Learning how likely a candidate is to answer: queries without an answer, calibration."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from classifier.leg_weights import LEGS
from tests.rescorable import example, examples, learned, require_training, rescored

require_training()

from classifier.candidates import describe  # noqa: E402
from classifier.training.relevance import fit_relevance, without_answer  # noqa: E402
from classifier.training.rescorer import RISES, left_out_groups  # noqa: E402


def test_without_its_answer_a_query_keeps_everything_else_in_order() -> None:
    some = example(3)
    left = without_answer(some)
    assert left is not None
    assert not left.relevant
    assert list(left.known.ids) == [each for each in some.known.ids if each not in some.relevant]
    for leg in LEGS:
        before, after = getattr(some.evidence, leg), getattr(left.evidence, leg)
        kept = [pair for pair in zip(before.ids, before.scores, strict=True) if pair[0] not in some.relevant]
        assert list(zip(after.ids, after.scores, strict=True)) == kept
    assert len(describe(left.evidence, left.known).rows) == len(left.known.ids)


def test_a_query_of_which_only_the_answer_was_found_is_left_out() -> None:
    some = example(3)
    assert without_answer(structs.replace(some, relevant=frozenset(some.known.ids))) is None


def test_relevance_tells_the_gold_of_unseen_queries_and_is_as_frequent_as_it_says() -> None:
    rescorer = learned()
    gold: list[float] = []
    others: list[float] = []
    for each in examples(80, first=2_000):
        for memory_id, relevance in zip(
            each.known.ids, rescored(rescorer, each).relevance(each.known.ids), strict=True
        ):
            assert 0 <= relevance <= 1
            (gold if memory_id in each.relevant else others).append(relevance)
    assert np.median(gold) > 3 * np.median(others)
    expected, real = np.mean([*gold, *others]), len(gold) / (len(gold) + len(others))
    assert expected == pytest.approx(real, rel=0.5)


def test_queries_without_an_answer_are_learned_from_and_each_set_is_judged_by_the_others() -> None:
    some = examples(120)
    mixed = [*some[:100], *(left for each in some[100:] if (left := without_answer(each)) is not None)]
    fitted = fit_relevance(mixed, RISES, left_out_groups(mixed))
    assert fitted.slope > 0
    assert fitted.figures.keys() == {each.set for each in mixed}
    assert all(each.auroc > 0.6 for each in fitted.figures.values())
