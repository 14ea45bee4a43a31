"""Overlapping bigrams for scripts that are written without spaces.

Han and kana form one kind of run, Hangul another, Thai, Lao, Khmer and Burmese a third. Korean has spaces, but its
particles attach to the nouns, and bigrams match the noun in either form.
"""

from __future__ import annotations

import re
from itertools import pairwise

HAN_KANA = (
    "\u3005-\u3007\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"
SOUTH_EAST_ASIAN = "\u0e01-\u0e4e\u0e80-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3\u17dd"

RUN = re.compile(f"([{HAN_KANA}\u3099\u309a]+|[{HANGUL}]+|[{SOUTH_EAST_ASIAN}]+)")
"""A run of one group of scripts; captured, so that `RUN.split` keeps the runs."""

# A base character with its vowel and tone marks (Thai, Lao, Burmese, Khmer, kana).
_CLUSTER = re.compile(
    ".[\u0e31\u0e33-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb3-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059"
    "\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u17b4-\u17d3\u17dd\u3099\u309a]*",
    re.DOTALL,
)


def bigrams(run: str) -> list[str]:
    """Overlapping pairs of the run's characters, with their marks; a single character is returned itself.

    >>> bigrams("東京都"), bigrams("茶")
    (['東京', '京都'], ['茶'])
    """
    characters = _CLUSTER.findall(run)
    if len(characters) < 2:
        return characters
    return [first + second for first, second in pairwise(characters)]
