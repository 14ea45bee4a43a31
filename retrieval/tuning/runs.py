"""What the legs found for labelled queries, kept in a file so that any profile can be replayed on it."""

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
from retrieval.types.search import Leg

FORMAT = 3
"""Counts up when a line changes its meaning; files of another format are collected anew."""

DEPTHS = (20, 40, 80)
"""Fan-outs that are tried. Below 20 there are none: an answer of ten is always chosen from twenty of each leg."""

_OF_THE_FUSION = frozenset(
    {
        *("name", "version", "fixed", "per_intent", "shrink", "trust", "rescore"),
        *("vector_noise", "bm25_noise", "source_cap", "diversity"),
    }
)
"""Fields of a profile that change nothing in what the legs find."""

_Weight = Annotated[float, Meta(ge=0)]


class Rescoring(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the rescorer makes of the candidates, whatever their fused order: as `classifier.rescorer.Rescored`.

    Attributes:
        identified: those that hold an identifier of the query and come first.
    """

    share: Annotated[float, Meta(ge=0, le=1)]
    scores: dict[str, float]
    identified: list[str] = []


class SavedQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One labelled query and what was found for it. No text of the query or of a memory.

    Attributes:
        set: the evaluation set, or the namespace whose feedback it is.
        intent: as labelled; None for as classified.
        asked: checksum of the query's text: the same question is never in two folds.
        weight: how much the query counts against the others of its set, above 0.
        probabilities: of the intents, in the order of `Intent`.
        learned: weights (vector, bm25, graph) that what the legs found asks for, by fan-out.
        fragment_share: how much of the query the embedder reads in fragments.
        rankings: ids with the scores of the vector and the BM25 leg, best first, before any noise is cut.
        graph: the same of the graph leg by fan-out: it sets out from what the others found at that depth.
        duplicates: ids of memories that say the same thing, by group.
        rescored: what the rescorer says by fan-out; empty where there is none.
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
    in_domain: Annotated[float, Meta(ge=0, le=1)] = field(name="familiarity")
    learned: dict[int, tuple[_Weight, _Weight, _Weight]]
    fragment_share: Annotated[float, Meta(ge=0, le=1)] = 0.0
    rankings: dict[Leg, list[tuple[str, float]]]
    graph: dict[int, list[tuple[str, float]]]
    duplicates: list[list[str]] = []
    rescored: dict[int, Rescoring] = {}

    @property
    def depths(self) -> list[int]:
        """The fan-outs that were asked, ascending."""
        return sorted(self.graph)

    def hits(self, leg: Leg, depth: int) -> list[tuple[str, float]]:
        """A leg's ranking where that many of each leg are asked for."""
        return (self.graph[depth] if leg is Leg.GRAPH else self.rankings[leg])[:depth]

    @property
    def label(self) -> str:
        """The intent as labelled, else the likeliest one."""
        if self.intent is not None:
            return self.intent.value
        return max(zip(self.probabilities, Intent, strict=True), key=lambda pair: pair[0])[1].value


def legs_key(profile: Profile) -> str:
    """A checksum of what in a profile changes what the legs find."""
    fields = {name: value for name, value in msgspec.to_builtins(profile).items() if name not in _OF_THE_FUSION}
    return hashlib.sha256(msgspec.json.encode([FORMAT, depths_of(profile), fields], order="sorted")).hexdigest()


def depths_of(profile: Profile) -> list[int]:
    """The fan-outs that are asked, ascending: those that are tried, and the profile's own in either mode."""
    return sorted({*DEPTHS, *(max(DEPTHS[0], fan_out) for fan_out in (profile.fan_out, profile.fixed.fan_out))})


def checksum(parts: Iterable[str | bytes]) -> str:
    """The sha256 of some parts, each with its length."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8) + raw)
    return digest.hexdigest()


class RunFile:
    """A file of `SavedQuery` lines that grows as queries are asked and goes on where it stopped."""

    def __init__(self, path: Path, key: str) -> None:
        """Use a file, which need not be there; `key` is the checksum of all that its lines depend on."""
        self.path = path
        self._head = msgspec.json.encode({"format": FORMAT, "key": key})

    def read(self) -> dict[str, SavedQuery]:
        """The lines by query; none of a file that depends on something else. A torn last line is left out.

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
        for number, line in enumerate(lines[1:-1], start=2):  # a line counts once its end is there
            try:
                saved = decoder.decode(line)
            except msgspec.DecodeError as exc:
                raise InvalidInput(f"{self.path}:{number}: {exc}; delete the file to ask anew") from exc
            found[saved.id] = saved
        return found

    @contextmanager
    def appending(self) -> Iterator[Callable[[SavedQuery], None]]:
        """A function that appends a line after the last whole one; what cannot be continued is begun anew.

        Each line is on disk before the next query is asked.
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
