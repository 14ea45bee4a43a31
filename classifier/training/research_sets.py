"""The research sets on which the shipped models are trained, their licences, and the commands' choice among them."""

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
}
"""By folder name. Neither the models nor the repository contain their texts."""

PERMISSIVE = ("lme_mini", "beam_100k", "ikat_ptkb", "hotpotqa", "cosqa")
"""The sets whose licence allows commercial use."""


def licence_of(name: str) -> str:
    """The licence of a set; an unknown set is its owner's."""
    return LICENCES.get(name, "its owner's")


def parse_training(
    parser: argparse.ArgumentParser, model: str, arguments: Sequence[str] | None = None
) -> tuple[argparse.Namespace, Path]:
    """Parse a training command with its options `--models` and `--permissive`; also the path of the model to write."""
    parser.add_argument("--models", type=Path, default=MODELS, help="folder of models (default: %(default)s)")
    parser.add_argument(
        "--permissive", action="store_true", help=f"{model}-permissive.onnx, by sets that allow commercial use alone"
    )
    given = parser.parse_args(arguments)
    return given, given.models / f"{model}{'-permissive' if given.permissive else ''}.onnx"
