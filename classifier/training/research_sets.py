"""The research sets on which the shipped models are trained, and their licences."""

from __future__ import annotations

LICENCES = {
    "locomo": "CC BY-NC 4.0",
    "realtalk": "not stated",
    "lme_mini": "MIT",
    "beam_100k": "CC BY-SA 4.0",
    "prefeval": "CC BY-NC 4.0",
    "ikat_ptkb": "MIT",
    "hotpotqa": "CC BY-SA 4.0",
    "wikiqa": "Microsoft Research Data License",
    "cranfield": "none stated, free for research",
    "med": "none stated, free for research",
    "cosqa": "C-UDA",
}
"""By folder name. Neither the models nor the repository contain their texts."""

PERMISSIVE = ("lme_mini", "beam_100k", "ikat_ptkb", "hotpotqa", "cosqa")
"""The sets whose licence allows commercial use."""


def licence_of(name: str) -> str:
    """The licence of a set; an unknown set is its owner's."""
    return LICENCES.get(name, "its owner's")
