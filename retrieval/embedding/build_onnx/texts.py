"""Synthetic sample texts, to calibrate the quantisation and to measure its accuracy.

Generated from a small grammar over word lists, so that the repository needs no third-party corpus. They mix what a
retrieval server sees: questions, chat turns, facts, notes, code, other languages, symbols, and passages long enough to
be truncated at 256 word pieces.
"""

import random
import re
from collections.abc import Sequence
from importlib import resources

import msgspec

FIDELITY_TEXTS = 1000
FIDELITY_SEED = 0
CALIBRATION_TEXTS = 300
CALIBRATION_SEED = 1
_RANDOM_TEXTS = 200
_MOST_RANDOM_PIECES = 59
_START, _END = 101, 102
_FIRST_WORD, _VOCABULARY = 999, 30522

_TEXTS = msgspec.json.decode(resources.files(__package__).joinpath("texts.json").read_bytes())
"""`words` to fill the slots of `sentences`, both by kind."""

_KINDS = ("question", "question", "chat", "chat", "fact", "fact", "note", "code", "foreign", "symbols")
_LONGER_EVERY = 3
_MOST_SENTENCES = 24
_SLOT = re.compile(r"\{(\w+)\}")


def sample_texts(count: int, seed: int) -> list[str]:
    """Make `count` different texts of 1 to about 400 word pieces, the same for the same seed.

    Uses only `random.Random.random`, whose sequence Python guarantees not to change.

    >>> sample_texts(2, seed=5) == sample_texts(2, seed=5)
    True
    """
    source = random.Random(seed)
    texts: dict[str, None] = {}
    while len(texts) < count:
        kind = _pick(source, _KINDS)
        longer = source.random() < 1 / _LONGER_EVERY
        sentences = 1 + int(source.random() ** 2 * _MOST_SENTENCES) if longer else 1
        texts[" ".join(_sentence(source, kind) for _ in range(sentences))] = None
    return list(texts)


def sample_pieces(seed: int) -> list[list[int]]:
    """Make 200 texts of 1 to 59 word pieces drawn from the whole vocabulary, framed as the tokenizer does."""
    source = random.Random(seed)
    return [
        [_START, *(_random_piece(source) for _ in range(1 + int(source.random() * _MOST_RANDOM_PIECES))), _END]
        for _ in range(_RANDOM_TEXTS)
    ]


def _random_piece(source: random.Random) -> int:
    return _FIRST_WORD + int(source.random() * (_VOCABULARY - _FIRST_WORD))


def _sentence(source: random.Random, kind: str) -> str:
    template = _pick(source, _TEXTS["sentences"][kind])
    return _SLOT.sub(lambda slot: _pick(source, _TEXTS["words"][slot[1]]), template)


def _pick(source: random.Random, choices: Sequence[str]) -> str:
    return choices[int(source.random() * len(choices))]
