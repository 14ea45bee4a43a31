"""The sets on which the shipped models are trained, their licences, and the commands' choice among them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from classifier.training.checksums import MODELS

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
    "realmem_dev": "Apache-2.0",
    "trivet_conversations": "Apache-2.0, this project's own",
    "trivet_knowledge": "Apache-2.0, this project's own",
    "trivet_diaries": "Apache-2.0, this project's own",
    "trivet_languages": "Apache-2.0, this project's own",
}
"""By name. The models contain none of their texts, the repository only those of its own corpus."""

PERMISSIVE = (
    *("lme_mini", "beam_100k", "ikat_ptkb", "hotpotqa", "cosqa", "realmem_dev"),
    *("trivet_conversations", "trivet_knowledge", "trivet_diaries", "trivet_languages"),
)
"""The sets whose licence allows commercial use: the default models learn from no others."""


def licence_of(name: str) -> str:
    """The licence of a set; an unknown set is its owner's."""
    return LICENCES.get(name, "its owner's")


def parse_training(
    parser: argparse.ArgumentParser, model: str, arguments: Sequence[str] | None = None
) -> tuple[argparse.Namespace, Path]:
    """Parse a training command with its options `--models` and `--research`; also the path of the model to write."""
    parser.add_argument("--models", type=Path, default=MODELS, help="folder of models (default: %(default)s)")
    parser.add_argument(
        "--research", action="store_true", help=f"{model}-research.onnx, also by sets that do not allow commercial use"
    )
    given = parser.parse_args(arguments)
    return given, given.models / f"{model}{'-research' if given.research else ''}.onnx"


def may_learn_from(name: str, given: argparse.Namespace) -> bool:
    """Whether a training command may use a set: one that allows commercial use, with `--research` any known set."""
    return name in (LICENCES if given.research else PERMISSIVE)
