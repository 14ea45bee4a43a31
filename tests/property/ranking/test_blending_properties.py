"""Invariants of blending any two orders."""

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.rankings import blended

IDS = st.lists(st.sampled_from("abcdefghijkl"), min_size=1, unique=True)
SCORES = st.dictionaries(st.sampled_from("abcdefghijkl"), st.floats(-50, 50).map(lambda score: round(score, 1)))
CONFIDENCE = st.floats(0, 1)

Scores = dict[str, float]


def order(ids: list[str], scores: Scores, share: float) -> list[str]:
    return [ids[number] for number in blended(ids, scores, share).numbers]


@given(IDS, SCORES, CONFIDENCE)
def test_every_candidate_is_there_once_and_scores_descend(ids: list[str], scores: Scores, share: float) -> None:
    numbers, values = blended(ids, scores, share)
    assert sorted(numbers) == list(range(len(ids)))
    assert values == sorted(values, reverse=True)
    assert all(0 < value <= 1 / 6 + 1e-12 for value in values)


@given(IDS, SCORES)
def test_without_a_share_the_order_is_the_fusion_s(ids: list[str], scores: Scores) -> None:
    assert order(ids, scores, 0.0) == ids


@given(IDS, SCORES)
def test_with_the_whole_share_the_order_is_the_rescorer_s(ids: list[str], scores: Scores) -> None:
    got = order(ids, scores, 1.0)
    known = [id_ for id_ in ids if id_ in scores]
    assert got == sorted(known, key=lambda id_: -scores[id_]) + [id_ for id_ in ids if id_ not in scores]


@given(IDS, SCORES, CONFIDENCE)
def test_who_is_first_in_both_orders_stays_first(ids: list[str], scores: Scores, share: float) -> None:
    highest = max(scores.values(), default=0.0) + 1.0
    assert order(ids, {**scores, ids[0]: highest}, share)[0] == ids[0]


@given(IDS, SCORES, CONFIDENCE, st.data())
def test_who_is_before_another_in_both_orders_stays_before(
    ids: list[str], scores: Scores, share: float, data: st.DataObject
) -> None:
    assume(len(ids) > 1)
    first, second = sorted(data.draw(st.permutations(range(len(ids))))[:2])
    one, other = ids[first], ids[second]
    assume(other not in scores or (one in scores and scores[one] >= scores[other]))
    got = order(ids, scores, share)
    assert got.index(one) < got.index(other)


@given(IDS, SCORES, CONFIDENCE, CONFIDENCE)
def test_more_of_a_share_never_lowers_who_the_rescorer_puts_first(
    ids: list[str], scores: Scores, one: float, other: float
) -> None:
    highest = {**scores, ids[-1]: max(scores.values(), default=0.0) + 1.0}
    less, more = sorted((one, other))
    assume(more - less > 1e-6)
    places = [order(ids, highest, share).index(ids[-1]) for share in (less, more)]
    assert places[1] <= places[0]
