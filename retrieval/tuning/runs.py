"""The legs' results for labelled queries, kept in a file so that any profile can be replayed on them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from classifier.intents import Intent
from retrieval.errors import InvalidInput
from retrieval.profiles.profile import Profile
from retrieval.types.search import Leg, Share

FORMAT = 3
"""Incremented when a line changes its meaning; files of another format are collected again."""

DEPTHS = (20, 40, 80)
"""Fan-outs to try. None is below 20: an answer of ten is always chosen from twenty of each leg."""

_OF_THE_FUSION = frozenset(
    {
        *("name", "version", "fixed", "per_intent", "shrink", "trust", "rescore"),
        *("vector_noise", "bm25_noise", "source_cap", "diversity"),
    }
)
"""Fields of a profile that do not affect the legs' results."""

_Weight = Annotated[float, Meta(ge=0)]


class Rescoring(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rescorer's output for the candidates, which does not depend on their fused order; see `RescoredCandidates`.

    Attributes:
        identified: candidates that contain an identifier of the query and so come first.
    """

    share: Share
    scores: dict[str, float]
    identified: list[str] = []


class SavedQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One labelled query and its results, without the text of the query or of a memory.

    Attributes:
        set: the evaluation set, or the namespace of the feedback.
        intent: as labelled; None to use the classified one.
        asked: checksum of the query's text, to keep the same question in one fold.
        weight: relative to the other queries of its set, above 0.
        probabilities: of the intents, in the order of `Intent`.
        learned: weights (vector, bm25, graph) predicted from the legs' results, by fan-out.
        fragment_share: how much of the query the embedder reads in fragments.
        rankings: ids with the scores of the vector and the BM25 leg, best first, before the noise cut.
        graph: the same of the graph leg, by fan-out, as it starts from the other legs' hits at that depth.
        duplicates: ids of memories that say the same thing, by group.
        rescored: the rescorer's output by fan-out; empty without a rescorer.
    """

    id: str
    set: str
    namespace: str
    type: str
    intent: Intent | None
    asked: str
    gains: Annotated[dict[str, Annotated[float, Meta(gt=0)]], Meta(min_length=1)]
    weight: Annotated[float, Meta(gt=0)] = 1.0
    probabilities: tuple[float, float, float, float]
    in_domain: Share = field(name="familiarity")
    learned: dict[int, tuple[_Weight, _Weight, _Weight]]
    fragment_share: Share = 0.0
    rankings: dict[Leg, list[tuple[str, float]]]
    graph: dict[int, list[tuple[str, float]]]
    duplicates: list[list[str]] = []
    rescored: dict[int, Rescoring] = {}

    @property
    def depths(self) -> list[int]:
        """The fan-outs that were run, ascending."""
        return sorted(self.graph)

    def hits(self, leg: Leg, depth: int) -> list[tuple[str, float]]:
        """A leg's ranking at a fan-out."""
        return (self.graph[depth] if leg is Leg.GRAPH else self.rankings[leg])[:depth]

    @property
    def label(self) -> str:
        """The labelled intent, or else the most probable one."""
        if self.intent is not None:
            return self.intent.value
        return max(zip(self.probabilities, Intent, strict=True), key=lambda pair: pair[0])[1].value


def legs_key(profile: Profile) -> str:
    """A checksum of the fields of a profile that affect the legs' results."""
    fields = {name: value for name, value in msgspec.to_builtins(profile).items() if name not in _OF_THE_FUSION}
    return hashlib.sha256(msgspec.json.encode([FORMAT, depths_of(profile), fields], order="sorted")).hexdigest()


def depths_of(profile: Profile) -> list[int]:
    """The fan-outs to run, ascending: those to try, and the profile's own in either mode."""
    return sorted({*DEPTHS, *(max(DEPTHS[0], fan_out) for fan_out in (profile.fan_out, profile.fixed.fan_out))})


def checksum(parts: Iterable[str | bytes]) -> str:
    """The sha256 of some parts, each with its length."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8) + raw)
    return digest.hexdigest()


class RunFile:
    """A file of `SavedQuery` lines that grows as queries run, and continues after an interruption."""

    def __init__(self, path: Path, key: str) -> None:
        """Use a file, which need not exist; `key` is the checksum of everything that its lines depend on."""
        self.path = path
        self._head = msgspec.json.encode({"format": FORMAT, "key": key})

    def read(self) -> dict[str, SavedQuery]:
        """The lines by query; none if the file has another key. An incomplete last line is left out.

        Raises:
            InvalidInput: a line before the last one that cannot be read.
        """
        if not self.path.exists():
            return {}
        lines = self.path.read_bytes().split(b"\n")
        if lines[0] != self._head:
            return {}
        decoder = msgspec.json.Decoder(SavedQuery)
        found: dict[str, SavedQuery] = {}
        for number, line in enumerate(lines[1:-1], start=2):  # a line is complete once it has its line end
            try:
                saved = decoder.decode(line)
            except msgspec.DecodeError as exc:
                raise InvalidInput(f"{self.path}:{number}: {exc}; delete the file to run the queries again") from exc
            found[saved.id] = saved
        return found

    @contextmanager
    def appending(self) -> Iterator[Callable[[SavedQuery], None]]:
        """A function that appends a line after the last complete one; a file that cannot be continued is replaced.

        Each line is flushed to disk before the next query runs.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            file.seek(0)
            raw = file.read()
            head, end, _ = raw.partition(b"\n")
            if end and head == self._head:
                file.truncate(raw.rindex(b"\n") + 1)
            else:
                file.truncate(0)
                file.write(self._head + b"\n")

            def add(saved: SavedQuery) -> None:
                file.write(msgspec.json.encode(saved) + b"\n")
                file.flush()

            yield add
