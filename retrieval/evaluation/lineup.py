"""Which systems an evaluation runs, from what the command line says; profiles are named first and looked up later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrieval.errors import InvalidInput
from retrieval.evaluation.ablations import ablated, ablated_name
from retrieval.evaluation.systems import (
    EQUAL_WEIGHTS,
    System,
    lacking,
    modal,
    parse_modes,
    parse_weights,
    profiled,
    sessionless,
    staged,
    weighted,
)
from retrieval.profiles import Profile
from retrieval.types import Mode


@dataclass(frozen=True, kw_only=True, slots=True)
class Lineup:
    """What is to be compared.

    Attributes:
        modes: each a system.
        weights: fixed weights as texts, each a system.
        stages: whether the stages of the ranking are compared.
        profiles: names of profiles, each a system.
        base: name of the profile of all systems that have none of their own.
        parts: what `adaptive` is run without, each a system.
        without_sessions: whether `adaptive` is run over a corpus without sessions too.
    """

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
        """The systems in the order of reports.

        Args:
            found: the profiles by the name that they were asked for as.
        """
        base = lent_name(found[self.base])
        return [
            *modal(self.modes, base),
            *weighted(self.weights, base),
            *(staged(base) if self.stages else ()),
            *(profiled(name, lent_name(found[name])) for name in self.profiles),
            *(lacking(part, ablated_name(part, found[self.base])) for part in self.parts),
            *([sessionless(base)] if self.without_sessions else ()),
        ]

    def requestable(self, found: Mapping[str, Profile]) -> dict[str, Profile]:
        """The profiles that the systems ask for, by what they ask for.

        Raises:
            InvalidInput: without one of the parts nothing that ranks is left.
        """
        return {lent_name(profile): profile for profile in found.values()} | ablated(self.parts, found[self.base])


def lent_name(profile: Profile) -> str:
    """What systems ask for a version of a profile as: versions of a profile need names of their own, without an @.

    >>> from retrieval.profiles import DEFAULT
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
    """What the options ask for.

    Args:
        modes: a comma-separated list, empty for none; None for all of them, or beside stages or profiles for
            none but what ablations are compared with.
        weights: as `parse_weights` takes them. Mode adaptive brings equal weights along.
        stages: whether the stages of the ranking are compared.
        profiles: a comma-separated list of names, None for none.
        base: name of the profile of all else.
        parts: what `adaptive` is run without.
        without_sessions: whether it is run over a corpus without sessions too.

    Raises:
        InvalidInput: a mode that does not exist, weights that are not three numbers, a profile without a name or
            named twice, ablations without the mode that they are compared with, or nothing at all.
    """
    ablating = bool(parts) or without_sessions
    chosen = _modes(modes, beside=stages or profiles is not None, ablating=ablating)
    if ablating and Mode.ADAPTIVE not in chosen:
        raise InvalidInput("ablations are compared with mode adaptive, which --modes leaves out")
    texts = [*([EQUAL_WEIGHTS] if Mode.ADAPTIVE in chosen else ()), *weights]
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
    """Names of profiles, with or without a version, of a comma-separated list.

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


def _modes(text: str | None, *, beside: bool, ablating: bool) -> list[Mode]:
    """The modes that are asked for, or those that nobody has to ask for."""
    if text is not None:
        return parse_modes(text) if text else []
    if not beside:
        return [Mode.VECTOR, Mode.BM25, Mode.GRAPH, Mode.HYBRID, Mode.ADAPTIVE]
    return [Mode.ADAPTIVE] if ablating else []
