"""The systems that the command line compares: modes, weights, stages, profiles, `adaptive` without a part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from retrieval.errors import InvalidInput
from retrieval.evaluation.ablations import ablated, ablated_name
from retrieval.evaluation.folder import Query
from retrieval.profiles.profile import Profile
from retrieval.ranking.weighting import parse_weights
from retrieval.types.search import ContextRequest, LegWeights, Mode, SearchRequest

ADAPTIVE = "adaptive"
EQUAL_WEIGHTS = "1,1,1"

RRF_FIXED, RRF_ADAPTIVE, RRF_FIXED_RESCORED, ALL_STAGES = "rrf-fixed", "rrf-adaptive", "rrf-fixed+rescorer", "all"
"""The stages of the ranking: the fusion with fixed or adaptive weights, without or with the rescorer."""

STAGE_PAIRS = (
    (ALL_STAGES, RRF_FIXED),
    (ALL_STAGES, RRF_ADAPTIVE),
    (ALL_STAGES, RRF_FIXED_RESCORED),
    (RRF_ADAPTIVE, RRF_FIXED),
)
"""The stages that are compared with each other."""


class Family(StrEnum):
    """Why a system is run, which decides what it is compared with."""

    MODE = "mode"
    STAGE = "stage"
    PROFILE = "profile"
    PART = "part"


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """One way to rank.

    Attributes:
        profile: the profile to request; None for the namespace's.
        rescore: whether to rescore; None for the profile's choice.
        sessions: whether the corpus was stored with its sessions and positions.
    """

    name: str
    family: Family = Family.MODE
    mode: Mode = Mode.ADAPTIVE
    weights: LegWeights | None = None
    profile: str | None = None
    rescore: bool | None = None
    sessions: bool = True

    def request(self, query: Query, top_k: int) -> SearchRequest:
        """The search for a query, with `explain`, as only then duplicates are listed."""
        return SearchRequest(**self._fields(query), top_k=top_k, explain=True)

    def context_request(self, query: Query, max_tokens: int) -> ContextRequest:
        """The context pack for a query."""
        return ContextRequest(**self._fields(query), max_tokens=max_tokens)

    def _fields(self, query: Query) -> dict[str, Any]:
        """The fields that both requests take from the query and this system."""
        own = {"mode": self.mode, "weights": self.weights, "profile": self.profile, "rescore": self.rescore}
        return query.search_fields | own


def parse_modes(text: str) -> list[Mode]:
    """Parse a comma-separated list of modes, dropping repeats.

    >>> [mode.value for mode in parse_modes("bm25, adaptive")]
    ['bm25', 'adaptive']
    """
    names = list(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in list(Mode):
            raise InvalidInput(f"{name!r} is no mode: use {', '.join(Mode)}")
    return [Mode(name) for name in names]


def weighted_name(text: str) -> str:
    """The name of a system with fixed weights."""
    return f"weights={text}"


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
    """Mode adaptive with a profile: `name` is the user's name for it, `profile` the name in requests."""
    return System(name=f"profile={name}", family=Family.PROFILE, profile=profile)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lineup:
    """What to compare. `base` names the profile of all systems without one of their own."""

    modes: Sequence[Mode] = ()
    weights: Sequence[str] = ()
    stages: bool = False
    profiles: Sequence[str] = ()
    base: str
    parts: Sequence[str] = ()
    without_sessions: bool = False

    @property
    def profile_names(self) -> list[str]:
        """The profiles that must be looked up."""
        return list(dict.fromkeys([self.base, *self.profiles]))

    def systems(self, found: Mapping[str, Profile]) -> list[System]:
        """The systems in the order of reports; `found` are the profiles by the user's name."""
        base = lent_name(found[self.base])
        lacking = {f"without-{part}": ablated_name(part, found[self.base]) for part in self.parts}
        sessionless = System(name="without-sessions", family=Family.PART, profile=base, sessions=False)
        return [
            *(System(name=mode.value, mode=mode, profile=base) for mode in self.modes),
            *weighted(self.weights, base),
            *(staged(base) if self.stages else ()),
            *(profiled(name, lent_name(found[name])) for name in self.profiles),
            *(System(name=name, family=Family.PART, profile=profile) for name, profile in lacking.items()),
            *([sessionless] if self.without_sessions else ()),
        ]

    def requestable(self, found: Mapping[str, Profile]) -> dict[str, Profile]:
        """The profiles that the systems use, by the name in requests.

        Raises:
            InvalidInput: without one of the parts no leg is left to rank with.
        """
        return {lent_name(profile): profile for profile in found.values()} | ablated(self.parts, found[self.base])


def lent_name(profile: Profile) -> str:
    """The name in requests for a version of a profile: each version needs a different one, without an @.

    >>> from retrieval.profiles.profile import DEFAULT
    >>> lent_name(DEFAULT) == f"default:{DEFAULT.version}"
    True
    """
    return f"{profile.name}:{profile.version}"


def line_up(
    *,
    modes: str | None,
    weights: Sequence[str],
    stages: bool,
    profiles: str | None,
    base: str,
    parts: Sequence[str],
    without_sessions: bool,
) -> Lineup:
    """Build the lineup from the options.

    `modes` and `profiles` are comma-separated lists. Without `modes`, all modes run, or with stages or profiles only
    the one that ablations, if any, are compared with. Mode adaptive comes with equal weights.

    Raises:
        InvalidInput: a mode that does not exist, weights that are not three numbers, a profile without a name or
            named twice, ablations without the mode that they are compared with, or nothing at all.
    """
    ablating = bool(parts) or without_sessions
    if modes is not None:
        chosen = parse_modes(modes) if modes else []
    elif stages or profiles is not None:
        chosen = [Mode.ADAPTIVE] if ablating else []
    else:
        chosen = [Mode.VECTOR, Mode.BM25, Mode.GRAPH, Mode.HYBRID, Mode.ADAPTIVE]
    if ablating and Mode.ADAPTIVE not in chosen:
        raise InvalidInput("ablations are compared with mode adaptive, which --modes leaves out")
    texts = [*([EQUAL_WEIGHTS] if Mode.ADAPTIVE in chosen else ()), *("".join(text.split()) for text in weights)]
    for text in texts:
        parse_weights(text)
    found = Lineup(
        modes=chosen,
        weights=texts,
        stages=stages,
        profiles=parse_profiles(profiles) if profiles is not None else (),
        base=base,
        parts=parts,
        without_sessions=without_sessions,
    )
    if not (chosen or texts or stages or found.profiles):
        raise InvalidInput("there is nothing to measure: name --modes, --weights, --stages or --profiles")
    return found


def parse_profiles(text: str) -> list[str]:
    """Parse a comma-separated list of profiles, with or without versions.

    >>> parse_profiles("default, mine@2")
    ['default', 'mine@2']
    """
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        raise InvalidInput(f"profiles are names such as default,mine@2, not {text!r}")
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"profile {name!r} is named twice")
    return names
