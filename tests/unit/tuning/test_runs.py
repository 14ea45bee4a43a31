"""The files of saved queries: they grow, survive interruptions, and are not used for other data."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from retrieval.errors import InvalidInput
from retrieval.profiles.profile import DEFAULT, Models
from retrieval.tuning.runs import DEPTHS, RunFile, checksum, depths_of, legs_key
from tests.tuned import ranking, saved


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = RunFile(tmp_path / "work" / "toy.jsonl", "key")
    assert file.read() == {}
    queries = [saved(number, vector=ranking(5, 2, "v"), graph=ranking(90, 1, "g")) for number in range(3)]
    for some in (queries[:2], queries[2:]):
        with file.appending() as add:
            for query in some:
                add(query)
    assert list(file.read().values()) == queries


def test_a_torn_last_line_is_dropped_and_written_again(tmp_path: Path) -> None:
    """Lines written before the interruption stay."""
    file = RunFile(tmp_path / "toy.jsonl", "key")
    with file.appending() as add:
        add(saved(1))
        add(saved(2))
    file.path.write_bytes(file.path.read_bytes()[:-20])
    assert list(file.read()) == ["q1"]
    with file.appending() as add:
        add(saved(2))
    assert list(file.read().values()) == [saved(1), saved(2)]


@pytest.mark.parametrize("content", [b"", b'{"format":1', b"nonsense\n", b'{"format":1,"key":"other"}\n{}\n'])
def test_a_file_of_something_else_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    file = RunFile(tmp_path / "toy.jsonl", "key")
    file.path.write_bytes(content)
    assert file.read() == {}
    with file.appending() as add:
        add(saved(1))
    assert list(file.read()) == ["q1"]


def test_a_broken_line_before_the_last_is_named(tmp_path: Path) -> None:
    file = RunFile(tmp_path / "toy.jsonl", "key")
    with file.appending() as add:
        add(saved(1))
    file.path.write_bytes(file.path.read_bytes().replace(b'"toy"', b"toy") + b"{}\n")
    with pytest.raises(InvalidInput, match=r"toy\.jsonl:2: .*delete the file"):
        file.read()


def test_runs_are_shared_by_profiles_that_differ_in_the_fusion_alone() -> None:
    """Weights, noise and caps are replayed; hops, shares and models are not."""
    fused = replace(DEFAULT, name="mine", version=9, learned_share=0.1, shrink=0.2, vector_noise=0.9, source_cap=3)
    assert legs_key(fused) == legs_key(DEFAULT)
    for other in (
        replace(DEFAULT, hops=1),
        replace(DEFAULT, neighbour_share=0.5),
        replace(DEFAULT, models=Models(weights="other.onnx")),
        replace(DEFAULT, fixed=replace(DEFAULT.fixed, fan_out=200)),
    ):
        assert legs_key(other) != legs_key(DEFAULT)


def test_a_profile_is_asked_at_its_own_fan_out_too() -> None:
    assert depths_of(DEFAULT) == list(DEPTHS)
    assert depths_of(replace(DEFAULT, fixed=replace(DEFAULT.fixed, fan_out=200))) == [*DEPTHS, 200]


def test_a_checksum_knows_where_parts_end() -> None:
    assert checksum(["ab", "c"]) != checksum(["a", "bc"])
    assert checksum(["ab"]) == checksum([b"ab"])
