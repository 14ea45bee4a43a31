"""What is compared: a mode, fixed weights, or `adaptive` without one of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.errors import InvalidInput
from retrieval.evaluation.ablations import ablated_name, parse_parts
from retrieval.profiles import DEFAULT
from retrieval.types import ContextRequest, LegWeights, Mode, SearchRequest
from retrieval.weighting import check_weights

ADAPTIVE = "adaptive"
EQUAL_WEIGHTS = "1,1,1"
PACK_TOP_K = 200
"""Memories that compete for a place in a context pack: as many as the API gives, since turns of a chat are short."""


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """One way to rank.

    Attributes:
        name: how reports and files call it.
        mode: the mode asked for.
        weights: weights that replace the mode's own.
        profile: the profile asked for; None for the default.
        sessions: whether the corpus was stored with its sessions and positions.
    """

    name: str
    mode: Mode
    weights: LegWeights | None = None
    profile: str | None = None
    sessions: bool = True

    @property
    def is_ablation(self) -> bool:
        """Whether it is `adaptive` without one of its parts."""
        return self.profile is not None or not self.sessions

    def request(self, query: str, top_k: int) -> SearchRequest:
        """The search for a query; it explains, since only then duplicates are named."""
        return SearchRequest(
            query=query, top_k=top_k, mode=self.mode, weights=self.weights, profile=self.profile, explain=True
        )

    def context_request(self, query: str, max_tokens: int) -> ContextRequest:
        """The context pack for a query."""
        return ContextRequest(
            query=query,
            top_k=PACK_TOP_K,
            mode=self.mode,
            weights=self.weights,
            profile=self.profile,
            max_tokens=max_tokens,
        )


def parse_modes(text: str) -> list[System]:
    """Systems of a comma-separated list of modes, each once.

    >>> [s.name for s in parse_modes("bm25, adaptive")]
    ['bm25', 'adaptive']
    """
    systems = []
    for name in dict.fromkeys(part.strip() for part in text.split(",")):
        if name not in list(Mode):
            raise InvalidInput(f"{name!r} is no mode: use {', '.join(Mode)}")
        systems.append(System(name=name, mode=Mode(name)))
    return systems


def parse_weights(text: str) -> LegWeights:
    """Weights from `VECTOR,BM25,GRAPH`.

    >>> parse_weights("0.3,0.5,0.2").bm25
    0.5
    """
    try:
        vector, bm25, graph = (float(part) for part in text.split(","))
    except ValueError as exc:
        raise InvalidInput(f"weights are three numbers VECTOR,BM25,GRAPH, not {text!r}") from exc
    weights = LegWeights(vector=vector, bm25=bm25, graph=graph)
    try:
        check_weights(weights)
    except InvalidInput as exc:
        raise InvalidInput(f"weights {text!r}: {exc}") from exc
    return weights


def weighted_name(text: str) -> str:
    """How a system with fixed weights is called."""
    return f"weights={text}"


def weighted(texts: Sequence[str]) -> list[System]:
    """Systems with fixed weights, named after them, each once."""
    return [
        System(name=weighted_name(text), mode=Mode.HYBRID, weights=parse_weights(text)) for text in dict.fromkeys(texts)
    ]


def ablations(parts: str | None, *, without_sessions: bool) -> list[System]:
    """`adaptive` without each of these parts.

    Args:
        parts: as `parse_parts` takes them; None for none.
        without_sessions: also over a corpus that was stored without sessions.

    >>> [s.name for s in ablations("graph", without_sessions=True)]
    ['without-graph', 'without-sessions']
    """
    systems = [
        System(name=f"without-{part}", mode=Mode.ADAPTIVE, profile=ablated_name(part, DEFAULT))
        for part in (parse_parts(parts) if parts is not None else ())
    ]
    if without_sessions:
        systems.append(System(name="without-sessions", mode=Mode.ADAPTIVE, sessions=False))
    return systems
