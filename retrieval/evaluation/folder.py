"""Evaluation folders: `corpus.jsonl`, `queries.jsonl` and, for the name, `dataset.json`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import msgspec

from retrieval.errors import InvalidInput
from retrieval.evaluation.corpus import CorpusReader, CorpusRow
from retrieval.evaluation.metrics import Grades


class Query(msgspec.Struct, frozen=True):
    """A row of `queries.jsonl`. Other fields, such as the answer, play no part here."""

    id: str
    namespace: str
    text: str
    type: str
    relevant: list[str]

    @property
    def grades(self) -> Grades:
        """What is relevant, with grade 1."""
        return dict.fromkeys(self.relevant, 1)


class _Dataset(msgspec.Struct, frozen=True):
    """What is needed of `dataset.json`."""

    name: str


@dataclass(frozen=True)
class EvaluationFolder:
    """A folder that has been read and checked.

    Attributes:
        name: the data set's.
        path: the folder.
        corpus: its rows in file order.
        queries: its queries in file order.
    """

    name: str
    path: Path
    corpus: tuple[CorpusRow, ...]
    queries: tuple[Query, ...]

    @cached_property
    def judged(self) -> tuple[Query, ...]:
        """The queries that have something relevant; the others cannot be scored."""
        return tuple(query for query in self.queries if query.relevant)

    @cached_property
    def namespaces(self) -> tuple[str, ...]:
        """The corpus's namespaces in order of appearance."""
        return tuple(dict.fromkeys(row.namespace for row in self.corpus))

    @cached_property
    def sessionless(self) -> EvaluationFolder:
        """The same without sessions and positions; itself where it has none."""
        corpus = tuple(row.sessionless() for row in self.corpus)
        return self if corpus == self.corpus else replace(self, corpus=corpus)


def read_folder(path: Path) -> EvaluationFolder:
    """Read an evaluation folder.

    Raises:
        InvalidInput: a file is missing, a row cannot be read, an id is used twice, or a relevant
            id is not in the corpus; the message starts with the file and the line.
    """
    corpus = tuple(_read_corpus(path / "corpus.jsonl"))
    ids = {(row.namespace, row.id) for row in corpus}
    queries = tuple(_read_queries(path / "queries.jsonl", ids))
    return EvaluationFolder(_name(path), path, corpus, queries)


def _read_corpus(file: Path) -> Iterator[CorpusRow]:
    reader = CorpusReader()
    seen: set[tuple[str, str]] = set()
    for number, raw in _lines(file):
        try:
            row = reader.read(raw, number)
        except InvalidInput as exc:
            raise InvalidInput(f"{file}:{number}: {exc}") from exc
        if (row.namespace, row.id) in seen:
            raise InvalidInput(f"{file}:{number}: the id {row.id!r} is used twice in namespace {row.namespace!r}")
        seen.add((row.namespace, row.id))
        yield row


def _read_queries(file: Path, ids: set[tuple[str, str]]) -> Iterator[Query]:
    decoder = msgspec.json.Decoder(Query)
    seen: set[str] = set()
    for number, raw in _lines(file):
        try:
            query = decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise InvalidInput(f"{file}:{number}: {exc}") from exc
        if query.id in seen:
            raise InvalidInput(f"{file}:{number}: the id {query.id!r} is used twice")
        seen.add(query.id)
        for relevant in query.relevant:
            if (query.namespace, relevant) not in ids:
                raise InvalidInput(
                    f"{file}:{number}: relevant id {relevant!r} is not in the corpus of namespace {query.namespace!r}"
                )
        yield query


def _name(path: Path) -> str:
    """The data set's name: of `dataset.json`, or the folder's own."""
    file = path / "dataset.json"
    if not file.exists():
        return path.resolve().name
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Dataset).name
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"{file}: {exc}") from exc


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Line numbers from 1 with the lines; blank ones are left out."""
    try:
        handle = file.open("rb")
    except OSError as exc:
        raise InvalidInput(f"{file}: {exc.strerror}") from exc
    with handle:
        for number, line in enumerate(handle, start=1):
            if line.strip():
                yield number, line
