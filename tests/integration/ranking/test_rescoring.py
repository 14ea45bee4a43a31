"""The rescorer in a search: when it runs, its input, and that its failure does not affect the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from msgspec import structs
from numpy.typing import NDArray

from classifier import rescorer
from classifier.candidates import FeatureMatrix, describe
from classifier.rescorer import RescoredCandidates, Rescorer
from classifier.training.examples import Example, read_examples, write_examples
from classifier.traits import pack_traits
from retrieval.engine import Trivet
from retrieval.legs.base import LegQuery, LegRanking
from retrieval.legs.vector import VectorRetriever
from retrieval.profiles.schema import ModelsInput, ProfileInput
from retrieval.ranking import rescoring
from retrieval.types.memory import MemoryInput
from retrieval.types.search import Filters, Leg, LegWeights, Mode, SearchRequest, SearchResponse
from tests.rescorable import learned, require_training
from tests.serving import settings_for

require_training()

QUERY = "What does Ana like to do with Boris in Rome?"

SAID = (
    ("Ana", "s1", "I love walking through Rome with Boris."),
    ("Boris", "s1", "Did you like Rome, Ana?"),
    ("Ana", "s1", "Yes, I strongly prefer Rome to Milan."),
    ("Boris", "s1", "We saw the Colosseum on Friday."),
    ("Ana", "s2", "My dog Rex is three years old."),
    ("assistant", "s2", "A dog of that age likes long walks."),
    ("Ana", "s2", "Boris likes cooking, I hate it."),
    ("Boris", "s2", "What do you like to eat in Rome?"),
)
NOTES = (
    ("Walks in Rome", "A list of walks to do in Rome, from 1998."),
    ("Walks in Rome", "The second walk begins at the river."),
    ("Cooking", "What to do with flour and eggs."),
)


def memories(prefix: str = "") -> list[MemoryInput]:
    turns = [
        MemoryInput(id=f"{prefix}t{at}", text=f"{speaker}: {text}", speaker=speaker, session_id=session, position=at)
        for at, (speaker, session, text) in enumerate(SAID)
    ]
    notes = [
        MemoryInput(id=f"{prefix}d{at}", text=text, title=title, tags=["note"])
        for at, (title, text) in enumerate(NOTES)
    ]
    return [*turns, *notes]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model whose order is followed fully, however unfamiliar the memories are."""
    from classifier.training.rescorer import export

    path = tmp_path_factory.mktemp("model") / "small.onnx"
    export(learned(share=1.0), path)
    return path


@pytest.fixture
async def engine(database_url: str, model: Path) -> AsyncIterator[Trivet]:
    """With memories in `n` and the profiles `small`, `asked` (rescores where a request says so) and `none`."""
    async with Trivet.open(settings_for(database_url, bm25_tail_docs=30)) as opened:
        await opened.add("n", memories())
        reference = await opened.models.put_model("rescorer", model)
        with_model = ModelsInput(rescorer=reference)
        await opened.profiles.put("small", ProfileInput(models=with_model, rescore=True))
        await opened.profiles.put("asked", ProfileInput(models=with_model, rescore=False))
        await opened.profiles.put("none", ProfileInput(models=ModelsInput(rescorer=None), rescore=True))
        yield opened


async def searched(engine: Trivet, profile: str = "small", namespace: str = "n", **options: Any) -> SearchResponse:
    request = SearchRequest(query=QUERY, profile=f"{profile}@1", **options)
    return await engine.search(namespace, request)


def ids(answer: SearchResponse) -> list[str]:
    return [result.id for result in answer.results]


def numbers(answer: SearchResponse) -> list[tuple[str, float, int, float]]:
    return [(each.id, each.score, each.fused.rank, each.fused.score) for each in answer.results]


GIVEN = LegWeights(vector=0.2, bm25=0.5, graph=0.3)

