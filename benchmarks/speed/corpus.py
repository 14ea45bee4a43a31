"""Memories generated from a seed: chat turns and notes on topics, with recurring names, dates and tags.

Words are real ones by frequency and made-up rare ones. Topics are words with similar embeddings: texts of words drawn
at random would all get nearly the same embedding, which no index can tell apart, while texts on topics spread like
those of a real collection.

Memories come in blocks of 20, each the turns of one session or the notes of four documents, about one topic
and with its own people. A block depends only on the seed, its stream and its number, so that any part of
a corpus can be generated anywhere. Namespaces of all sizes begin with the same memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from retrieval.installation import models_dir
from retrieval.types.memory import MemoryInput

BLOCK = 20
VERSION = 2
"""Incremented when the same seed gives other memories than before."""
LARGE = 0
"""The stream of the large namespaces; small ones have those from 1."""
EPOCH = datetime(2023, 1, 1, tzinfo=UTC)
DAYS = 1_000
TAGS = {"half": 0.5, "twentieth": 0.05, "twohundredth": 0.005}
"""Tags with the share of memories that have them."""
TEAMS = 100
_CHAT_SHARE = 0.6
_OWNER_SHARE = 0.5
"""Share of the sessions in which the owner of the memories speaks half of the turns."""
_COMMON_WORDS = 400
"""Words on any topic, including function words."""
_TURN_WORDS, _NOTE_WORDS = 24.0, 38.0
_TIES = ("works for", "moved to", "lives in", "met", "is married to", "visited")
RARE_WORDS = 12_000
"""Made-up words after the real ones, like the identifiers, brands and misspellings of a real collection."""
FUNCTION_WORDS = 120
PEOPLE = 60_000
PLACES = 15_000
# A part is drawn as often as it is listed here.
_ONSETS = re.findall(r"\w+", "b b br c ch d d dr f g gr h j k l l m m n n p pr r r s s sh st t t th tr v w y z")
_VOWELS = re.findall(r"\w+", "a a a e e e i i o o o u u ai ea ia io ou")
_CODAS = [*[""] * 16, *re.findall(r"\w+", "l m n n r r s t nd rn st x")]
_ENDINGS = re.findall(r"\w+", "ton burg ville ford ham stead mouth bridge dale haven field port")
TOPICS = 300
TOPIC_WORDS = 200
_CHOICE = 8_000


@cache
def vocabulary() -> tuple[str, ...]:
    """Some thirty thousand words, the most frequent first.

    The first two thirds are the embedder's own whole words, which its tokenizer lists by their frequency in
    English, so that their texts get meaningful embeddings.
    """
    content = (models_dir() / "embedder.tokenizer.json").read_bytes()
    pieces: dict[str, int] = msgspec.json.decode(content)["model"]["vocab"]
    real = [piece for piece, _ in sorted(pieces.items(), key=lambda item: item[1]) if re.fullmatch("[a-z]{2,}", piece)]
    known = set(real)
    rare = (word for word in _pronounceable(np.random.default_rng(1), 2 * RARE_WORDS, (2, 4)) if word not in known)
    return (*real, *(word for word, _ in zip(rare, range(RARE_WORDS), strict=False)))


@cache
def people() -> tuple[str, ...]:
    """First and last names, the most frequent person first."""
    rng = np.random.default_rng(2)
    first = [word.capitalize() for word in _pronounceable(rng, 2_000, (2, 2))]
    last = [word.capitalize() for word in _pronounceable(rng, 12_000, (2, 3))]
    chosen = zip(rng.integers(len(first), size=2 * PEOPLE), rng.integers(len(last), size=2 * PEOPLE), strict=True)
    return tuple(dict.fromkeys(f"{first[a]} {last[b]}" for a, b in chosen))[:PEOPLE]


@cache
def places() -> tuple[str, ...]:
    rng = np.random.default_rng(3)
    stems = _pronounceable(rng, PLACES, (1, 2))
    endings = rng.integers(len(_ENDINGS), size=len(stems))
    return tuple(dict.fromkeys(f"{stem}{_ENDINGS[at]}".capitalize() for stem, at in zip(stems, endings, strict=True)))


class Zipf:
    """Ranks from 0 whose frequency falls as 1 / (rank + shift)."""

    def __init__(self, count: int, *, shift: float = 2.7) -> None:
        weights = 1.0 / (np.arange(count) + shift)
        self._cumulated = np.cumsum(weights / weights.sum())

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
        """Draw ranks, shape (size,)."""
        found = np.searchsorted(self._cumulated, rng.random(size))
        return np.minimum(found, self._cumulated.size - 1)


def _pronounceable(rng: np.random.Generator, count: int, syllables: tuple[int, int]) -> list[str]:
    """Different made-up words."""
    words: dict[str, None] = {}
    while len(words) < count:
        length = int(rng.integers(syllables[0], syllables[1] + 1))
        parts = [
            f"{_ONSETS[rng.integers(len(_ONSETS))]}{_VOWELS[rng.integers(len(_VOWELS))]}"
            f"{_CODAS[rng.integers(len(_CODAS))]}"
            for _ in range(length)
        ]
        words["".join(parts)] = None
    return list(words)


def content_words() -> tuple[str, ...]:
    """The most frequent words without function words, of which topics are made."""
    return vocabulary()[FUNCTION_WORDS : FUNCTION_WORDS + _CHOICE]


def find_topics(word_vectors: NDArray[np.float32], seed: int) -> NDArray[np.int64]:
    """Words by topic, as indices in `vocabulary()`, shape (TOPICS, TOPIC_WORDS), the topic's own first."""
    centres = np.random.default_rng([seed, 4]).choice(len(word_vectors), TOPICS, replace=False)
    near = np.argsort(-(word_vectors[centres] @ word_vectors.T), axis=1, kind="stable")
    return near[:, :TOPIC_WORDS] + FUNCTION_WORDS


