"""The features of the intent classifier, and its training data."""

import json
import re
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifier.cues import CUE_COUNT, FIRST_WORD, PATTERNS, cue_numbers
from classifier.features import BUCKETS, EMBEDDING_DIM, FEATURE_DIM, LEXICAL, QueryFeatures, query_features
from classifier.intents import INTENTS, Intent
from classifier.skeleton import skeleton
from classifier.training.data import DATA, altered, comparable, read_training, stories


def unit(seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    vector = np.random.default_rng(seed).normal(size=EMBEDDING_DIM).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def cues(text: str) -> set[str]:
    names = [*FIRST_WORD, *PATTERNS]
    return {names[number] for number in cue_numbers(text.split())}


def test_intents_are_those_of_the_contract_in_order() -> None:
    assert INTENTS == ("fact_lookup", "relationship", "preference", "open_ended")
    assert set(INTENTS) == set(Intent)


def bare(text: str) -> QueryFeatures:
    return query_features(text, None)


def same(one: QueryFeatures, other: QueryFeatures) -> bool:
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in QueryFeatures._fields)


@given(st.text(max_size=300))
def test_every_text_has_finite_features_of_fixed_size(text: str) -> None:
    features = bare(text)
    assert features.row.shape == (FEATURE_DIM,)
    assert features.row.dtype == np.float32
    assert np.isfinite(features.row).all()
    for buckets in features[1:]:
        assert len(buckets) == len(set(buckets.tolist())) > 0
        assert ((buckets >= 1) & (buckets < BUCKETS)).all() or buckets.tolist() == [0]
    assert same(features, bare(text))


@pytest.mark.parametrize("text", ["", "?!", "\x00", "\ud800", "😀😀", "  \n ", "a" * 10_000_000, "why " * 100_000])
def test_odd_texts_are_read(text: str) -> None:
    assert np.isfinite(bare(text).row).all()


def test_the_end_of_a_long_query_counts() -> None:
    """The question often follows a long story."""
    story = "we had a long day and walked along the river and had coffee " * 40
    assert not same(bare(story + "Can you suggest a hotel?"), bare(story + "When was the tower built?"))


def test_hashing_is_stable_across_processes() -> None:
    """Counts and sums of the features; they change with any change of these."""
    story = "Bo and Ida's uncle, which lived in the house of the head of the state of Ohio or Rome, wanted 3 of them. "
    long = f"{story} {' '.join(map(str, range(1_000)))} Is {'abcdefghij' * 5} “it”?"
    found = [
        [(len(each), int(each.sum())) for each in (np.flatnonzero(features.row), *features[1:])]
        for features in map(bare, ("Who is the spouse of the director of Titanic?", long))
    ]
    assert found == [
        [(20, 9518), (25, 1602505), (113, 6827994), (24, 1420885)],
        [(31, 14764), (277, 17882297), (317, 20892469), (81, 5528130)],
    ]


def test_names_are_masked_in_the_skeleton() -> None:
    """Two questions of one shape about different persons share their whole skeleton."""
    one, other = bare("Where was Frida Kahlo born?"), bare("Where was Alan Mathison Turing born?")
    assert np.array_equal(one.skeleton, other.skeleton)
    assert not np.array_equal(one.words, other.words)


def test_the_skeleton_by_hand() -> None:
    tokens = ["Which", "films", "directed", "by", "Wim", "Wenders", "show", "Berlin's", "rivers", "slowly"]
    words = [token.lower() for token in tokens]
    assert skeleton(tokens, words) == ["which", "Rs", "V", "by", "_E", "R", "_E'", "Rs", "*y"]


@pytest.mark.parametrize(
    "text", ["WHO PAINTED THE MONA LISA", "Who Painted The Mona Lisa", " who painted the mona lisa. "]
)
def test_capitals_throughout_tell_no_names_and_outer_blanks_nothing(text: str) -> None:
    assert same(bare(text), bare(text.strip().lower()))


def test_capitals_of_some_words_tell_names() -> None:
    for text in ("Who painted The Mona Lisa", "Robert De Niro", "Siemens IT", "I Love Rome"):
        assert not same(bare(text), bare(text.lower()))


