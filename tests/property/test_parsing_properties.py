"""Checks on a body before it is decoded are right, however it is split into pieces."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval import validation
from retrieval.errors import InvalidInput

_texts = st.text(st.sampled_from('a"\\,[]{}\n é'), max_size=12)
_values = st.recursive(
    st.none() | st.integers(0, 99) | _texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=20,
)
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


@given(st.lists(_values, min_size=1, max_size=9), st.integers(1, 20), st.booleans())
def test_what_stands_outside_of_strings(memories: list[Any], piece: int, ascii: bool) -> None:
    body = json.dumps({"memories": memories}, ensure_ascii=ascii).encode()
    outside = len(_STRING.sub(b"", body))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "SMALL_BYTES", 0)
        patch.setattr(validation, "_CHUNK_BYTES", piece)
        assert validation.check_structure(body, outside) == len(memories)
        with pytest.raises(InvalidInput, match="outside strings"):
            validation.check_structure(body, outside - 1)


@given(st.lists(st.sampled_from([r"\ud83d", r"\ude00", r"\\", r"\"", "a", "ud83d", r"\u00e9"])))
def test_half_surrogate_pairs_are_told_by_their_place(parts: list[str]) -> None:
    """A text that Python cannot encode is refused as a field, any other is stored unchanged."""
    text = "".join(parts)
    wanted = json.loads(f'"{text}."')
    (memory,) = validation.parse_batch(f'{{"memories": [{{"text": "{text}."}}]}}'.encode())
    try:
        wanted.encode()
    except UnicodeEncodeError:
        assert isinstance(memory, InvalidInput)
        assert memory.loc == ("memories", 0, "text")
    else:
        assert not isinstance(memory, InvalidInput)
        assert memory.text == wanted
