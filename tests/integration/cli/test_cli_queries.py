"""`trivet queries` on a real database."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from classifier.intents import Intent
from retrieval.evaluation.folder import read_folder
from retrieval.ingest.service import Ingest
from retrieval.journal.query_log import AnsweredSearch
from retrieval.journal.service import JournalService
from retrieval.journal.writer import JournalWriter
from retrieval.store import namespaces
from retrieval.store.pool import open_pool
from retrieval.tuning.labels import labelled_queries
from retrieval.types.journal import FeedbackRequest
from retrieval.types.memory import MemoryInput
from retrieval.types.namespace import NamespaceSettings, QueryLogSettings
from retrieval.types.search import Filters, SearchRequest
from tests.command import Cli
from tests.turns import hashed

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
FILTERS = Filters(speaker=["Ana"], tags_any=["chat"])
ASKED = {"s1": ("Where was\n\x1b[31mCaroline?", "fact_lookup"), "s2": ("Who is Ana?", None)}


async def _load_vectors(database_url: str) -> None:
    """Two searches of `n`, one judged, and one of another namespace without its text."""
    async with open_pool(database_url, 2) as pool:
        await Ingest(pool, hashed()).add("n", [MemoryInput(id="m1", text="one"), MemoryInput(id="m2", text="2")])
        journal = JournalWriter(pool)
        records = JournalService(pool, journal)
        async with pool.connection() as conn:
            await namespaces.put(conn, "n", NamespaceSettings(query_log=QueryLogSettings()))
            await namespaces.put(conn, "o", NamespaceSettings(query_log=QueryLogSettings(redact=("all",))))
            here, there = await namespaces.find(conn, "n"), await namespaces.find(conn, "o")
        for search_id, (query, intent) in ASKED.items():
            journal.log_search(here, _searched(search_id, query, intent))
            await journal.aclose()
        journal.log_search(there, _searched("s3", "Secret?", None))
        await journal.aclose()
        await records.add_feedback("n", FeedbackRequest(search_id="s1", relevant=["m2"], clicked=["m1"]))


def _searched(search_id: str, query: str, intent: str | None) -> AnsweredSearch:
    at = NOON if search_id == "s1" else None
    request = SearchRequest(query=query, filters=FILTERS, query_timestamp=at, as_of=at)
    return AnsweredSearch(
        search_id=search_id, request=request, profile="default@3", intent=intent, ids=["m1"], scores=[0.5], total_ms=4.5
    )


@pytest.fixture
def queries(database_url: str, cli: Cli) -> Cli:
    """The command on the test's own database."""
    asyncio.run(_load_vectors(database_url))
    return partial(cli, "queries")


def test_it_lists_what_was_asked(queries: Cli) -> None:
    """For people, one a line and without terminal control characters, or as JSON."""
    shown = queries("-n", "n").output
    assert "Where was \ufffd[31mCaroline?" in shown
    assert shown.index("s1") < shown.index("s2")
    assert shown.count("  1 result  ") == 2
    found: list[dict[str, Any]] = json.loads(queries("-n", "n", "--json").output)["queries"]
    assert [(entry["id"], entry["query"], entry["intent"]) for entry in found] == [
        (search_id, *asked) for search_id, asked in ASKED.items()
    ]
    assert "(7 characters withheld)" in queries("-n", "o").output


def test_an_export_is_read_as_an_evaluation_folder(queries: Cli, tmp_path: Path) -> None:
    """With the memories that feedback calls relevant, and the search's own time and filters."""
    corpus = [{"id": memory_id, "namespace": "n", "text": "x"} for memory_id in ("m1", "m2")]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    assert queries("-n", "n", "--export", tmp_path / "queries.jsonl").output == "2 exported\n"
    assert queries("-n", "n", "--export", tmp_path / "new" / "queries.jsonl").output == "2 exported\n"
    (tmp_path / "new" / "queries.jsonl").rename(tmp_path / "queries.jsonl")
    (tmp_path / "new").rmdir()
    first, second = read_folder(tmp_path).queries
    assert (first.id, first.namespace, first.text) == ("s1", "n", ASKED["s1"][0])
    assert (first.type, first.relevant) == ("fact_lookup", ["m2"])
    assert (first.asked_at, first.search_as_of, first.search_filters) == (NOON, NOON, FILTERS)
    assert (second.type, second.relevant, second.search_as_of) == ("unknown", [], None)
    assert second.asked_at is not None
    assert second.asked_at > NOON, "when it was logged"
    (labelled,) = labelled_queries(read_folder(tmp_path), limit=None, seed=0)
    assert labelled.query == first
    assert sorted(file.name for file in tmp_path.iterdir()) == ["corpus.jsonl", "queries.jsonl"]


def test_a_stated_intent_is_a_label_and_the_classified_one_is_not(
    queries: Cli, database_url: str, tmp_path: Path
) -> None:
    """The classifier would agree with its own labels."""

    async def state_intent() -> None:
        async with open_pool(database_url, 1) as pool:
            request = FeedbackRequest(search_id="s2", relevant=["m1"], intent=Intent.PREFERENCE)
            await JournalService(pool, JournalWriter(pool)).add_feedback("n", request)

    asyncio.run(state_intent())
    corpus = [{"id": memory_id, "namespace": "n", "text": "x"} for memory_id in ("m1", "m2")]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    queries("-n", "n", "--export", tmp_path / "queries.jsonl")
    labelled = labelled_queries(read_folder(tmp_path), limit=None, seed=0)
    assert [(each.query.type, each.intent) for each in labelled] == [
        ("fact_lookup", None),
        ("preference", Intent.PREFERENCE),
    ]


def test_an_export_leaves_out_what_has_no_text(queries: Cli, tmp_path: Path) -> None:
    assert queries("-n", "o", "--export", tmp_path / "queries.jsonl").output == "0 exported\n"
    assert (tmp_path / "queries.jsonl").read_bytes() == b""


def test_standard_output_takes_the_rows_alone(queries: Cli) -> None:
    done = queries("-n", "n", "--export", "-", "--json")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["s1", "s2"]
    assert done.stderr == "2 exported\n"


def test_an_export_is_for_its_owner_alone_and_follows_no_link(queries: Cli, tmp_path: Path) -> None:
    """In a folder that others share."""
    other, file = tmp_path / "other", tmp_path / "queries.jsonl"
    (tmp_path / "queries.jsonl.part").symlink_to(other)
    queries("-n", "n", "--export", file)
    assert (file.stat().st_mode & 0o777, other.exists()) == (0o600, False)


def test_it_deletes_after_it_exported(queries: Cli, tmp_path: Path) -> None:
    done = queries("-n", "n", "--delete", "--export", tmp_path / "queries.jsonl", "--json").output
    assert json.loads(done) == {"exported": 2, "deleted": 2}
    assert queries("-n", "n").output == "nothing is logged\n"


def test_nothing_is_deleted_when_the_export_fails(queries: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    queries("-n", "n", "--delete", "--export", tmp_path / "file" / "queries.jsonl", status=1)
    assert len(json.loads(queries("-n", "n", "--json").output)["queries"]) == 2


def test_it_redacts_what_contains_a_text(queries: Cli, tmp_path: Path) -> None:
    assert queries("-n", "n", "--redact", "who IS").output == "1 redacted\n"
    found = json.loads(queries("-n", "n", "--json").output)["queries"]
    assert [entry["query"] for entry in found] == [ASKED["s1"][0], None]
    queries("-n", "n", "--redact", "x", "--delete", status=2)
