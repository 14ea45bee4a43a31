"""However an export's bytes are damaged, a reader reports what it cannot read and never fails in another way."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.errors import InvalidInput
from retrieval.imports.files import ImportFile
from retrieval.imports.formats import FORMATS, detect, read
from retrieval.imports.records import ImportContext, SourceRecord
from retrieval.types.memory import MemoryInput
from tests import exports
from tests.examples import share_of_examples
from tests.exports import EXPORTS, zipped


@cache
def small(name: str) -> bytes:
    """The beginning of an export; a zip as a whole, as its list of files is at the end."""
    whole = EXPORTS[name]()
    return whole if whole.startswith(b"PK") else whole[:6_000]


def outcome(data: bytes, name: str) -> list[SourceRecord] | None:
    """The records read; None if the file as a whole is refused."""
    try:
        records = list(read(ImportFile(io.BytesIO(data), "x"), name, ImportContext()))
    except InvalidInput:
        return None
    return [record for record in records if isinstance(record, SourceRecord)]


_edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), st.binary(max_size=12)), max_size=8)


def mutilated(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    """The data with parts replaced, given by offset, length and new content."""
    for where, length, instead in edits:
        start = int(where * len(data))
        data = data[:start] + instead + data[start + length :]
    return data


@pytest.mark.parametrize("name", EXPORTS)
@given(edits=_edits)
@settings(max_examples=share_of_examples(0.15))
def test_a_mutilated_export_is_read_as_far_as_it_goes(name: str, edits: list[tuple[float, int, bytes]]) -> None:
    data = mutilated(small(name), edits)
    outcome(data, name.partition("-")[0])
    with suppress(InvalidInput):
        assert detect(ImportFile(io.BytesIO(data), "x")) in FORMATS


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.binary(max_size=400), packed=st.booleans())
@settings(max_examples=share_of_examples(0.15))
def test_no_bytes_at_all_make_a_reader_fail(name: str, data: bytes, packed: bool) -> None:
    if packed:
        files = dict.fromkeys(("conversations.json", "c/2024-01-01.json", "_chat.txt", "result.json", "x.csv"), data)
        data = zipped(files)
    outcome(data, name)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("name", ["chatgpt", "claude", "telegram", "discord", "mem0", "zep", "hindsight", "jsonl"])
@given(data=st.data())
@settings(max_examples=share_of_examples(0.25))
def test_values_of_another_type_are_refused_or_left_out(name: str, data: st.DataObject) -> None:
    """The keys are the format's, with arbitrary values."""
    export = json.loads(_sample(name))

    def changed(value: object, depth: int = 0) -> object:
        if depth and data.draw(st.integers(0, 11)) == 0:
            return data.draw(_json)
        if isinstance(value, dict):
            return {key: changed(item, depth + 1) for key, item in value.items()}
        return [changed(item, depth + 1) for item in value] if isinstance(value, list) else value

    records = outcome(json.dumps(changed(export)).encode(), name)
    assert records is None or all(isinstance(record.memory, MemoryInput | InvalidInput) for record in records)


@cache
def _sample(name: str) -> str:
    """A small export as JSON."""
    turns = exports.talk(count=3)
    conversation = {"chatgpt": exports.chatgpt_conversation, "claude": exports.claude_conversation}.get(name)
    if conversation is not None:
        return json.dumps([conversation(turns, "c")])
    if name == "telegram":
        return json.dumps(exports.telegram_chat(turns, 7))
    if name == "jsonl":
        return exports.jsonl().decode().partition("\n")[0]
    whole = json.loads(EXPORTS[name]())
    return json.dumps({key: value[-3:] if isinstance(value, list) else value for key, value in whole.items()})
