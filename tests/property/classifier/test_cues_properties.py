"""Looking up cues by words gives the same as matching each pattern."""

import re

from hypothesis import given
from hypothesis import strategies as st

from classifier.cues import FIRST_WORD, PATTERNS, cue_numbers

SAID = sorted(set(re.findall(r"[^\W\d_]+(?:'[^\W_]+)*", " ".join([*FIRST_WORD.values(), *PATTERNS.values()]))))
"""Words of the patterns, from which every cue can occur."""

WORDS = st.sampled_from(SAID) | st.sampled_from([word + end for word in SAID for end in ("s", "ed", "ing", "'s")])
OTHERS = st.text("abdeilnorstuwé'1", min_size=1, max_size=8)


@given(st.lists(WORDS | OTHERS, max_size=12))
def test_the_cues_are_those_of_every_pattern(words: list[str]) -> None:
    joined = f" {' '.join(words)} "
    first = [number for number, group in enumerate(FIRST_WORD.values()) if words and words[0] in group.split("|")]
    found = [number for number, pattern in enumerate(PATTERNS.values(), len(FIRST_WORD)) if re.search(pattern, joined)]
    assert cue_numbers(words) == (first + found if words else [])