RESCORED: list[tuple[str, dict[str, Any], bool]] = [  # profile, options of the request, whether the rescorer has a say
    *(("small", {"mode": mode}, True) for mode in (Mode.ADAPTIVE, Mode.HYBRID)),
    *(("small", {"mode": mode, "rescore": False}, False) for mode in (Mode.ADAPTIVE, Mode.HYBRID)),
    *(("asked", {"mode": mode}, False) for mode in (Mode.ADAPTIVE, Mode.HYBRID)),
    *(("asked", {"mode": mode, "rescore": True}, True) for mode in (Mode.ADAPTIVE, Mode.HYBRID)),
    *(("small", {"mode": mode}, False) for mode in (Mode.VECTOR, Mode.BM25, Mode.GRAPH)),
    *(("small", {"mode": mode, "rescore": True}, True) for mode in (Mode.VECTOR, Mode.BM25, Mode.GRAPH)),
    ("small", {"weights": GIVEN}, False),
    ("small", {"weights": GIVEN, "rescore": True}, True),
    ("small", {"weights": GIVEN, "mode": Mode.HYBRID}, False),
    ("none", {}, False),
    ("none", {"rescore": False}, False),
]


async def test_when_it_has_a_say(engine: Trivet, subtests: pytest.Subtests) -> None:
    """As the request says, otherwise as the profile does, but not with a single leg or given weights."""
    for profile, options, rescored in RESCORED:
        with subtests.test(profile=profile, **options):
            answer = await searched(engine, profile, explain=True, **options)
            assert answer.results
            assert answer.degraded == []
            assert answer.explanation
            if rescored:
                assert answer.explanation.rescoring is not None
                assert answer.explanation.rescoring.startswith("the rescorer's order counts 100%: the candidates")
                blend_rankings = [1 / (5 + rank) for rank in range(1, len(answer.results) + 1)]
                assert [each.score for each in answer.results] == pytest.approx(blend_rankings)
            else:
                assert answer.explanation.rescoring is None
                assert [each.score for each in answer.results] == [each.fused.score for each in answer.results]
                assert [each.fused.rank for each in answer.results] == list(range(1, len(answer.results) + 1))


async def test_the_order_is_the_rescorer_s_and_fused_is_the_fusion_s(engine: Trivet) -> None:
    request = SearchRequest(query=QUERY, profile="small@1", mode=Mode.HYBRID, top_k=20)
    answer = await engine.answer("n", request)
    assert answer.ordering.rescored is not None
    scores = answer.rescorer_scores()
    rescored = await engine.search("n", request)
    fused = await engine.search("n", structs.replace(request, rescore=False))
    place = {each.id: each.fused for each in fused.results}
    assert {each.id: each.fused for each in rescored.results} == place
    assert ids(rescored) == sorted(place, key=lambda each: (-scores[each], place[each].rank))
    assert ids(rescored) != ids(fused), "nothing was put elsewhere, and nothing shown"


async def test_it_may_have_no_share(engine: Trivet, model: Path, tmp_path: Path) -> None:
    """On a kind of memories where it does not help, the fusion's order stays."""
    from classifier.training.rescorer import export

    path = tmp_path / "humble.onnx"
    export(learned(share=0.0), path)
    reference = await engine.models.put_model("rescorer", path)
    await engine.profiles.put("humble", ProfileInput(models=ModelsInput(rescorer=reference), rescore=True))
    answer = await engine.answer("n", SearchRequest(query=QUERY, profile="humble@1", mode=Mode.HYBRID, top_k=20))
    assert answer.ordering.rescored is not None
    assert answer.ordering.rescored.share == 0.0
    assert [each.memory.id for each in answer.memories] == ids(
        await searched(engine, mode=Mode.HYBRID, top_k=20, rescore=False)
    )


async def test_asked_for_a_rescorer_that_the_profile_has_not(engine: Trivet) -> None:
    """It is reported, and the answer has the fusion's order."""
    answer = await searched(engine, "none", rescore=True, explain=True)
    assert [(each.leg, each.reason) for each in answer.degraded] == [("rescorer", "the profile has none")]
    assert numbers(answer) == numbers(await searched(engine, "none"))
    assert answer.explanation
    assert answer.explanation.rescoring is None


