"""Memories made from a seed: chat turns and notes on topics, with names that recur, dates and tags.

Memories come in blocks of 20, each the turns of one session or the notes of four documents, about one topic
and with a cast of its own. A block follows from the seed, its stream and its number alone, so that any part of
a corpus can be made anywhere. Namespaces of all sizes begin with the same memories.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from retrieval.benchmarking.words import Zipf, people, places, vocabulary
from retrieval.types import MemoryInput

BLOCK = 20
VERSION = 2
"""Counted up when the same seed gives other memories than before."""

LARGE = 0
"""The stream of the large namespaces; small ones have those from 1."""

EPOCH = datetime(2023, 1, 1, tzinfo=UTC)
DAYS = 1_000
TAGS = {"half": 0.5, "twentieth": 0.05, "twohundredth": 0.005}
"""Tags with the share of the memories that bear them."""

TEAMS = 100
_CHAT_SHARE = 0.6
_OWNER_SHARE = 0.5
"""Of the sessions: those in which the person whose memories they are speaks half of the turns."""

_COMMON_WORDS = 400
"""Words of any talk, function words among them."""

_TURN_WORDS, _NOTE_WORDS = 24.0, 38.0
_TIES = ("works for", "moved to", "lives in", "met", "is married to", "visited")


class Corpus:
    """All memories of a seed; `topics` has words by topic as their places in `vocabulary()`, see `topics.py`."""

    def __init__(self, seed: int, topics: NDArray[np.int64]) -> None:
        self.seed = seed
        self._topics = topics
        self._words = np.array(vocabulary(), dtype=object)
        self._any = Zipf(self._words.size)
        self._common = Zipf(_COMMON_WORDS, shift=5.0)
        self._within_topic = Zipf(topics.shape[1], shift=4.0)
        self._people, self._places = Zipf(len(people())), Zipf(len(places()))

    def memories(self, stream: int, start: int, stop: int) -> Iterator[MemoryInput]:
        """The memories of a stream from one number to before another, both multiples of `BLOCK` or the last."""
        for block in range(start // BLOCK, -(-stop // BLOCK)):
            made = self.block(stream, block)
            yield from made[max(start - block * BLOCK, 0) : stop - block * BLOCK]

    def block(self, stream: int, number: int) -> list[MemoryInput]:
        """One session or four documents."""
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
        made = []
        for at in range(BLOCK):
            text = self._text(rng, int(lengths[at]), int(topics[at]), cast, towns, began, chat=chat)
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

    def _text(
        self,
        rng: np.random.Generator,
        length: int,
        topic: int,
        cast: list[str],
        towns: list[str],
        day: datetime,
        *,
        chat: bool,
    ) -> str:
        source = rng.random(length)
        ranks = self._any.draw(rng, length)
        ranks = np.where(source < 0.9, self._topics[topic][self._within_topic.draw(rng, length)], ranks)
        ranks = np.where(source < 0.45, self._common.draw(rng, length), ranks)
        words: list[str] = list(self._words[ranks])
        sentences, at = [], 0
        while at < length:
            taken = words[at : at + int(rng.integers(6, 19))]
            at += len(taken)
            self._mention(rng, taken, cast, towns, day)
            taken[0] = taken[0][0].upper() + taken[0][1:]
            sentences.append(" ".join(taken) + ("?" if chat and rng.random() < 0.15 else "."))
        if rng.random() < 0.06:
            who, tie = cast[int(rng.integers(4))], _TIES[int(rng.integers(len(_TIES)))]
            whom = cast[int(rng.integers(4))] if tie in ("met", "is married to") else towns[int(rng.integers(2))]
            sentences.append(f"{who} {tie} {whom}.")
        return " ".join(sentences)

    def _mention(
        self, rng: np.random.Generator, words: list[str], cast: list[str], towns: list[str], day: datetime
    ) -> None:
        """Put a name, a date or nothing into a sentence."""
        kind = rng.random()
        at = int(rng.integers(1, len(words) + 1))
        if kind < 0.16:
            name = cast[int(rng.integers(4))]
            words.insert(at, name if rng.random() < 0.5 else name.partition(" ")[0])
        elif kind < 0.24:
            words.insert(at, people()[self._people.draw(rng, 1)[0]])
        elif kind < 0.36:
            found = towns[int(rng.integers(2))] if rng.random() < 0.6 else places()[self._places.draw(rng, 1)[0]]
            words.insert(at, f"in {found}")
        elif kind < 0.41:
            words.insert(at, f"on {day.day} {day:%B %Y}")
        elif kind < 0.44:
            words.insert(at, str(int(rng.integers(2, 5_000))))
