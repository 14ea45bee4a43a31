"""How many examples a property is tried with where each of them takes long."""

from __future__ import annotations

from hypothesis import settings


def share_of_examples(share: float) -> int:
    """A share of the profile's number, so that `--hypothesis-profile=search` tries more here, too."""
    return round(settings().max_examples * share)
