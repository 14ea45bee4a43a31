"""The systems selected by the options."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import pytest
from msgspec.structs import replace

from retrieval.errors import InvalidInput
from retrieval.evaluation.folder import Query
from retrieval.evaluation.provenance import model_checksums, provenance_of
from retrieval.evaluation.study import EvaluationPlan
from retrieval.evaluation.systems import Family, Lineup, line_up, parse_profiles
from retrieval.profiles.profile import DEFAULT, Models, Profile
from retrieval.types.search import ChatMessage, Filters, Leg, Mode

asked = partial(
    line_up, modes=None, weights=(), stages=False, profiles=None, base="default", parts=(), without_sessions=False
)
"""The line-up of some options, the others left out."""

MINE = replace(DEFAULT, name="mine", version=4)
FOUND: dict[str, Profile] = {"default": DEFAULT, "mine": MINE, "mine@2": replace(MINE, version=2)}


def names(lineup: Lineup) -> list[str]:
    """The systems by name."""
    return [system.name for system in lineup.systems(FOUND)]


def test_without_options_every_mode_runs() -> None:
    """With equal weights, which come with adaptive."""
    assert names(asked()) == ["vector", "bm25", "graph", "hybrid", "adaptive", "weights=1,1,1"]
    assert names(asked(modes="bm25", weights=["1,0,0.5", "1, 0, 0.5"])) == ["bm25", "weights=1,0,0.5"]


QUERY = Query("q", "n", "What then?", "fact", ["a"])


def test_what_is_searched_for_is_the_question_as_it_was_asked() -> None:
    """At its time, among memories from before its session, with what it refers to."""
    query = Query(
        "q", "n", "And in winter?", "fact", ["a"],
        timestamp="2024-05-02T10:00:00", created_before="2024-05-02T09:59:30", created_before_session="2024-05-02",
        messages=[ChatMessage(role="user", content="Where does Ines swim?")],
    )  # fmt: skip
    request = asked(stages=True, base="mine").systems(FOUND)[0].request(query, 10)
    assert "Where does Ines swim?" in request.query
    assert request.query_timestamp == datetime(2024, 5, 2, 10, tzinfo=UTC)
    assert request.filters == Filters(created_before=datetime(2024, 5, 2, tzinfo=UTC))


def test_a_question_keeps_its_filters_and_its_time() -> None:
    """In searches and context packs."""
    filters = Filters(speaker=["Ana"], created_before=datetime(2024, 5, 9, tzinfo=UTC))
    query = replace(QUERY, filters=filters, as_of="2024-06-01", created_before="2024-05-02")
    (system,) = asked(modes="bm25").systems(FOUND)[:1]
    for request in (system.request(query, 10), system.context_request(query, 512)):
        assert request.filters == Filters(speaker=["Ana"], created_before=datetime(2024, 5, 2, tzinfo=UTC))
        assert request.as_of == datetime(2024, 6, 1, tzinfo=UTC)
    assert system.request(replace(query, created_before=None), 10).filters == filters


def test_the_stages_are_four_searches() -> None:
    """Fixed or adaptive weights, without and with the rescorer, whatever the profile says of it."""
    systems = asked(stages=True, base="mine").systems(FOUND)
    assert [(system.name, system.mode, system.rescore) for system in systems] == [
        ("rrf-fixed", Mode.HYBRID, False),
        ("rrf-adaptive", Mode.ADAPTIVE, False),
        ("rrf-fixed+rescorer", Mode.HYBRID, True),
        ("all", Mode.ADAPTIVE, True),
    ]
    assert {system.family for system in systems} == {Family.STAGE}
    for system in systems:
        request, context = system.request(QUERY, 10), system.context_request(QUERY, 512)
        assert request.profile == context.profile == "mine:4"
        assert request.rescore is context.rescore is system.rescore


def test_profiles_are_systems_in_adaptive_mode() -> None:
    """Named as requested, searched with that exact version."""
    lineup = asked(profiles="default,mine@2, mine")
    assert lineup.profile_names == ["default", "mine@2", "mine"]
    assert [(system.name, system.mode, system.profile, system.rescore) for system in lineup.systems(FOUND)] == [
        ("profile=default", Mode.ADAPTIVE, "default:3", None),
        ("profile=mine@2", Mode.ADAPTIVE, "mine:2", None),
        ("profile=mine", Mode.ADAPTIVE, "mine:4", None),
    ]


def test_parts_are_those_of_the_base_profile() -> None:
    """They come with the mode they are compared with; the engine is opened with the profiles they request."""
    lineup = asked(stages=True, parts=["graph"], without_sessions=True, base="mine")
    systems = lineup.systems(FOUND)
    assert [system.name for system in systems[-2:]] == ["without-graph", "without-sessions"]
    assert {system.family for system in systems[-2:]} == {Family.PART}
    assert [system.name for system in systems[:2]] == ["adaptive", "weights=1,1,1"]
    assert (systems[-2].profile, systems[-1].profile, systems[-1].sessions) == ("mine-without-graph", "mine:4", False)
    requestable = lineup.requestable({"mine": MINE})
    assert {system.profile for system in systems} == requestable.keys()
    assert requestable["mine:4"] == MINE
    assert requestable["mine-without-graph"].fixed.weights[Leg.GRAPH] == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modes": "keyword"}, "'keyword' is no mode"),
        ({"weights": ["1,2"]}, "three numbers"),
        ({"modes": "bm25", "parts": ["graph"]}, "ablations are compared with mode adaptive"),
        ({"modes": "bm25", "without_sessions": True}, "ablations are compared with mode adaptive"),
        ({"modes": ""}, "there is nothing to measure"),
        ({"profiles": "mine,,default"}, "profiles are names such as"),
        ({"profiles": "mine,default,mine"}, "profile 'mine' is named twice"),
    ],
)
def test_what_cannot_be_compared_is_refused(options: dict[str, object], message: str) -> None:
    """Before any profile is looked up."""
    with pytest.raises(InvalidInput, match=message):
        asked(**options)  # type: ignore[arg-type]  # the values differ in type


def test_one_profile_is_enough() -> None:
    """It may be compared with a mode."""
    assert parse_profiles("mine") == ["mine"]
    assert names(asked(profiles="mine", modes="bm25")) == ["bm25", "profile=mine"]


def plan_of(lineup: Lineup) -> EvaluationPlan:
    """A plan of its systems."""
    return EvaluationPlan(
        systems=lineup.systems(FOUND), limit=None, seed=5, top_k=10, concurrency=1, fresh=False, language="auto"
    )


def test_provenance_names_every_profile_and_model() -> None:
    """Also models stored in a database, by kind and profile."""
    checksum = "ab" * 32
    tuned = replace(MINE, models=Models(rescorer=f"sha256:{checksum}"))
    lineup = asked(profiles="default,mine", parts=["graph"])
    found = provenance_of(plan_of(lineup), lineup.requestable({"default": DEFAULT, "mine": tuned}))
    assert (found.seed, found.profile) == (5, "mine@4")
    assert found.profiles["profile=default"] == found.profiles["adaptive"] == "default@3"
    assert found.profiles["without-graph"] == "default-without-graph@3"
    assert found.models["rescorer of mine@4"] == checksum
    assert found.models.keys() > {"intent.onnx", "weights.onnx", "embedder.onnx"}
    assert found.models.keys() - model_checksums() == {"rescorer of mine@4"}
