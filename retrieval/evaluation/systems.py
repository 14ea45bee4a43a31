"""What is compared: a mode, or fixed weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.errors import InvalidInput
from retrieval.types import LegWeights, Mode, SearchRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """One way to rank.

    Attributes:
        name: how reports and files call it.
        mode: the mode asked for.
        weights: weights that replace the mode's own.
    """

    name: str
    mode: Mode
    weights: LegWeights | None = None

    def request(self, query: str, top_k: int) -> SearchRequest:
        """The search for a query; it explains, since only then duplicates are named."""
        return SearchRequest(query=query, top_k=top_k, mode=self.mode, weights=self.weights, explain=True)


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
    return LegWeights(vector=vector, bm25=bm25, graph=graph)


def weighted(texts: Sequence[str]) -> list[System]:
    """Systems with fixed weights, named after them."""
    return [System(name=f"weights={text}", mode=Mode.HYBRID, weights=parse_weights(text)) for text in texts]
