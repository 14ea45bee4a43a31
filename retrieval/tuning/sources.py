"""Labelled queries of evaluation folders."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from classifier.intents import Intent
from retrieval.errors import InvalidInput
from retrieval.evaluation.folder import EvaluationFolder, Query, read_folder
from retrieval.tuning.collect import Labelled
from retrieval.tuning.runs import checksum


class _Metadata(Struct, frozen=True):
    intent: Intent | None = None


class _Intents(Struct, frozen=True):
    """What is needed of a row of `queries.jsonl` beside the query itself."""

    id: str
    metadata: _Metadata = _Metadata()


def read_folders(paths: Sequence[Path]) -> list[EvaluationFolder]:
    """The folders, all of them before anything is stored.

    Raises:
        InvalidInput: one cannot be read, has no query with gold, or has the name of another.
    """
    found = [read_folder(path) for path in paths]
    for folder in found:
        if not folder.judged:
            raise InvalidInput(f"{folder.path}: no query has anything relevant")
    if len({folder.name for folder in found}) < len(found):
        raise InvalidInput("two of the folders have the same name")
    return found


def searched_namespace(folder: EvaluationFolder, namespace: str) -> str:
    """Where `trivet eval` stores a namespace of the folder."""
    return f"eval:{folder.name}:{namespace}"


def labelled_queries(folder: EvaluationFolder, *, limit: int | None, seed: int) -> list[Labelled]:
    """The folder's queries with gold, or so many drawn by `seed`, in the folder's order.

    Raises:
        InvalidInput: `metadata.intent` is no intent.
    """
    queries: Sequence[Query] = folder.judged
    if limit is not None and limit < len(queries):
        queries = [queries[at] for at in sorted(random.Random(seed).sample(range(len(queries)), limit))]
    intents = _labelled_intents(folder.path / "queries.jsonl")
    return [
        Labelled(
            query=query,
            set=folder.name,
            searched=searched_namespace(folder, query.namespace),
            intent=intents.get(query.id) or _as_intent(query.type),
            gains=dict.fromkeys(query.relevant, 1.0),
        )
        for query in queries
    ]


def content_of(folder: EvaluationFolder) -> str:
    """A checksum of the folder's rows."""
    return checksum((folder.path / name).read_bytes() for name in ("corpus.jsonl", "queries.jsonl"))


def _labelled_intents(file: Path) -> dict[str, Intent]:
    """`metadata.intent` by query, where it is given."""
    decoder = msgspec.json.Decoder(_Intents)
    found = {}
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = decoder.decode(line)
            except msgspec.DecodeError as exc:
                raise InvalidInput(f"{file}:{number}: {exc}") from exc
            if row.metadata.intent is not None:
                found[row.id] = row.metadata.intent
    return found


def _as_intent(type_: str) -> Intent | None:
    return Intent(type_) if type_ in list(Intent) else None