async def test_a_rescorer_that_fails_is_named_and_the_fusion_answers(
    engine: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = numbers(await searched(engine, rescore=False))

    def broken(*_: object) -> RescoredCandidates:
        raise ArithmeticError("the trees fell\nin the forest")

    monkeypatch.setattr(Rescorer, "score", broken)
    answer = await searched(engine)
    assert [(each.leg, each.reason) for each in answer.degraded] == [("rescorer", "ArithmeticError: the trees fell")]
    assert numbers(answer) == expected


async def test_traits_are_stored_without_the_speaker_s_name(engine: Trivet, database_url: str) -> None:
    with psycopg.connect(database_url) as db:
        stored: dict[Any, Any] = dict(db.execute("select id, traits from memory").fetchall())
    assert stored == {each.id: pack_traits(each.text.removeprefix(f"{each.speaker}: ")) for each in memories()}


async def test_a_changed_memory_has_the_traits_of_its_new_text(engine: Trivet, database_url: str) -> None:
    await engine.add("n", [MemoryInput(id="d0", text="Do I love walks in Rome?", title="Walks in Rome")])
    with psycopg.connect(database_url) as db:
        assert db.execute("select traits from memory where id = 'd0'").fetchall() == [
            (pack_traits("Do I love walks in Rome?"),)
        ]


async def test_what_is_known_of_the_candidates(engine: Trivet) -> None:
    answer = await engine.answer("n", SearchRequest(query=QUERY, profile="small@1"))
    known = await engine.candidate_inputs(answer)
    assert known is not None
    assert set(known.ids) == {
        hit.id for ranking in answer.ordering.candidates.rankings.values() for hit in ranking.hits
    }
    at = {memory_id: place for place, memory_id in enumerate(known.ids)}
    assert {"t0", "t1", "d0"} <= at.keys()
    assert [known.named[at[each]] for each in ("t0", "t1", "d0")] == [True, True, False]
    assert known.speakers[at["t0"]] != known.speakers[at["t1"]]
    assert known.speakers[at["d0"]] == known.sessions[at["d0"]] == -1
    assert known.sessions[at["t0"]] == known.sessions[at["t1"]] >= 0
    assert [known.has_title[at[each]] for each in ("t0", "d0")] == [False, True]
    assert known.titled[at["d0"]] == pytest.approx(2 / 3), "in and Rome are asked for, walks are not"
    assert known.titled[at["t0"]] == 0.0
    embedding = await answer.query.embedding()
    assert known.vectors is not None
    np.testing.assert_allclose(np.linalg.norm(known.vectors, axis=1), 1.0, atol=1e-3)
    np.testing.assert_allclose(known.own, known.vectors @ embedding, atol=1e-6)
    cosines = {hit.id: hit.score for hit in answer.ordering.candidates.rankings[Leg.VECTOR].hits}
    for memory_id, cosine in cosines.items():
        assert known.mixed[at[memory_id]] == pytest.approx(cosine, abs=2e-3)
    [own] = await engine.embedders.default.embed_documents([f"Ana: {SAID[2][2]}"])
    np.testing.assert_allclose(known.vectors[at["t2"]], own, atol=2e-3)
    for share in (known.covered, known.shared, known.rarest):
        assert share[at["t0"]] > 0
        assert share.max() <= 1.0


async def test_training_sees_the_features_that_are_served(
    engine: Trivet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To the last bit, once written to a file and read again."""
    served: list[bytes] = []

    def recorded(*given: Any) -> FeatureMatrix:
        made = describe(*given)
        served.extend(each.tobytes() for each in made)
        return made

    monkeypatch.setattr(rescorer, "describe", recorded)
    for query in (QUERY, "What is the second walk?", "When did Boris see the Colosseum?", "qqqq"):
        served.clear()
        answer = await engine.answer("n", SearchRequest(query=query, profile="small@1"))
        assert answer.ordering.rescored is not None
        known = await engine.candidate_inputs(answer)
        assert known is not None
        example = Example(
            set="s",
            namespace="n",
            type="fact",
            relevant=frozenset(["t0"]),
            evidence=answer.evidence_by_id,
            known=known,
            fused=[each.memory.id for each in answer.memories],
        )
        write_examples(tmp_path / "examples.bin", [example])
        [read] = read_examples(tmp_path / "examples.bin")
        assert served == [each.tobytes() for each in describe(read.evidence, read.known)]
        assert set(read.known.ids) == set(answer.rescorer_scores())


async def candidates(engine: Trivet) -> list[str]:
    answer = await engine.answer("n", SearchRequest(query=QUERY, profile="small@1"))
    known = await engine.candidate_inputs(answer)
    assert known is not None
    return list(known.ids)


async def test_the_candidates_stand_in_an_order_of_their_own(engine: Trivet, database_url: str) -> None:
    """That of the rankings, whatever order the database keeps its rows in."""
    before = await candidates(engine)
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute("update memory set tags = tags where doc % 2 = 0")
        db.execute("vacuum memory")
        db.execute("update memory set tags = tags where doc % 3 = 0")
    answer = await engine.answer("n", SearchRequest(query=QUERY, profile="small@1"))
    ranked = dict.fromkeys(hit.id for ranking in answer.ordering.candidates.rankings.values() for hit in ranking.hits)
    assert await candidates(engine) == before == list(ranked)


async def test_without_an_embedding_what_the_other_legs_found_is_ordered(
    engine: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(text: str) -> asyncio.Future[NDArray[np.float32]]:
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(ConnectionError(f"no embedder for {len(text)} characters"))
        return failed

    monkeypatch.setattr(engine.embedders.default, "begin", silent)
    answer = await searched(engine, explain=True)
    assert [each.leg for each in answer.degraded] == ["vector"]
    assert answer.explanation
    assert answer.explanation.rescoring is not None
    assert "t0" in ids(answer)


async def test_a_vector_leg_that_fails_takes_the_embedding_not_along(
    engine: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: VectorRetriever, query: LegQuery) -> LegRanking:
        await query.embedding()
        raise ConnectionResetError("the leg broke")

    monkeypatch.setattr(VectorRetriever, "search", broken)
    request = SearchRequest(query=QUERY, profile="small@1")
    answer = await engine.answer("n", request)
    assert [each.leg for each in answer.degraded] == ["vector"]
    assert answer.ordering.rescored is not None
    known = await engine.candidate_inputs(answer)
    assert known is not None
    assert known.vectors is not None
    assert set(answer.rescorer_scores()) == set(known.ids)


async def test_filters_hold_and_other_namespaces_do_not_count(engine: Trivet) -> None:
    """Others may have the same ids, and texts that answer better."""
    before = numbers(await searched(engine, top_k=20))
    better = [structs.replace(each, text=f"{QUERY} I love Rome, I love it!") for each in memories()]
    await engine.add("other", [*better, *memories("x")])
    assert numbers(await searched(engine, top_k=20)) == before
    only = await searched(engine, filters=Filters(speaker=["Ana"]), explain=True)
    assert only.results
    assert set(ids(only)) <= {f"t{at}" for at, (speaker, _, _) in enumerate(SAID) if speaker == "Ana"}
    assert only.explanation
    assert only.explanation.rescoring is not None
    assert set(ids(await searched(engine, filters=Filters(tags_all=["note"])))) <= {"d0", "d1", "d2"}


async def test_a_reply_comes_before_the_question_that_it_answers(
    engine: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If its score is near; not if an assistant or the same speaker goes on, or if it asks back."""
    asked = "Where does Boris like to eat in Rome?"
    cases = {
        "answered": (asked, "Boris", "By the river, with wine."),
        "advised": (asked, "assistant", "The best places are by the river."),
        "told": ("Boris likes to eat in Rome with me.", "Boris", "By the river, with wine."),
        "continued": (asked, "Ana", "I forgot its name."),
        "asked back": (asked, "Boris", "Do you mean the one by the river?"),
        "answered in full": ("Where?", "Boris", "I like to eat in Rome, by the river, with Ana."),
    }
    for case, (question, speaker, text) in cases.items():
        turns = (("Ana", question), (speaker, text))
        await engine.add(
            "asked",
            [
                MemoryInput(id=f"{case} {at}", text=said, speaker=by, session_id=case, position=at)
                for at, (by, said) in enumerate(turns)
            ],
        )

    async def scores(reach: float) -> dict[str, float]:
        monkeypatch.setattr(rescoring, "REPLY_REACH", reach)
        answer = await engine.answer("asked", SearchRequest(query=QUERY, profile="small@1"))
        return dict(answer.rescorer_scores())

    plain = await scores(0.0)
    assert [case for case in cases if plain[f"{case} 0"] > plain[f"{case} 1"]] == [*cases][:-1]
    behind = (plain["answered 0"] - plain["answered 1"]) / float(np.std(list(plain.values())))
    assert await scores(behind - 0.01) == plain
    exchanged = plain | {"answered 0": plain["answered 1"], "answered 1": plain["answered 0"]}
    assert await scores(behind + 0.01) == await scores(100.0) == exchanged


async def test_where_nothing_is_found_there_is_nothing_to_order(engine: Trivet) -> None:
    answer = await searched(engine, filters=Filters(speaker=["Nobody"]), explain=True)
    assert (answer.results, answer.degraded) == ([], [])
    assert answer.explanation
    assert answer.explanation.rescoring is None
