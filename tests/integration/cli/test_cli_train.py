"""`trivet train`, which needs no database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from classifier.inference import IntentClassifier
from classifier.intents import INTENTS, Intent
from tests.command import NOWHERE, trivet
from tests.processes import python

QUERIES = {
    "fact_lookup": [
        "Which shelf holds the spare fuses?",
        "serial number of the lathe",
        "When was the boiler last serviced?",
        "Who keeps the key of the paint store?",
        "How many drill bits are in the red case?",
        "What is the pitch of the M8 tap?",
    ],
    "relationship": [
        "Which supplier delivers to both workshops?",
        "Who trained the man that repaired the press?",
        "Is the old lathe heavier than the new mill?",
        "What do the two foremen have in common?",
        "Which machine came from the firm that built the crane?",
        "Who is the brother of the head of the foundry?",
    ],
    "preference": [
        "Which gloves would you get for me?",
        "any ideas for the apprentices' summer outing?",
        "Can you suggest a quieter compressor?",
        "What colour should I paint my bench?",
        "I need a good apron, what would suit me?",
        "recommend a podcast for the workshop",
    ],
    "open_ended": [
        "Why does the band saw drift to the left?",
        "Explain how to true a grinding wheel.",
        "Summarise what went wrong with the gearbox.",
        "How can we reduce the noise in the hall?",
        "What are the pros and cons of water cooling?",
        "how do i cut threads in stainless steel",
    ],
}


def lines(queries: dict[str, list[str]]) -> str:
    rows = [{"text": text, "intent": intent} for intent, texts in queries.items() for text in texts]
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def train(*arguments: object, status: int = 0) -> Result:
    return trivet(NOWHERE, "train", *map(str, arguments), status=status)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder that the command wrote from the given queries alone, and what it printed."""
    folder = tmp_path_factory.mktemp("train")
    (folder / "queries.jsonl").write_text(lines(QUERIES), encoding="utf-8")
    arguments = ["--out", folder / "one", "--no-base", "--seed", 5, "--html", folder / "one" / "report.html", "--json"]
    return folder, json.loads(train(folder / "queries.jsonl", *arguments).stdout)


def test_it_writes_a_model_that_serves(made: tuple[Path, dict[str, Any]]) -> None:
    classifier = IntentClassifier(made[0] / "one" / "intent.onnx")
    right = [classifier.predict(text).label is Intent(intent) for intent, texts in QUERIES.items() for text in texts]
    assert sum(right) >= 22


def test_it_writes_the_card_charts_and_checksum(made: tuple[Path, dict[str, Any]]) -> None:
    folder, printed = made
    out = folder / "one"
    assert (out / "SHA256SUMS").read_text() == f"{printed['sha256']}  intent.onnx\n"
    card = (out / "intent.md").read_text(encoding="utf-8")
    assert printed["sha256"] in card
    assert all(intent in card for intent in INTENTS)
    for name in ("calibration.svg", "confusion.svg"):
        chart = (out / name).read_text(encoding="utf-8")
        assert chart.startswith("<svg ")
        assert 'xmlns="http://www.w3.org/2000/svg"' in chart
        assert "--ink:" in chart
    assert (out / "report.html").read_text(encoding="utf-8").count("<svg ") == 2


def test_the_figures_are_of_the_given_queries(made: tuple[Path, dict[str, Any]]) -> None:
    _, printed = made
    confusion = printed["with_embedding"]["confusion"]
    assert [sum(row) for row in confusion] == [6, 6, 6, 6]
    assert sum(each["count"] for each in printed["reliability"]) == 24
    assert (printed["queries"], printed["base"], printed["weight"]) == (24, 0, 1.0)


def test_the_same_seed_gives_the_same_bytes(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    done = train(folder / "queries.jsonl", "--out", folder / "two", "--no-base", "--seed", 5)
    assert "macro-F1" in done.stdout
    for name in ("intent.onnx", "intent.md", "SHA256SUMS", "calibration.svg", "confusion.svg"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes(), name


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("nonsense", ":25: not JSON"),
        ('["text", "intent"]', ":25: needs"),
        ('{"text": "x"}', ":25: needs"),
        ('{"text": "  ", "intent": "preference"}', ":25: the text is blank"),
        ('{"text": "x \\ud83d", "intent": "preference"}', ":25: the text has half a surrogate pair"),
        ('{"text": "x", "intent": "small_talk"}', ":25: unknown intent 'small_talk'"),
        ('{"text": "Serial number  of the lathe", "intent": "fact_lookup"}', ":25: the same text as line 2"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(lines(QUERIES) + line + "\n", encoding="utf-8")
    done = train(path, "--out", tmp_path / "out", status=2)
    assert complaint in done.stderr.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_too_few_queries_of_an_intent_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(lines({**QUERIES, "preference": QUERIES["preference"][:4]}), encoding="utf-8")
    done = train(path, "--out", tmp_path / "out", status=2)
    assert "preference has 4" in done.stderr.replace("\n", " ")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_bytes(b"\xff\xfe\x00")
    done = train(path, "--out", tmp_path / "out", status=2)
    assert "not UTF-8" in done.stderr


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(lines(QUERIES), encoding="utf-8")
    hidden = "import sys; sys.modules['sklearn'] = None; sys.argv[0] = 'trivet'; from retrieval.cli import main; main()"
    done = python("-c", hidden, "train", path, "--out", tmp_path / "out", status=2)
    assert "trivet[train]" in done.stderr.replace("\n", " ")
