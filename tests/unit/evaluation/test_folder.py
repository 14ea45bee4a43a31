"""Evaluation folders, the credit for merged duplicates, systems by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from retrieval.errors import InvalidInput
from retrieval.evaluation.folder import CorpusReader, Query, read_folder, read_folders
from retrieval.evaluation.runner import credited
from retrieval.evaluation.systems import parse_modes, weighted
from retrieval.ranking.weighting import parse_weights
from retrieval.tuning.labels import labelled_queries
from retrieval.types.memory import MAX_TEXT_CHARS, MemoryInput
from retrieval.types.search import FusedEvidence, Mode, SearchResult


def row(**fields: Any) -> bytes:
    """A line of a corpus."""
    return json.dumps({"id": "a", "namespace": "n", "text": "hello", **fields}).encode()


def write(folder: Path, corpus: Sequence[bytes], queries: Sequence[dict[str, Any]]) -> Path:
    """An evaluation folder."""
    (folder / "corpus.jsonl").write_bytes(b"\n".join(corpus) + b"\n")
    (folder / "queries.jsonl").write_text("\n".join(json.dumps(query) for query in queries) + "\n")
    return folder


QUERY = {"id": "q1", "namespace": "n", "text": "who?", "type": "fact", "answer": "a", "relevant": ["a"]}


def memory(raw: bytes) -> MemoryInput:
    """The memory of one line."""
    found = CorpusReader().read(raw, 1).memory
    assert isinstance(found, MemoryInput)
    return found


def test_a_byte_order_mark_is_no_part_of_a_row(tmp_path: Path) -> None:
    folder = write(tmp_path, [b"\xef\xbb\xbf" + row()], [QUERY])
    (folder / "qrels.trec").write_bytes(b"\xef\xbb\xbfq1 0 a 2\n")
    (folder / "dataset.json").write_bytes(b'\xef\xbb\xbf{"name": "toy"}')
    read = read_folder(folder)
    assert (read.name, read.corpus[0].id, dict(read.queries[0].grades)) == ("toy", "a", {"a": 2})


def test_a_chat_turn_becomes_a_message_with_session_and_time() -> None:
    """Sessions are text, a time without a zone is UTC, metadata stays."""
    found = memory(row(speaker="Caroline", timestamp="2023-05-08T13:56:00", metadata={"session": 1, "turn": 4}))
    assert (found.kind, found.speaker, found.session_id, found.position) == ("message", "Caroline", "1", 0)
    assert found.created_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert found.metadata == {"session": 1, "turn": 4}


def test_a_passage_becomes_a_chunk() -> None:
    """Neither speaker nor session: a piece of a document, with its title and without a position."""
    found = memory(row(title="Trivets"))
    assert (found.kind, found.title, found.session_id, found.position) == ("chunk", "Trivets", None, None)


def test_what_filters_ask_for_is_kept() -> None:
    found = memory(row(kind="memory", tags=["chat"], speaker="Ana"))
    assert (found.kind, found.tags, found.speaker) == ("memory", ["chat"], "Ana")


def test_positions_count_within_a_session_of_a_namespace() -> None:
    """Turns of several sessions may be mixed in the file."""
    reader = CorpusReader()
    sessions = [("n", 1), ("n", 2), ("n", 1), ("m", 1), ("n", 1)]
    found = [reader.read(row(namespace=ns, metadata={"session": s}), i).memory for i, (ns, s) in enumerate(sessions)]
    assert [m.position for m in found if isinstance(m, MemoryInput)] == [0, 0, 1, 0, 2]


def test_a_time_with_a_zone_keeps_it() -> None:
    """It is the same instant."""
    created_at = memory(row(timestamp="2024-01-01T00:30:00+02:00")).created_at
    assert created_at is not None
    assert created_at.utcoffset() == timedelta(hours=2)


def test_what_trivet_cannot_hold_is_kept_as_the_reason() -> None:
    """A text that is too long does not make the folder unreadable."""
    found = CorpusReader().read(row(text="x" * (MAX_TEXT_CHARS + 1)), 7)
    assert found.id == "a"
    assert isinstance(found.memory, InvalidInput)
    assert found.memory.loc == ("text",)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([row(), b"{"], r"corpus\.jsonl:2: "),
        ([b'{"id": "a", "namespace": "n"}'], r"corpus\.jsonl:1: .*text"),
        ([row(), b"", row()], r"corpus\.jsonl:3: the id 'a' is used twice"),
        ([row(timestamp="yesterday")], r"corpus\.jsonl:1: timestamp: .*2023-05-08T13:56:00Z"),
        ([row(metadata={"session": [1]})], r"corpus\.jsonl:1: metadata\.session"),
        ([b'{"id": "a", "namespace": "n", "text": "\xff"}'], r"corpus\.jsonl:1: "),
    ],
)
def test_a_bad_corpus_row_is_named(tmp_path: Path, lines: list[bytes], message: str) -> None:
    """With file and line."""
    with pytest.raises(InvalidInput, match=message):
        read_folder(write(tmp_path, lines, [QUERY]))


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([QUERY, QUERY], r"queries\.jsonl:2: the id 'q1' is used twice"),
        ([{**QUERY, "relevant": ["b"]}], r"queries\.jsonl:1: relevant id 'b' is not in the corpus of namespace 'n'"),
        ([{**QUERY, "namespace": "other"}], r"queries\.jsonl:1: relevant id 'a' .* 'other'"),
        ([{**QUERY, "text": 5}], r"queries\.jsonl:1: text: "),
        ([{**QUERY, "text": " "}], r"queries\.jsonl:1: text: must not be blank"),
        ([{**QUERY, "text": "\ud83d"}], r"queries\.jsonl:1: text: .*surrogate"),
        ([{**QUERY, "timestamp": "0001-01-01T00:00:00+14:00"}], r"queries\.jsonl:1: timestamp: .*years 2 to"),
        ([{**QUERY, "created_before": "yesterday"}], r"queries\.jsonl:1: created_before: .*2023-05-08T13:56:00Z"),
        ([{**QUERY, "created_before_session": "9999-12-31"}], r"queries\.jsonl:1: created_before_session: .*9998"),
        ([{**QUERY, "as_of": "now"}], r"queries\.jsonl:1: as_of: .*2023-05-08T13:56:00Z"),
        ([{**QUERY, "filters": {"speakers": ["Ana"]}}], r"queries\.jsonl:1: filters.*speaker"),
    ],
)
def test_a_bad_query_is_named(tmp_path: Path, queries: list[dict[str, Any]], message: str) -> None:
    """With file and line."""
    with pytest.raises(InvalidInput, match=message):
        read_folder(write(tmp_path, [row()], queries))


def test_qrels_beside_the_queries_say_what_is_relevant(tmp_path: Path) -> None:
    """With their grades, instead of `relevant`; a grade of 0 or less does not count."""
    folder = write(
        tmp_path, [row(), row(id="b"), row(id="c")], [{**QUERY, "qrels": ["of others"]}, {**QUERY, "id": "q2"}]
    )
    (folder / "qrels.trec").write_text("q1 0 b 3\nq1 0 a 0\nq1 0 c 1\nq1 0 z -1\nq9 0 z 1\n")
    first, second = read_folder(folder).queries
    assert (first.relevant, first.grades) == (["b", "c"], {"b": 3, "c": 1})
    assert (second.relevant, second.grades) == ([], {})
    (labelled,) = labelled_queries(read_folder(folder), limit=None, seed=0)
    assert labelled.gains == {"b": 3.0, "c": 1.0}
    (folder / "qrels.trec").write_text("q1 0 z 1\n")
    with pytest.raises(InvalidInput, match=r"qrels\.trec: query 'q1': relevant id 'z' is not in the corpus"):
        read_folder(folder)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """Which of them."""
    with pytest.raises(InvalidInput, match=r"corpus\.jsonl: No such file"):
        read_folder(tmp_path)


def test_the_name_is_the_data_sets_or_the_folders(tmp_path: Path) -> None:
    """`dataset.json` is optional."""
    folder = write(tmp_path, [row()], [QUERY, {**QUERY, "id": "q2", "relevant": []}])
    assert read_folder(folder).name == tmp_path.name
    (folder / "dataset.json").write_text('{"name": "toy", "license": "CC0"}')
    read = read_folder(folder)
    assert read.name == "toy"
    assert [query.id for query in read.judged] == ["q1"]


@pytest.mark.parametrize(("name", "namespace"), [("a b", "n"), ("toy", "a b"), ("x" * 130, "n")])
def test_a_name_that_no_namespace_can_have_is_told_at_once(tmp_path: Path, name: str, namespace: str) -> None:
    """With the folder and the namespace that would have it."""
    write(tmp_path, [row(namespace=namespace)], [{**QUERY, "namespace": namespace}])
    (tmp_path / "dataset.json").write_text(json.dumps({"name": name}))
    with pytest.raises(InvalidInput, match=f"{tmp_path.name}: the namespace 'eval:{name}:{namespace}' .* must be 1 to"):
        read_folders([tmp_path])


def result(id_: str, score: float, duplicates: list[str] | msgspec.UnsetType = msgspec.UNSET) -> SearchResult:
    """A ranked memory."""
    return SearchResult(
        id=id_,
        text="",
        snippet="",
        title=None,
        kind="chunk",
        speaker=None,
        session_id=None,
        document_id=None,
        created_at=datetime(2024, 1, 1, tzinfo=UTC),
        tags=[],
        metadata={},
        score=score,
        fused=FusedEvidence(rank=1, score=score),
        legs={},
        duplicates=duplicates,
    )


def query(*relevant: str) -> Query:
    """A query with this evidence."""
    return Query("q", "n", "?", "fact", list(relevant))


def test_a_merged_relevant_memory_counts_at_its_survivors_rank() -> None:
    """The survivor, which is not relevant itself, gives up its place."""
    results = [result("x", 0.9), result("kept", 0.8, ["gold", "other"]), result("y", 0.7)]
    assert [id_ for id_, _ in credited(results, query("gold"), top_k=10)] == ["x", "gold", "y"]


def test_merging_wins_no_extra_places() -> None:
    """Two relevant memories in one result take two of the places."""
    results = [result("a", 0.9, ["b"]), result("x", 0.8), result("c", 0.7)]
    assert credited(results, query("a", "b", "c"), top_k=3) == (("a", 0.9), ("b", 0.9), ("x", 0.8))


def test_without_duplicates_the_ranking_is_judged_as_it_is() -> None:
    """Neither an empty nor an absent list changes anything."""
    results = [result("x", 0.9, []), result("gold", 0.8)]
    assert credited(results, query("gold"), top_k=10) == (("x", 0.9), ("gold", 0.8))


def test_a_folder_without_its_sessions(tmp_path: Path) -> None:
    """Sessions and positions go, all else stays; a folder that has none is itself."""
    chat = read_folder(
        write(tmp_path, [row(metadata={"session": 1}), row(id="b", text="x" * (MAX_TEXT_CHARS + 1))], [QUERY])
    )
    kept, rejected = (found.memory for found in chat.sessionless.corpus)
    assert isinstance(kept, MemoryInput)
    assert (kept.session_id, kept.position, kept.kind, kept.metadata) == (None, None, "message", {"session": 1})
    assert isinstance(rejected, InvalidInput)
    assert chat.sessionless.sessionless is chat.sessionless


def test_modes_and_weights_are_parsed() -> None:
    """Names are those of the API."""
    assert parse_modes("bm25,adaptive,bm25") == [Mode.BM25, Mode.ADAPTIVE]
    (fixed,) = weighted(["1,0,0.5"], "default@3")
    assert (fixed.name, fixed.weights) == ("weights=1,0,0.5", parse_weights("1,0,0.5"))
    with pytest.raises(InvalidInput, match="'keyword' is no mode"):
        parse_modes("keyword")
    with pytest.raises(InvalidInput, match="three numbers"):
        parse_weights("1,2")