class Block(NamedTuple):
    """The people, places and day that the memories of a session or of four documents share."""

    rng: np.random.Generator
    cast: list[str]
    towns: list[str]
    day: datetime
    chat: bool


class Corpus:
    """All memories of a seed; `topics` is the result of `find_topics`."""

    def __init__(self, seed: int, topics: NDArray[np.int64]) -> None:
        self.seed = seed
        self._topics = topics
        self._words = np.array(vocabulary(), dtype=object)
        self._any = Zipf(self._words.size)
        self._common = Zipf(_COMMON_WORDS, shift=5.0)
        self._within_topic = Zipf(topics.shape[1], shift=4.0)
        self._people, self._places = Zipf(len(people())), Zipf(len(places()))

    def memories(self, stream: int, start: int, stop: int) -> Iterator[MemoryInput]:
        """The memories of a stream from `start` to before `stop`, both multiples of `BLOCK` or the end."""
        for block in range(start // BLOCK, -(-stop // BLOCK)):
            made = self.block(stream, block)
            yield from made[max(start - block * BLOCK, 0) : stop - block * BLOCK]

    def block(self, stream: int, number: int) -> list[MemoryInput]:
        rng = np.random.default_rng([self.seed, stream, number])
        chat = rng.random() < _CHAT_SHARE
        topic = int(rng.integers(len(self._topics)))
        cast = [people()[at] for at in self._people.draw(rng, 4)]
        if rng.random() < _OWNER_SHARE:
            cast[0] = people()[0]
        towns = [places()[at] for at in self._places.draw(rng, 2)]
        began = EPOCH + timedelta(days=float(rng.random() * DAYS))
        lengths = np.clip(rng.lognormal(np.log(_TURN_WORDS if chat else _NOTE_WORDS) - 0.15, 0.55, BLOCK), 4, 120)
        topics = np.where(rng.random(BLOCK) < 0.85, topic, rng.integers(len(self._topics), size=BLOCK))
        scene = Block(rng, cast, towns, began, chat)
        made = []
        for at in range(BLOCK):
            text = self._text(scene, int(lengths[at]), int(topics[at]))
            tags = [tag for tag, share in TAGS.items() if rng.random() < share]
            team = f"t{rng.integers(TEAMS)}"
            made.append(
                MemoryInput(
                    id=f"m{number * BLOCK + at}",
                    text=text,
                    kind="message" if chat else "chunk",
                    title=None if chat else self._title(number, at // 5, topic),
                    speaker=cast[max(0, int(rng.integers(-1, 3)))] if chat else None,
                    session_id=f"s{number}" if chat else None,
                    position=at if chat else None,
                    document_id=None if chat else f"d{number}-{at // 5}",
                    created_at=began + (timedelta(minutes=at) if chat else timedelta(hours=at // 5)),
                    tags=tags,
                    metadata={"team": team},
                )
            )
        return made

    def _title(self, number: int, document: int, topic: int) -> str:
        rng = np.random.default_rng([self.seed, 5, number, document])
        chosen = self._topics[topic][self._within_topic.draw(rng, int(rng.integers(2, 6)))]
        return " ".join(str(word).capitalize() for word in self._words[chosen])

    def _text(self, block: Block, length: int, topic: int) -> str:
        rng = block.rng
        source = rng.random(length)
        ranks = self._any.draw(rng, length)
        ranks = np.where(source < 0.9, self._topics[topic][self._within_topic.draw(rng, length)], ranks)
        ranks = np.where(source < 0.45, self._common.draw(rng, length), ranks)
        words: list[str] = list(self._words[ranks])
        sentences, at = [], 0
        while at < length:
            taken = words[at : at + int(rng.integers(6, 19))]
            at += len(taken)
            self._mention(block, taken)
            taken[0] = taken[0][0].upper() + taken[0][1:]
            sentences.append(" ".join(taken) + ("?" if block.chat and rng.random() < 0.15 else "."))
        if rng.random() < 0.06:
            who, tie = block.cast[int(rng.integers(4))], _TIES[int(rng.integers(len(_TIES)))]
            known = block.cast if tie in ("met", "is married to") else block.towns
            whom = known[int(rng.integers(len(known)))]
            sentences.append(f"{who} {tie} {whom}.")
        return " ".join(sentences)

    def _mention(self, block: Block, words: list[str]) -> None:
        """Insert a name, a date or nothing into a sentence."""
        rng = block.rng
        kind = rng.random()
        at = int(rng.integers(1, len(words) + 1))
        if kind < 0.16:
            name = block.cast[int(rng.integers(4))]
            words.insert(at, name if rng.random() < 0.5 else name.partition(" ")[0])
        elif kind < 0.24:
            words.insert(at, people()[self._people.draw(rng, 1)[0]])
        elif kind < 0.36:
            found = block.towns[int(rng.integers(2))] if rng.random() < 0.6 else places()[self._places.draw(rng, 1)[0]]
            words.insert(at, f"in {found}")
        elif kind < 0.41:
            words.insert(at, f"on {block.day.day} {block.day:%B %Y}")
        elif kind < 0.44:
            words.insert(at, str(int(rng.integers(2, 5_000))))
