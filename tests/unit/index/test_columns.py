"""An index's data of memories: strings, masks against a plain predicate, arrays for the kernels, names."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrieval.index import hash_index
from retrieval.index import strings as strings_module
from retrieval.index.array_file import ExtendedArray, FileArray
from retrieval.index.columns import NEVER, Columns, microseconds
from retrieval.index.slots import GrowableArray
from retrieval.index.strings import NONE, CategoryColumn, NameMatcher, StringColumn, StringTable, cut
from retrieval.text.speakers import named_speakers, plain_name
from retrieval.types.search import Exclude, Filters, SearchRequest

# --- strings

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
COLUMN = st.dictionaries(st.integers(0, 30), st.none() | TEXTS | st.sampled_from(["Größe", "北京", "🎉", ""]))


FILED = st.integers(0, 4)
"""Number of writes after which it is rebuilt from its arrays, as from a file."""


def copied(arrays: Mapping[str, FileArray]) -> dict[str, NDArray[Any]]:
    """As loaded from a file."""
    written = {name: ExtendedArray.from_array(array) for name, array in arrays.items()}
    return {
        name: np.frombuffer(bytearray().join(each.parts()), each.array.dtype).reshape(each.shape)
        for name, each in written.items()
    }


@pytest.mark.parametrize("hashed", ["all different", "all equal"])
@given(st.lists(COLUMN), FILED)
def test_a_column_of_equal_strings_says_what_was_put_last(
    hashed: str, writes: list[dict[int, str | None]], filed: int
) -> None:
    """None, the empty string, and whatever is not ASCII; equal strings have one code, whatever their hashes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hash_index, "MERGED_FROM", 5)
        if hashed == "all equal":
            patch.setattr(strings_module, "hashes_of", lambda strings: np.zeros(len(strings), np.uint64))
        column, expected = CategoryColumn(), dict[int, str | None]()
        for number, write in enumerate(writes):
            column.put(np.array(list(write), np.int64), [*write.values()])
            expected |= write
            if number == filed:
                column, former = CategoryColumn(), column
                column.restore(copied(former.arrays()))
        agree(column, expected)


def agree(column: CategoryColumn, expected: dict[int, str | None]) -> None:
    docs = list(expected)
    assert column.get(np.array(docs, np.int64)) == list(expected.values())
    codes = dict(zip(docs, column.codes[np.array(docs, np.int64)].tolist(), strict=True))
    for doc, string in expected.items():
        assert column.codes_of([] if string is None else [string]) == ([] if string is None else [codes[doc]])
    assert column.codes_of(["never put there"]) == []
    assert column.codes_of(["a lone surrogate \ud83d"]) == []
    assert len(set(column.values)) == len(column.values)


@given(st.lists(st.dictionaries(st.integers(0, 30), TEXTS)))
def test_a_column_of_different_strings_says_what_was_put_last(writes: list[dict[int, str]]) -> None:
    column, expected = StringColumn(), dict[int, str]()
    for write in writes:
        column.put(np.array(list(write), np.int64), write.values())
        expected |= write
    assert column.get(np.array(list(expected), np.int64)) == list(expected.values())


@given(st.lists(st.none() | TEXTS))
def test_strings_are_cut_by_their_bytes(strings: list[str | None]) -> None:
    sizes = [-1 if each is None else len(each.encode()) for each in strings]
    assert list(cut("".join(each or "" for each in strings).encode(), sizes)) == strings


@given(st.lists(st.lists(st.integers(0, 200), min_size=1)))
def test_what_was_not_set_has_its_value_however_far_an_array_grew(writes: list[list[int]]) -> None:
    array, expected = GrowableArray(np.int64, -5), dict[int, int]()
    for number, docs in enumerate(writes):
        array.put(np.array(docs), number)
        expected |= dict.fromkeys(docs, number)
        assert array.values.tolist() == [expected.get(doc, -5) for doc in range(len(array.values))]
        assert len(array.values) > max(expected)


# --- what is put