def test_an_embedding_stands_before_the_same_numbers() -> None:
    without = bare("why is it so")
    assert not without.row[:EMBEDDING_DIM].any()
    assert without.row[-1] == 0.0
    vector = unit()
    with_embedding = query_features("why is it so", vector)
    assert np.array_equal(with_embedding.row[:EMBEDDING_DIM], vector)
    assert np.array_equal(with_embedding.row[LEXICAL], without.row[LEXICAL])
    assert with_embedding.row[-1] == 1.0


@pytest.mark.parametrize("bad", [np.zeros(383, np.float32), np.zeros((1, 384), np.float32), np.full(384, np.nan, "f4")])
def test_a_wrong_embedding_is_refused(bad: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
    with pytest.raises(ValueError, match="embedding must"):
        query_features("x", bad)


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("how many moons does mars have", "how_quantity"),
        ("what do anna and ben have in common", "in_common"),
        ("which film came first alien or jaws", "comparison"),
        ("was haben anna und ben gemeinsam", "in_common"),
        ("can you suggest a place", "recommend"),
        ("tu peux me conseiller un film", "recommend"),
        ("recap of the meeting", "summary"),
        ("can you remind me of it", "remind"),
        ("whose works are these", "whose"),
    ],
)
def test_cues(text: str, cue: str) -> None:
    assert cue in cues(text)


def test_cue_patterns_match_whole_words() -> None:
    assert "both" not in cues("that bothers me")
    assert all(pattern.startswith((" ", "^ ")) for pattern in PATTERNS.values())
    assert len(FIRST_WORD) + len(PATTERNS) == CUE_COUNT
    words = [word for group in FIRST_WORD.values() for word in group.split("|")]
    assert sorted(words) == sorted(set(words)), "a first word belongs to one group"


def test_training_data_are_valid_and_unique() -> None:
    queries = read_training()
    assert len(queries) >= 5_000
    for intent in INTENTS:
        mine = [query for query in queries if query.intent is intent]
        written = [query for query in mine if query.source == "written"]
        assert len(mine) >= 1_000
        assert len(written) * 2 >= len(mine), "half is written by hand"
    assert {query.source for query in queries} == {"written", "template", "chatterbot-corpus", "openai-evals"}
    assert all(query.text == query.text.strip() and not re.search(r"[{}\n\t]|  ", query.text) for query in queries)
    assert len({comparable(query.text) for query in queries}) == len(queries)
    assert sum(len(query.text.split()) >= 40 for query in queries) >= 10
    assert sum(not query.text.isascii() for query in queries) >= 400


def test_every_foreign_source_has_its_licence() -> None:
    licences = (DATA / "LICENSES.md").read_text(encoding="utf-8")
    foreign = {query.source for query in read_training()} - {"written", "template"}
    assert all(f"## `{source}`" in licences for source in foreign)


def test_what_checks_is_not_trained_on() -> None:
    trained = {comparable(query.text) for query in read_training()}
    for name in ("held_out.jsonl", "out_of_domain.jsonl"):
        rows = [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
        assert len(rows) >= 50
        assert not {comparable(row["text"]) for row in rows} & trained
    assert not set(stories("check")) & set(stories("training"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a", "intent": "nonsense", "source": "written"}', "nonsense"),
        ('{"text": "a", "intent": "preference"}', "source"),
        ('{"text": " ", "intent": "preference", "source": "written"}', "blank"),
        ('{"text": "First  One", "intent": "preference", "source": "written"}', "same text as .*:1$"),
        ("not json", ":2:"),
    ],
)
def test_bad_training_data_are_refused_with_their_line(
    tmp_path_factory: pytest.TempPathFactory, line: str, message: str
) -> None:
    path = tmp_path_factory.mktemp("data") / "intents.jsonl"
    path.write_text(f'{{"text": "first one", "intent": "fact_lookup", "source": "written"}}\n{line}\n')
    with pytest.raises(ValueError, match=message):
        read_training([path])


def test_most_queries_are_altered_and_by_the_same_seed_alike() -> None:
    texts = [query.text for query in read_training()[:200]]
    one, other = ([altered(text, rng) for text in texts] for rng in (Random(3), Random(3)))
    assert one == other
    assert sum(copy != text for text, copy in zip(texts, one, strict=True)) > len(texts) / 2


def test_a_query_of_marks_alone_is_altered_to_no_empty_text() -> None:
    assert all(altered("?", Random(seed)).endswith("?") for seed in range(100))
