"""What holds of a pack whatever the memories say."""

import json
from datetime import UTC, datetime
from typing import cast, get_args
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from retrieval.answer.pack import PackCandidate, pack
from retrieval.answer.token_counter import TokenCounter
from retrieval.types.search import PackFormat, PackOrder

COUNTER = TokenCounter()

ANY_TEXT = st.text(st.characters(), max_size=200)
TEXTS = st.one_of(
    ANY_TEXT,
    st.text("a[1]0\\ \n\r\u2028#<>&\"'{},:-", max_size=80),
    st.sampled_from(["😀" * 40, "x" * 300, "word " * 60, "東京都" * 30, "\u200b" * 50]),
)
CANDIDATES = st.lists(
    st.builds(
        PackCandidate,
        id=st.text('abc<"[1]', min_size=1, max_size=6),
        text=TEXTS,
        created_at=st.datetimes(timezones=st.just(UTC)),
        title=st.none() | ANY_TEXT,
        speaker=st.none() | ANY_TEXT,
        session_id=st.none() | st.sampled_from("st"),
    ),
    max_size=8,
    unique_by=lambda candidate: candidate.id,
)
FORMATS = st.sampled_from(cast("tuple[PackFormat, ...]", get_args(PackFormat)))
ORDERS = st.sampled_from(cast("tuple[PackOrder, ...]", get_args(PackOrder)))


@given(CANDIDATES, st.integers(0, 400), FORMATS, ORDERS, st.none() | st.integers(1, 3))
def test_a_pack_never_passes_its_budget_and_loses_no_memory(
    candidates: list[PackCandidate], max_tokens: int, format: PackFormat, order: PackOrder, source_cap: int | None
) -> None:
    packed = pack(
        candidates, max_tokens=max_tokens, format=format, order=order, count=COUNTER.count, source_cap=source_cap
    )
    assert packed.tokens_used == COUNTER.count(packed.context) <= max_tokens
    assert bool(packed.context) == bool(packed.items)
    ids = [item.id for item in packed.items] + [drop.id for drop in packed.dropped]
    assert sorted(ids) == sorted(candidate.id for candidate in candidates)
    assert [item.citation for item in packed.items] == [f"[{n}]" for n in range(1, len(packed.items) + 1)]


@given(CANDIDATES, ORDERS)
def test_entries_can_be_told_apart_in_every_format(candidates: list[PackCandidate], order: PackOrder) -> None:
    def context(format: PackFormat) -> str:
        return pack(candidates, max_tokens=10_000, format=format, order=order, count=COUNTER.count).context

    markdown, xml, array = context("markdown"), context("xml"), context("json")
    numbers = [str(number) for number in range(1, len(candidates) + 1)]
    if not candidates:
        assert markdown == xml == array == ""
        return
    truncate = [line.split("]")[0][1:] for line in markdown.split("\n") if line.startswith("[")]
    assert truncate == numbers
    assert len(markdown.splitlines()) == len(markdown.split("\n"))
    root = ElementTree.fromstring(xml)  # noqa: S314 - our own text
    assert [child.attrib["citation"] for child in root] == numbers
    assert [entry["citation"] for entry in json.loads(array)] == [f"[{number}]" for number in numbers]


def test_created_at_without_a_zone_is_shown_as_it_is() -> None:
    candidate = PackCandidate(id="a", text="x", created_at=datetime(2023, 5, 8, 23))
    assert "2023-05-08" in pack([candidate], max_tokens=99, format="xml", order="time", count=COUNTER.count).context
