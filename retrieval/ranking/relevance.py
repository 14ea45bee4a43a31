"""Which candidates are relevant enough to be shown."""

from __future__ import annotations

from retrieval.errors import InvalidInput
from retrieval.ranking.timeliness import NamedTime


def check_relevance(min_relevance: float | None, *, rescores: bool) -> None:
    """Raise InvalidInput for a bound on what will not be known; 0 is none."""
    if min_relevance and not rescores:
        raise InvalidInput("needs the rescorer, which this request or its profile does without", loc=("min_relevance",))


def is_relevant(relevance: float, time: NamedTime | None, doc: int, *, at_least: float) -> bool:
    """Whether a memory is relevant enough, or of the time for which the query asks, which the rescorer does not see."""
    return relevance >= at_least or bool(time is not None and time.certain and time.eligible[doc])