DAY = datetime(2024, 5, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Row:
    """The columns of a `memory` row that an index has."""

    id: str
    length: int = 3
    created_at: datetime = DAY
    expires_at: datetime | None = None
    superseded_at: datetime | None = None
    kind: str = "memory"
    speaker: str | None = None
    session_id: str | None = None
    document_id: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()


def numbers(code: str, values: Sequence[int]) -> bytes:
    return struct.pack(f">{len(values)}{code}", *values)


def moments(values: Sequence[datetime | None]) -> bytes:
    return numbers("q", [NEVER if each is None else microseconds(each) for each in values])


def strings(values: Sequence[str | None]) -> tuple[bytes, bytes]:
    parts = [None if each is None else each.encode() for each in values]
    return b"".join(each or b"" for each in parts), numbers("i", [-1 if each is None else len(each) for each in parts])


def sent(rows: dict[int, Row]) -> Sequence[Any]:
    """The columns of rows by ordinal, as PostgreSQL sends them."""
    each = list(rows.values())
    tags = [msgspec.json.encode(row.tags).decode() if row.tags else None for row in each]
    return [
        numbers("i", list(rows)),
        numbers("i", [row.length for row in each]),
        moments([row.created_at for row in each]),
        moments([row.expires_at for row in each]),
        moments([row.superseded_at for row in each]),
        numbers("i", [7] * len(each)),
        bytes(len(each)),
        *strings([row.id for row in each]),
        *strings([row.kind for row in each]),
        *strings([row.speaker for row in each]),
        *strings([row.session_id for row in each]),
        *strings([row.document_id for row in each]),
        *strings([row.title for row in each]),
        *strings(tags),
    ]


MOMENTS = st.integers(-3, 3).map(lambda step: DAY + timedelta(microseconds=step))
ROWS = st.builds(
    Row,
    id=st.just(""),
    length=st.integers(0, 50),
    created_at=MOMENTS,
    expires_at=st.none() | MOMENTS,
    superseded_at=st.none() | MOMENTS,
    kind=st.sampled_from(["memory", "Größe"]),
    speaker=st.sampled_from([None, "Bo", "Zoë", "Zoë Bo", "Zoë Lu"]),
    session_id=st.sampled_from([None, "s", ""]),
    document_id=st.sampled_from([None, "d"]),
    tags=st.lists(st.sampled_from(["a", "ü", '"']), unique=True).map(tuple),
)
SOME = st.dictionaries(st.integers(0, 25), ROWS, max_size=10).map(
    lambda rows: {doc: replace(row, id=f"é{doc}") for doc, row in rows.items()}
)
WANTED = st.builds(
    Filters,
    tags_all=st.lists(st.sampled_from(["a", "ü"])),
    tags_any=st.lists(st.sampled_from(["a", '"', "none"])),
    kind=st.lists(st.sampled_from(["memory", "Größe"])),
    session_id=st.lists(st.sampled_from(["s", "", "none"])),
    document_id=st.lists(st.sampled_from(["d", "none"])),
    speaker=st.lists(st.sampled_from(["Bo", "Zoë"])),
    created_after=st.none() | MOMENTS,
    created_before=st.none() | MOMENTS,
)


EXCLUDED = st.builds(
    Exclude, session_id=st.lists(st.sampled_from(["s", "", "none"])), created_after=st.none() | MOMENTS
)


def is_visible(row: Row, as_of: datetime | None, include_superseded: bool, now: datetime) -> bool:
    """Created, not expired and not superseded then."""
    moment = now if as_of is None else as_of
    superseded = row.superseded_at is not None and (as_of is None or row.superseded_at <= as_of)
    return (
        (as_of is None or row.created_at <= as_of)
        and (row.expires_at is None or row.expires_at > moment)
        and (include_superseded or not superseded)
    )


def matches(row: Row, wanted: Filters) -> bool:
    """Meets all conditions that there are."""
    return (
        set(wanted.tags_all or ()) <= set(row.tags)
        and (not wanted.tags_any or bool(set(wanted.tags_any) & set(row.tags)))
        and (not wanted.kind or row.kind in wanted.kind)
        and (not wanted.session_id or row.session_id in wanted.session_id)
        and (not wanted.document_id or row.document_id in wanted.document_id)
        and (not wanted.speaker or row.speaker in wanted.speaker)
        and (wanted.created_after is None or row.created_at > wanted.created_after)
        and (wanted.created_before is None or row.created_at < wanted.created_before)
    )


def is_excluded(row: Row, exclude: Exclude) -> bool:
    """Is of an excluded session, or was created too late."""
    return row.session_id in exclude.session_id or (
        exclude.created_after is not None and row.created_at > exclude.created_after
    )


def masks(columns: Columns, now: datetime, **request: Any) -> Any:
    """What a search may see, and its filters."""
    return columns.masks(SearchRequest(query="q", **request), now=microseconds(now))


@given(st.lists(SOME | st.lists(st.integers(0, 25), unique=True), max_size=6), st.data())
def test_masks_are_what_a_plain_predicate_says(history: list[Any], data: st.DataObject) -> None:
    """After any history, at any moment, asked for in any order while time goes on."""
    columns, expected, now = Columns(), dict[int, Row](), DAY - timedelta(microseconds=3)
    for step in history:
        if isinstance(step, dict):
            assert columns.put(sent(step)).tolist() == list(step)
            expected |= step
        else:
            columns.remove(step)
            expected = {doc: row for doc, row in expected.items() if doc not in step}
        assert columns.count == len(expected)
        assert columns.total_length == sum(row.length for row in expected.values())
        for text in ("Zoë Bo met.", "Bo and Zoë met."):
            named = {columns.speakers.values[code] for code in columns.speakers_named(text)}
            assert named == named_speakers(text, [row.speaker for row in expected.values()])
        for _ in range(3):
            now += timedelta(microseconds=data.draw(st.integers(0, 1)))
            wanted, exclude = data.draw(WANTED), data.draw(EXCLUDED)
            as_of, superseded = data.draw(st.none() | MOMENTS), data.draw(st.booleans())
            visible, eligible = masks(columns, now, filters=wanted, exclude=exclude, as_of=as_of,
                                      include_superseded=superseded)  # fmt: skip
            seen = {doc: row for doc, row in expected.items() if is_visible(row, as_of, superseded, now)}
            assert np.flatnonzero(visible).tolist() == sorted(seen)
            assert np.flatnonzero(eligible).tolist() == sorted(
                doc for doc, row in seen.items() if matches(row, wanted) and not is_excluded(row, exclude)
            )
            assert len(visible) == len(eligible) == len(columns.alive.values)
    docs = np.array(sorted(expected), np.int64)
    rows = [expected[doc] for doc in docs.tolist()]
    assert columns.ids.get(docs) == [row.id for row in rows]
    assert columns.speakers.get(docs) == [row.speaker for row in rows]
    assert columns.sessions.get(docs) == [row.session_id for row in rows]


def test_a_short_name_of_many_is_that_of_the_only_one_whose_memories_are_left() -> None:
    columns = Columns()
    columns.put(sent({doc: Row(id=str(doc), speaker=f"Zoë Lu {doc}" if doc else None) for doc in range(50)}))
    assert columns.speakers_named("Did Zoë go?") == []
    columns.remove({*range(50)} - {0, 41})
    assert columns.speakers.values[columns.speakers_named("Did Zoë go?")[0]] == "Zoë Lu 41"
    columns.remove([41])
    assert columns.speakers_named("Did Zoë go?") == []


def test_a_mask_is_computed_once_and_not_to_be_changed() -> None:
    """Until something changes or expires, or the clock is set back."""
    columns = Columns()
    columns.put(sent({0: Row(id="a"), 1: Row(id="b", expires_at=DAY)}))

    def visible(now: datetime) -> Any:
        return masks(columns, now)[0]

    before = visible(DAY - timedelta(seconds=2))
    assert visible(DAY - timedelta(seconds=1)) is before
    with pytest.raises(ValueError, match="read-only"):
        before[0] = False
    assert np.flatnonzero(before).tolist() == [0, 1]
    assert np.flatnonzero(visible(DAY)).tolist() == [0]
    assert np.flatnonzero(visible(DAY - timedelta(seconds=1))).tolist() == [0, 1]


# --- for the kernels


def test_what_the_kernels_are_told_is_where_the_arrays_are_now() -> None:
    """Also after any of them grew."""
    columns = Columns()
    before = columns.layout()
    columns.put(sent({0: Row(id="a"), 1: Row(id="b", speaker="Bo")}))
    columns.link(numbers("i", [1]), numbers("i", [0]), numbers("i", [NONE]))
    assert columns.layout() != before
    ordinals, *places = struct.unpack("7q", columns.layout())
    arrays = (columns.previous, columns.next, columns.length, columns.sessions.codes, columns.speakers.codes)
    assert ordinals == min(len(array.values) for array in (*arrays, columns.asks))
    assert places == [array.values.ctypes.data for array in (*arrays, columns.asks)]
    columns.speakers.codes.ensure(100_000)
    assert struct.unpack("7q", columns.layout())[5] == columns.speakers.codes.values.ctypes.data


NAMES = st.sampled_from(["Bo", "bo!", "Zoë", "zoe", "Ana Lu", "ana", "Lu", "The Bo", "🎉", "Ana-Lu Bo", "", "x" * 300])


@given(st.lists(st.lists(NAMES)), st.lists(NAMES | st.sampled_from(["and", ",", "Ana", "lu"]), max_size=8), FILED)
def test_names_are_found_by_the_words_of_a_text(batches: list[list[str]], words: list[str], filed: int) -> None:
    """As if testing each name against the text; names are added at any time, some from a file."""
    names = StringTable()
    spoken = NameMatcher(names)
    text = " ".join(words)
    for number, batch in enumerate(batches):
        names.put(batch)
        spoken.read()
        if number == filed:
            names, former = StringTable(), names
            names.restore(copied(former.arrays()))
            spoken, read = NameMatcher(names), spoken
            spoken.restore(copied(read.arrays()))
        said = f" {plain_name(text)} "
        expected = {name: code for code, name in enumerate(names) if name and f" {plain_name(name)} " in said}
        assert spoken.names_in(text) == expected


def test_a_name_is_found_within_a_word_of_a_script_without_spaces() -> None:
    names = StringTable()
    names.put(["王芳", "李明", "山田 健太"])
    spoken = NameMatcher(names)
    spoken.read()
    assert spoken.names_in("李明住在哪里？") == {"李明": 1}


def test_memories_that_are_put_again_take_no_more_room() -> None:
    columns = Columns()
    columns.put(sent({doc: Row(id=f"{doc}") for doc in range(100)}))
    room = columns.nbytes
    for doc in range(300):
        columns.put(sent({doc % 100: Row(id=f"{doc % 100}")}))
    assert len(columns.alive.values) < 200
    assert columns.nbytes == room
    columns.put(sent({doc: Row(id=f"{doc}") for doc in (99, 7, 100)}))
    assert columns.ids.get(np.array([7, 99, 100, 98])) == ["7", "99", "100", "98"]
