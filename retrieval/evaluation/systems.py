"""What is compared: a mode, fixed weights, a stage of the ranking, a profile, or `adaptive` without a part of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from retrieval.errors import InvalidInput
from retrieval.types import ContextRequest, LegWeights, Mode, SearchRequest
from retrieval.weighting import check_weights

ADAPTIVE = "adaptive"
EQUAL_WEIGHTS = "1,1,1"
PACK_TOP_K = 200
"""Memories that compete for a place in a context pack: as many as the API gives, since turns of a chat are short."""

RRF_FIXED, RRF_ADAPTIVE, RRF_FIXED_RESCORED, ALL_STAGES = "rrf-fixed", "rrf-adaptive", "rrf-fixed+rescorer", "all"
"""The stages of the ranking: the fusion with fixed or adaptive weights, without or with the learned last step."""

STAGE_PAIRS = (
    (ALL_STAGES, RRF_FIXED),
    (ALL_STAGES, RRF_ADAPTIVE),
    (ALL_STAGES, RRF_FIXED_RESCORED),
    (RRF_ADAPTIVE, RRF_FIXED),
)
"""Which stage is held against which."""


class Family(StrEnum):
    """Why a system is run, and with that what it is compared with."""

    MODE = "mode"
    STAGE = "stage"
    PROFILE = "profile"
    PART = "part"


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """One way to rank.

    Attributes:
        name: how reports and files call it.
        family: a mode, which may have weights of its own; a stage; a profile; or `adaptive` without one of its parts.
        mode: the mode asked for.
        weights: weights that replace the mode's own.
        profile: the profile asked for; None for the namespace's.
        rescore: the learned last step on or off; None as the profile says.
        sessions: whether the corpus was stored with its sessions and positions.
    """

    name: str
    family: Family = Family.MODE
    mode: Mode = Mode.ADAPTIVE
    weights: LegWeights | None = None
    profile: str | None = None
    rescore: bool | None = None
    sessions: bool = True

    def request(self, query: str, top_k: int) -> SearchRequest:
        """The search for a query; it explains, since only then duplicates are named."""
        return SearchRequest(
            query=query,
            top_k=top_k,
            mode=self.mode,
            weights=self.weights,
            profile=self.profile,
            rescore=self.rescore,
            explain=True,
        )

    def context_request(self, query: str, max_tokens: int) -> ContextRequest:
        """The context pack for a query."""
        return ContextRequest(
            query=query,
            top_k=PACK_TOP_K,
            mode=self.mode,
            weights=self.weights,
            profile=self.profile,
            rescore=self.rescore,
            max_tokens=max_tokens,
        )


def parse_modes(text: str) -> list[Mode]:
    """Modes of a comma-separated list, each once.

    >>> [mode.value for mode in parse_modes("bm25, adaptive")]
    ['bm25', 'adaptive']
    """
    names = list(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in list(Mode):
            raise InvalidInput(f"{name!r} is no mode: use {', '.join(Mode)}")
    return [Mode(name) for name in names]


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


def modal(modes: Iterable[Mode], profile: str) -> list[System]:
    """A system per mode."""
    return [System(name=mode.value, mode=mode, profile=profile) for mode in modes]


def weighted(texts: Sequence[str], profile: str) -> list[System]:
    """Systems with fixed weights, named after them, each once."""
    return [
        System(name=weighted_name(text), mode=Mode.HYBRID, weights=parse_weights(text), profile=profile)
        for text in dict.fromkeys(texts)
    ]


def staged(profile: str) -> list[System]:
    """The ranking with each of its stages on or off.

    >>> [s.name for s in staged("default@3")]
    ['rrf-fixed', 'rrf-adaptive', 'rrf-fixed+rescorer', 'all']
    """
    stages = {
        RRF_FIXED: (Mode.HYBRID, False),
        RRF_ADAPTIVE: (Mode.ADAPTIVE, False),
        RRF_FIXED_RESCORED: (Mode.HYBRID, True),
        ALL_STAGES: (Mode.ADAPTIVE, True),
    }
    return [
        System(name=name, family=Family.STAGE, mode=mode, rescore=rescore, profile=profile)
        for name, (mode, rescore) in stages.items()
    ]


def profiled(name: str, profile: str) -> System:
    """Mode adaptive with a profile.

    Args:
        name: what the profile was asked for as, such as `mine` for its live version.
        profile: what requests ask for.
    """
    return System(name=f"profile={name}", family=Family.PROFILE, profile=profile)


def lacking(part: str, profile: str) -> System:
    """`adaptive` without a part, which that profile lacks."""
    return System(name=f"without-{part}", family=Family.PART, profile=profile)


def sessionless(profile: str) -> System:
    """`adaptive` over a corpus that was stored without sessions."""
    return System(name="without-sessions", family=Family.PART, profile=profile, sessions=False)
