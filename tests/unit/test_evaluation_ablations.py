"""Switching off parts of a profile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from classifier.intents import Intent
from retrieval.errors import InvalidInput
from retrieval.evaluation.ablations import ABLATIONS, ablated, parse_parts
from retrieval.evaluation.systems import ablations
from retrieval.profiles import DEFAULT, Profile
from retrieval.types import Mode


def weights(vector: float, bm25: float, graph: float) -> dict[str, float]:
    """Weights by leg."""
    return {"vector": vector, "bm25": bm25, "graph": graph}


PROFILE = Profile(
    name="p",
    version=3,
    rrf_k=10,
    fan_out=40,
    fixed=weights(0.4, 0.4, 0.2),
    per_intent={intent: weights(0.3, 0.1, 0.6) for intent in Intent},
    shrink=0.5,
)


def test_a_leg_loses_its_weight_to_the_others_by_hand() -> None:
    """.4 : .4 without the graph are halves; .3 : .1 are three quarters and one."""
    found = ABLATIONS["graph"](PROFILE)
    assert found.fixed == pytest.approx(weights(0.5, 0.5, 0.0))
    for intent in Intent:
        assert found.per_intent[intent] == pytest.approx(weights(0.75, 0.25, 0.0))
    assert replace(found, fixed=PROFILE.fixed, per_intent=PROFILE.per_intent) == PROFILE


@pytest.mark.parametrize("part", ["vector", "bm25", "graph"])
def test_every_leg_can_go(part: str) -> None:
    """Its weight is 0 and the rest sums to 1, fixed and in every intent."""
    found = ABLATIONS[part](PROFILE)
    for left in (found.fixed, *found.per_intent.values()):
        assert left[part] == 0.0
        assert sum(left.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("part", ABLATIONS)
def test_every_part_is_on_by_default(part: str) -> None:
    """To switch off what is off already would measure nothing."""
    assert ABLATIONS[part](DEFAULT) != DEFAULT


def test_a_profile_without_its_only_leg_is_refused() -> None:
    """Nothing would rank."""
    lone = replace(PROFILE, fixed=weights(0.0, 0.0, 1.0))
    with pytest.raises(InvalidInput, match="profile p@3 ranks by graph alone"):
        ablated(["graph"], lone)


def test_ablated_profiles_have_names_that_requests_can_ask_for() -> None:
    """The name of a system's profile is one of them, and the profile is ablated."""
    found = ablated(["vector", "graph"], PROFILE)
    assert list(found) == ["p-without-vector", "p-without-graph"]
    assert found["p-without-graph"].name == "p-without-graph"
    assert found["p-without-graph"].fixed["graph"] == 0.0


def test_parts_are_parsed() -> None:
    """`all` is all of them; an unknown one is named with those that there are."""
    assert parse_parts("all") == list(ABLATIONS)
    with pytest.raises(InvalidInput, match=r"'graf' cannot be switched off; what can: vector, bm25, graph"):
        parse_parts("vector,graf")


def test_ablations_are_systems_in_adaptive_mode() -> None:
    """Each asks for its own profile; the one without sessions for the default on another corpus."""
    graph, sessions = ablations("graph", without_sessions=True)
    assert (graph.mode, graph.profile, graph.sessions) == (Mode.ADAPTIVE, "default-without-graph", True)
    assert (sessions.mode, sessions.profile, sessions.sessions) == (Mode.ADAPTIVE, None, False)
    assert graph.is_ablation
    assert sessions.is_ablation
    assert graph.request("q", 10).profile == graph.context_request("q", 512).profile == "default-without-graph"
    assert ablations(None, without_sessions=False) == []
