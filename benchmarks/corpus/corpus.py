"""Read, check and export the corpus of this folder: `python benchmarks/corpus/corpus.py --help`."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FOLDERS = ("conversations", "knowledge", "diaries", "languages")
INTENTS = ("fact_lookup", "relationship", "preference", "open_ended")
TYPES = (
    "single_fact",
    "multi_hop",
    "paraphrase",
    "when",
    "in_period",
    "relative_time",
    "order",
    "latest",
    "earlier",
    "preference",
    "open_ended",
    "who",
    "follow_up",
    "unanswerable",
)
CONVERSATION_KINDS = ("friends", "couple", "family", "workshop", "support", "assistant", "team", "care", "students")
_SIGN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_WORD = re.compile(rf"{_SIGN.pattern}|\w+")
_NAME = re.compile(r"\b[A-Z]\w+")
_FREQUENT = frozenset(
    (
        *("about", "after", "again", "been", "befor", "being", "could", "does", "doing", "from", "have", "into"),
        *("just", "like", "made", "make", "more", "much", "never", "only", "other", "over", "said", "same", "shoul"),
        *("some", "still", "such", "take", "tell", "that", "their", "them", "then", "there", "they", "thing", "think"),
        *("this", "time", "want", "wants", "what", "when", "where", "which", "while", "will", "with", "would", "your"),
    )
)
"""Beginnings of frequent English words that say nothing about a topic."""
LEAST_PARTS = {"conversations": 250, "knowledge": 30, "diaries": 30, "languages": 25}
LEAST_QUESTIONS = {"conversations": 42, "knowledge": 40, "diaries": 40, "languages": 32}


class CorpusError(ValueError):
    """A file of the corpus breaks the guideline; says which, where and how."""


@dataclass(slots=True)
class Part:
    """One turn or passage."""

    id: str
    text: str
    title: str | None = None
    speaker: str | None = None
    time: datetime | None = None
    session: str | None = None


@dataclass(slots=True)
class Namespace:
    """One text with its questions."""

    name: str
    folder: str
    header: dict[str, str]
    parts: list[Part]
    questions: list[dict[str, Any]] = field(default_factory=list)


def read_text(path: Path) -> Namespace:
    """A text file; a `CorpusError` names the line that cannot be read."""
    head, separator, body = path.read_text("utf-8").partition("\n\n")
    if not separator:
        raise CorpusError(f"{path.name}: no blank line after the header")
    header = {}
    for line in head.splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            raise CorpusError(f"{path.name}: header line without a colon: {line!r}")
        header[key.strip()] = value.strip()
    speakers = [name.strip() for name in header.get("speakers", "").split(",") if name.strip()]
    first_line = head.count("\n") + 3
    parts = list(_parts(path.name, body, speakers, first_line))
    return Namespace(path.stem, path.parent.name, header, parts)


def _parts(name: str, body: str, speakers: list[str], first_line: int) -> Iterator[Part]:
    heading = ""
    session = turn = 0
    part: Part | None = None
    time: datetime | None = None
    for number, line in enumerate(body.splitlines(), first_line):
        if line.startswith("==="):
            if part:
                yield part
            part, turn, session = None, 0, session + 1
            heading = line.removeprefix("===").strip()
            if speakers:
                try:
                    time = datetime.strptime(heading, "%Y-%m-%d %H:%M")
                except ValueError:
                    raise CorpusError(f"{name}:{number}: not a time: {heading!r}") from None
        elif not line.strip():
            continue
        elif not heading:
            raise CorpusError(f"{name}:{number}: text before the first '==='")
        elif not speakers:
            if part:
                part.text += "\n" + line.strip()
            else:
                part = Part(str(session), line.strip(), title=heading)
        elif line.startswith("  "):
            if not part:
                raise CorpusError(f"{name}:{number}: a second line without a first")
            part.text += "\n" + line.strip()
        else:
            if part:
                yield part
            speaker, colon, text = line.partition(":")
            if not colon or speaker not in speakers:
                raise CorpusError(f"{name}:{number}: does not begin with a speaker: {line[:60]!r}")
            if not text.strip():
                raise CorpusError(f"{name}:{number}: an empty turn")
            turn += 1
            assert time is not None
            part = Part(
                f"{session}.{turn}",
                text.strip(),
                speaker=speaker,
                time=time + timedelta(minutes=turn - 1),
                session=str(session),
            )
    if part:
        yield part


def read_questions(path: Path) -> list[dict[str, Any]]:
    """The questions beside a text; none if there is no file yet."""
    if not path.exists():
        return []
    questions = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip():
            try:
                questions.append(json.loads(line))
            except ValueError as error:
                raise CorpusError(f"{path.name}:{number}: {error}") from None
    return questions


def namespaces(folder: Path = HERE) -> Iterator[Namespace]:
    """Every text of the corpus with its questions, in the order of folders and names."""
    for kind in FOLDERS:
        for path in sorted((folder / kind).glob("*.txt")):
            namespace = read_text(path)
            namespace.questions = read_questions(path.with_suffix(".questions.jsonl"))
            yield namespace


def faults(namespace: Namespace) -> Iterator[str]:
    """Violations of the guideline, in words."""
    name, folder = namespace.name, namespace.folder
    for key in ("title", "kind", "language"):
        if not namespace.header.get(key):
            yield f"{name}: the header has no {key}"
    if folder == "conversations" and namespace.header.get("kind") not in CONVERSATION_KINDS:
        yield f"{name}: unknown kind {namespace.header.get('kind')!r}"
    if len(namespace.parts) < LEAST_PARTS[folder]:
        yield f"{name}: {len(namespace.parts)} turns or passages of {LEAST_PARTS[folder]}"
    if len(namespace.questions) < LEAST_QUESTIONS[folder]:
        yield f"{name}: {len(namespace.questions)} questions of {LEAST_QUESTIONS[folder]}"
    times = [part.time for part in namespace.parts if part.time]
    if times != sorted(times):
        yield f"{name}: sessions are not in the order of time"
    known = {part.id for part in namespace.parts}
    asked: set[str] = set()
    for number, question in enumerate(namespace.questions, 1):
        for fault in _question_faults(question, known):
            yield f"{name}: question {number}: {fault}"
        if question.get("q") in asked:
            yield f"{name}: question {number}: asked twice"
        asked.add(question.get("q", ""))


def _question_faults(question: dict[str, Any], known: set[str]) -> Iterator[str]:
    for key in ("q", "type", "intent", "gold", "answer"):
        if key not in question:
            yield f"no {key}"
            return
    unknown = question.keys() - {"q", "type", "intent", "gold", "answer", "asked", "messages", "outdated"}
    if unknown:
        yield f"unknown keys {sorted(unknown)}"
    if question["type"] not in TYPES:
        yield f"unknown type {question['type']!r}"
    if question["intent"] not in INTENTS:
        yield f"unknown intent {question['intent']!r}"
    for identifier in [*question["gold"], *question.get("outdated", [])]:
        if identifier not in known:
            yield f"no turn or passage {identifier!r}"
    if bool(question["gold"]) == (question["type"] == "unanswerable"):
        yield "gold is empty exactly where the type is unanswerable"
    if question["type"] == "relative_time" and "asked" not in question:
        yield "relative_time needs asked"
    if "asked" in question and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", question["asked"]):
        yield f"asked is not YYYY-MM-DDTHH:MM: {question['asked']!r}"
    if (question["type"] == "follow_up") != bool(question.get("messages")):
        yield "messages stand exactly where the type is follow_up"
    for message in question.get("messages", []):
        if message.get("role") not in ("user", "assistant") or not message.get("content"):
            yield "a message needs role and content"


def check(names: list[str]) -> int:
    """Print violations of the guideline; returns their number."""
    found = 0
    parts = questions = 0
    for namespace in namespaces():
        if names and namespace.name not in names:
            continue
        parts += len(namespace.parts)
        questions += len(namespace.questions)
        for fault in faults(namespace):
            found += 1
            print(fault)
    print(f"{parts} turns and passages, {questions} questions, {found} faults")
    return found


def number(path: Path) -> None:
    """Print a text with the ids that gold refers to."""
    for part in read_text(path).parts:
        head = part.title or f"{part.time:%Y-%m-%d} {part.speaker}"
        print(f"[{part.id}] {head}: {part.text}".replace("\n", " / "))


def statistics() -> str:
    """A table of each kind: sizes, lengths in words, and how far questions repeat the words of their gold."""
    lines = [
        "| | namespaces | turns or passages | words each (median, nine tenths) | questions | gold each "
        "| share no content word with their gold | nothing answers |",
        "|---|---|---|---|---|---|---|---|",
    ]
    everything = list(namespaces())
    for kind in FOLDERS:
        chosen = [namespace for namespace in everything if namespace.folder == kind]
        if not chosen:
            continue
        lengths = sorted(len(words(part.text)) for namespace in chosen for part in namespace.parts)
        asked = [(namespace, question) for namespace in chosen for question in namespace.questions]
        answered = [(namespace, question) for namespace, question in asked if question["gold"]]
        apart = sum(not shared_words(namespace, question) for namespace, question in answered)
        gold = sum(len(question["gold"]) for _, question in answered)
        lines.append(
            f"| {kind} | {len(chosen)} | {len(lengths):,} | {lengths[len(lengths) // 2]}, "
            f"{lengths[len(lengths) * 9 // 10]} | {len(asked):,} | {gold / max(1, len(answered)):.1f} "
            f"| {apart / max(1, len(answered)):.0%} | {len(asked) - len(answered)} |"
        )
    return "\n".join(lines)


def words(text: str) -> list[str]:
    """Words in lower case; a Chinese or Japanese character is one."""
    return _WORD.findall(text.casefold())


def shared_words(namespace: Namespace, question: dict[str, Any]) -> set[str]:
    """Words of four letters or more, or characters, that a question shares with its gold, except names."""
    texts = {part.id: part.text for part in namespace.parts}
    gold = {stem for identifier in question["gold"] for stem in _stems(texts[identifier])}
    names = {stem for name in _NAME.findall(question["q"][1:]) for stem in _stems(name)}
    return (_stems(question["q"]) & gold) - names


def _stems(text: str) -> set[str]:
    return {word[:5] for word in words(text) if len(word) > 3 or _SIGN.match(word)} - _FREQUENT


def export(folder: Path, kinds: Sequence[str] = FOLDERS) -> None:
    """Write a folder for each kind, with the files that `trivet eval` reads."""
    for kind in kinds:
        chosen = [namespace for namespace in namespaces() if namespace.folder == kind and namespace.questions]
        if chosen:
            _export(folder / kind, kind, chosen)


def _export(folder: Path, kind: str, chosen: Sequence[Namespace]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "corpus.jsonl": [_document(namespace, part) for namespace in chosen for part in namespace.parts],
        "queries.jsonl": [
            _query(namespace, place, question)
            for namespace in chosen
            for place, question in enumerate(namespace.questions, 1)
        ],
    }
    contents = {
        name: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        for name, rows in files.items()
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    description = {
        "name": f"trivet_{kind}",
        "title": f"Trivet's own corpus: {kind}",
        "license": "Apache-2.0",
        "granularity": "passage" if kind == "knowledge" else "turn",
        "counts": {name: len(rows) for name, rows in files.items()},
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    }
    (folder / "dataset.json").write_text(json.dumps(description, indent=1) + "\n")


def _document(namespace: Namespace, part: Part) -> dict[str, Any]:
    document = {"id": f"{namespace.name}:{part.id}", "namespace": namespace.name, "text": part.text}
    if part.title:
        document["title"] = part.title
    if part.speaker and part.time:
        about = {"speaker": part.speaker, "timestamp": part.time.isoformat(), "metadata": {"session": part.session}}
        return document | about
    return document


def _query(namespace: Namespace, place: int, question: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        "intent": question["intent"],
        "language": namespace.header["language"],
        "kind": namespace.header["kind"],
        "outdated": [f"{namespace.name}:{one}" for one in question.get("outdated", [])],
    }
    query = {
        "id": f"{namespace.name}:q{place}",
        "namespace": namespace.name,
        "text": question["q"],
        "type": question["type"],
        "relevant": [f"{namespace.name}:{one}" for one in question["gold"]],
        "answer": question["answer"],
        "metadata": {name: value for name, value in metadata.items() if value},
    }
    if "asked" in question:
        query["timestamp"] = question["asked"] + ":00"
    if "messages" in question:
        query["messages"] = question["messages"]
    return query


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="refuse what breaks the guideline")
    checking.add_argument("names", nargs="*", help="only these namespaces")
    numbering = commands.add_parser("number", help="print a text with its ids")
    numbering.add_argument("file", type=Path)
    commands.add_parser("statistics", help="print sizes, lengths and shared words")
    exporting = commands.add_parser("export", help="write the folders that `trivet eval` reads")
    exporting.add_argument("folder", type=Path)
    exporting.add_argument("--only", nargs="+", choices=FOLDERS, default=list(FOLDERS))
    arguments = parser.parse_args()
    try:
        if arguments.command == "check":
            return 1 if check(arguments.names) else 0
        if arguments.command == "number":
            number(arguments.file)
        elif arguments.command == "statistics":
            print(statistics())
        else:
            export(arguments.folder, arguments.only)
    except CorpusError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
