"""The benchmark's texts, vectors and queries."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.speed.corpus import BLOCK, LARGE, TAGS, Corpus, content_words
from benchmarks.speed.plan import parse_sizes
from benchmarks.speed.queries import Queries, ask
from benchmarks.speed.vectors import CorpusVectors, PreparedEmbedder
from retrieval.errors import InvalidInput
from retrieval.ingest.analysis import embedded_text
from retrieval.types.memory import MemoryInput

MEMORIES = 4_000
TOPICS = np.random.default_rng(5).integers(120, 8_000, (300, 200))


@pytest.fixture(scope="module")
def made() -> list[MemoryInput]:
    return list(Corpus(7, TOPICS).memories(LARGE, 0, MEMORIES))


def test_a_part_is_the_same_wherever_it_is_made(made: list[MemoryInput]) -> None:
    assert list(Corpus(7, TOPICS).memories(LARGE, 1_010, 1_050)) == made[1_010:1_050]


def test_seeds_and_streams_differ(made: list[MemoryInput]) -> None:
    texts = {one.text for one in made}
    assert not texts & {one.text for one in Corpus(8, TOPICS).memories(LARGE, 0, BLOCK)}
    assert not texts & {one.text for one in Corpus(7, TOPICS).memories(1, 0, BLOCK)}


def test_texts_have_real_lengths(made: list[MemoryInput]) -> None:
    lengths = [len(one.text.split()) for one in made]
    assert 27 < np.mean(lengths) < 34
    assert min(lengths) >= 4
    assert np.percentile(lengths, 95) > 55


def test_chat_turns_and_notes(made: list[MemoryInput]) -> None:
    turns = [one for one in made if one.kind == "message"]
    notes = [one for one in made if one.kind == "chunk"]
    assert 0.5 < len(turns) / MEMORIES < 0.7
    assert all(turn.speaker and turn.session_id and turn.position is not None for turn in turns)
    assert all(note.title and note.document_id and note.session_id is None for note in notes)


def test_tags_have_their_selectivity() -> None:
    memories = list(Corpus(7, TOPICS).memories(LARGE, 0, 20_000))
    counts = Counter(tag for memory in memories for tag in memory.tags)
    for tag, share in TAGS.items():
        assert counts[tag] / len(memories) == pytest.approx(share, rel=0.25)


def test_names_have_hubs_and_a_long_tail(made: list[MemoryInput]) -> None:
    names = Counter(name for one in made for name in re.findall(r"(?<=[a-z] )[A-Z][a-z]+ [A-Z][a-z]+", one.text))
    assert names.most_common(1)[0][1] > 20
    assert sum(count == 1 for count in names.values()) > 0.4 * len(names)


def test_one_speaker_is_in_much_of_it(made: list[MemoryInput]) -> None:
    ((_, owner), (_, second)) = Counter(one.speaker for one in made if one.speaker).most_common(2)
    assert 0.1 < owner / MEMORIES < 0.25
    assert second < 0.3 * owner


def test_vectors_are_of_unit_length_and_follow_from_the_words(made: list[MemoryInput]) -> None:
    """If the embedder only adds up words, the vectors of all texts equal the embedder's."""
    rng = np.random.default_rng(1)
    words = rng.standard_normal((len(content_words()), 24)).astype(np.float32)
    places = {word: place for place, word in enumerate(content_words())}

    def added_up(memory: MemoryInput) -> NDArray[np.float32]:
        found = [places[word] for word in re.findall("[a-z]+", embedded_text(memory).lower()) if word in places]
        total: NDArray[np.float32] = words[found].mean(axis=0) if found else np.ones(24, np.float32)
        return total / np.float32(np.linalg.norm(total))

    real = np.stack([added_up(memory) for memory in made[:1_000]])
    vectors = CorpusVectors(Corpus(7, TOPICS), real, words)
    assert np.array_equal(vectors.of(LARGE, 0, made[:1_000])[:1_000], real)
    rows = vectors.of(LARGE, 900, made[900:2_000])
    assert np.array_equal(rows[:100], real[900:])
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    wanted = np.stack([added_up(memory) for memory in made[1_000:2_000]])
    assert np.mean(np.argmax(rows[100:] @ wanted.T, axis=1) == np.arange(1_000)) > 0.8


async def test_prepared_vectors_are_for_the_texts_they_were_prepared_for() -> None:
    embedder = PreparedEmbedder()
    memory = MemoryInput(text="The kettle is new.", speaker="Ana", title="Kitchen")
    vectors = np.ones((1, 384), np.float32)
    embedder.prepare([memory.text], vectors)
    assert await embedder.embed_documents([embedded_text(memory)]) is vectors
    with pytest.raises(ValueError, match="other texts"):
        await embedder.embed_documents(["The kettle is old."])


def test_queries_differ_and_share_words_with_their_memory() -> None:
    corpus = Corpus(7, TOPICS)
    queries = Queries(corpus, MEMORIES, seed=1)
    taken = queries.take(150) + queries.take(150)
    assert len(set(taken)) == 300
    rng, asked = np.random.default_rng([corpus.seed, 6, 1, LARGE]), dict[str, str]()
    while len(asked) < len(taken):
        number = int(rng.integers(MEMORIES))
        memory = corpus.block(LARGE, number // BLOCK)[number % BLOCK]
        asked.setdefault(ask(rng, memory), memory.text)
    assert list(asked) == taken
    shared = 0
    for query, text in asked.items():
        words = set(re.findall(r"[a-z]{3,}", query)) & set(re.findall(r"[a-z]{3,}", text))
        shared += len(words) >= 2
    assert shared > 0.8 * len(taken)


@pytest.mark.parametrize("text", ["", "0", "10g", "k", "1k,,2k", "-5"])
def test_no_size(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no size"):
        parse_sizes(text)
