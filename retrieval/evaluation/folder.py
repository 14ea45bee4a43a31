"""Evaluation folders: `corpus.jsonl`, `queries.jsonl`, and optionally `qrels.trec` and `dataset.json`."""

from __future__ import annotations

import codecs
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from retrieval.answer.conversation import query_of
from retrieval.errors import InvalidInput
from retrieval.evaluation.metrics import Grades
from retrieval.evaluation.trec import read_qrels
from retrieval.store.namespaces import check_new_name
from retrieval.types.journal import Feedback, asked_at
from retrieval.types.memory import MemoryInput
from retrieval.types.search import ChatMessage, Filters
from retrieval.validation import check_query, check_storable, converted, decode

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusRow:
    """One row of `corpus.jsonl` with its 1-based line: the memory, or why it cannot be stored."""

    line: int
    id: str
    namespace: str
    memory: MemoryInput | InvalidInput

    def sessionless(self) -> CorpusRow:
        """The row without its session and its position there."""
        if isinstance(self.memory, InvalidInput):
            return self
        return replace(self, memory=msgspec.structs.replace(self.memory, session_id=None, position=None))


class _Row(msgspec.Struct, frozen=True):
    """A line of the file. Other fields are ignored, as the format may gain some."""

    id: str
    text: str
    namespace: str
    title: str | None = None
    speaker: str | None = None
    kind: str | None = None
    tags: list[str] = []
    timestamp: str | None = None
    metadata: dict[str, Any] = {}


FEEDBACK = "feedback"
"""The type of a query that callers judged."""

CORPUS_FIELDS = frozenset(_Row.__struct_fields__)
"""Fields of a row of `corpus.jsonl`."""


class Query(msgspec.Struct, frozen=True):
    """A row of `queries.jsonl`. Other fields, such as the answer, are ignored.

    Attributes:
        timestamp: when it was asked, the reference for "last week".
        created_before: only memories from before this time are searched.
        created_before_session: the same, from before the session in which it was asked; overrides `created_before`.
        messages: the conversation before it, needed to understand it.
        filters: those of the search; the row's `created_before` and `created_before_session` override theirs.
        as_of: the search sees the namespace as of then.
    """

    id: str
    namespace: str
    text: str
    type: str
    relevant: list[str]
    timestamp: str | None = None
    created_before: str | None = None
    created_before_session: str | None = None
    messages: list[ChatMessage] = []
    filters: Filters | None = None
    as_of: str | None = None

    @classmethod
    def from_feedback(cls, judged: Feedback, namespace: str, relevant: Sequence[str]) -> Query:
        """The search that callers judged, with the memories they judged relevant."""
        asked, of = asked_at(judged).isoformat(), judged.as_of.isoformat() if judged.as_of else None
        wanted = judged.filters
        return cls(judged.id, namespace, judged.query, FEEDBACK, list(relevant), asked, filters=wanted, as_of=of)

    @property
    def search_text(self) -> str:
        """The text to search for: with what it refers to in the conversation, as for a context pack."""
        return query_of([*self.messages, ChatMessage(role="user", content=self.text)]) if self.messages else self.text

    @property
    def asked_at(self) -> datetime | None:
        """The time of asking, in UTC if it has no zone."""
        return self._time("timestamp")

    @property
    def search_as_of(self) -> datetime | None:
        """The time as of which it is answered, in UTC if it has no zone."""
        return self._time("as_of")

    @property
    def search_filters(self) -> Filters:
        """Its filters, limited to memories from before it was asked if the row says so."""
        filters = self.filters or Filters()
        before = self._time("created_before_session" if self.created_before_session else "created_before")
        return filters if before is None else msgspec.structs.replace(filters, created_before=before)

    @property
    def search_fields(self) -> dict[str, Any]:
        """The fields that it gives every request."""
        return {
            "query": self.search_text,
            "filters": self.search_filters,
            "as_of": self.search_as_of,
            "query_timestamp": self.asked_at,
        }

    @property
    def grades(self) -> Grades:
        """The relevant ids, with grade 1."""
        return dict.fromkeys(self.relevant, 1)

    def _time(self, field: str) -> datetime | None:
        time = _utc(getattr(self, field), field)
        check_storable(time, (field,))
        return time


class _GradedQuery(Query, frozen=True):
    """A query of a folder with a `qrels.trec`, with its grades above 0 there."""

    qrels: dict[str, int] = {}

    @property
    def grades(self) -> Grades:
        return self.qrels


class _Dataset(msgspec.Struct, frozen=True):
    """The fields of `dataset.json` that are used."""

    name: str


@dataclass(frozen=True)
class EvaluationFolder:
    """A folder that has been read and checked; its rows and queries are in file order."""

    name: str
    path: Path
    corpus: tuple[CorpusRow, ...]
    queries: tuple[Query, ...]

    @cached_property
    def judged(self) -> tuple[Query, ...]:
        """The queries with relevant memories; the others cannot be scored."""
        return tuple(query for query in self.queries if query.relevant)

    @property
    def skipped(self) -> int:
        """How many queries have no relevant memories."""
        return len(self.queries) - len(self.judged)

    @cached_property
    def namespaces(self) -> tuple[str, ...]:
        """The corpus's namespaces in order of appearance."""
        return tuple(dict.fromkeys(row.namespace for row in self.corpus))

    def stored_name(self, namespace: str) -> str:
        """Where `trivet eval` stores a namespace of the folder."""
        return f"eval:{self.name}:{namespace}"

    def sample(self, limit: int | None, seed: int) -> Sequence[Query]:
        """The queries with gold, or `limit` of them drawn by `seed`, in the folder's order."""
        if limit is None or limit >= len(self.judged):
            return self.judged
        chosen = sorted(random.Random(seed).sample(range(len(self.judged)), limit))
        return [self.judged[index] for index in chosen]

    @cached_property
    def sessionless(self) -> EvaluationFolder:
        """The folder without sessions and positions, under another name; itself if it has none."""
        corpus = tuple(row.sessionless() for row in self.corpus)
        return self if corpus == self.corpus else replace(self, name=f"{self.name}+without-sessions", corpus=corpus)


def read_folder(path: Path) -> EvaluationFolder:
    """Read an evaluation folder.

    Raises:
        InvalidInput: a file is missing, a row cannot be read, an id is used twice, or a relevant
            id is not in the corpus; the message starts with the file and the line.
    """
    corpus = tuple(_read_corpus(path / "corpus.jsonl"))
    ids = {(row.namespace, row.id) for row in corpus}
    queries = tuple(_read_queries(path, ids))
    return EvaluationFolder(_name(path), path, corpus, queries)


def read_folders(paths: Sequence[Path]) -> list[EvaluationFolder]:
    """Read all folders, before anything is stored.

    Raises:
        InvalidInput: one cannot be read, has no query with gold, has the name of another, or a name that no namespace
            can have.
    """
    found = [read_folder(path) for path in paths]
    for folder in found:
        if not folder.judged:
            raise InvalidInput(f"{folder.path}: no query has anything relevant")
        for namespace in folder.namespaces:
            stored = folder.stored_name(namespace)
            try:
                check_new_name(stored)
            except InvalidInput as exc:
                raise InvalidInput(f"{folder.path}: the namespace {stored!r} of its memories {exc}") from exc
    if len({folder.name for folder in found}) < len(found):
        raise InvalidInput("two of the folders have the same name")
    return found


def _read_corpus(file: Path) -> Iterator[CorpusRow]:
    seen: set[tuple[str, str]] = set()
    for where, row in read_lines(file, CorpusReader().read):
        if (row.namespace, row.id) in seen:
            raise InvalidInput(f"{where}: the id {row.id!r} is used twice in namespace {row.namespace!r}")
        seen.add((row.namespace, row.id))
        yield row


def _read_queries(path: Path, ids: set[tuple[str, str]]) -> Iterator[Query]:
    file, judgements = path / "queries.jsonl", path / "qrels.trec"
    qrels = read_qrels(judgements) if judgements.exists() else None
    seen: set[str] = set()
    for where, query in read_lines(file, _read_query):
        if query.id in seen:
            raise InvalidInput(f"{where}: the id {query.id!r} is used twice")
        seen.add(query.id)
        if qrels is not None:
            own = {id_: grade for id_, grade in qrels.get(query.id, {}).items() if grade > 0}
            query = _GradedQuery(**msgspec.structs.asdict(query) | {"relevant": list(own), "qrels": own})
            where = f"{judgements}: query {query.id!r}"
        for relevant in query.relevant:
            if (query.namespace, relevant) not in ids:
                raise InvalidInput(
                    f"{where}: relevant id {relevant!r} is not in the corpus of namespace {query.namespace!r}"
                )
        yield query


def _read_query(raw: bytes, _line: int) -> Query:
    query = decode(raw, msgspec.json.Decoder(Query))
    check_query(query.text, "text")
    check_storable(query)
    query.search_fields  # noqa: B018 -- raises for a bad time
    return query


def _name(path: Path) -> str:
    """The data set's name, from `dataset.json` or the folder's own."""
    file = path / "dataset.json"
    if not file.exists():
        return path.resolve().name
    try:
        return decode(file.read_bytes().removeprefix(codecs.BOM_UTF8), msgspec.json.Decoder(_Dataset)).name
    except InvalidInput as exc:
        raise InvalidInput(f"{file}: {exc.located}") from exc


def read_lines(file: Path, read: Callable[[bytes, int], T]) -> Iterator[tuple[str, T]]:
    """Yield where each line is, and the result of `read`, called with the line and its number.

    Blank lines and a byte-order mark are skipped.

    Raises:
        InvalidInput: the file cannot be opened, or a line cannot be read; the message names it.
    """
    try:
        handle = file.open("rb")
    except OSError as exc:
        raise InvalidInput(f"{file}: {exc.strerror}") from exc
    with handle:
        for number, line in enumerate(handle, start=1):
            if line.strip():
                try:
                    found = read(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line, number)
                except InvalidInput as exc:
                    raise InvalidInput(f"{file}:{number}: {exc.located}") from exc
                yield f"{file}:{number}", found


class CorpusReader:
    """Reads rows in file order, which gives the turns of a session their positions."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(_Row)
        self._positions: defaultdict[tuple[str, str], Iterator[int]] = defaultdict(count)

    def read(self, raw: bytes, line: int) -> CorpusRow:
        """The row on line `line`.

        `metadata.session` (or `metadata.session_id`) becomes the session; a row without `kind` but with
        a speaker or a session is a `message`, any other a `chunk`; a time without a zone is UTC.

        Raises:
            InvalidInput: not a JSON object with the fields of a row.
        """
        row = decode(raw, self._decoder)
        session = _session(row.metadata)
        position = None if session is None else next(self._positions[row.namespace, session])
        fields = {
            "id": row.id,
            "text": row.text,
            "title": row.title,
            "speaker": row.speaker,
            "kind": row.kind or ("message" if row.speaker is not None or session is not None else "chunk"),
            "session_id": session,
            "position": position,
            "created_at": _utc(row.timestamp, "timestamp"),
            "tags": row.tags,
            "metadata": row.metadata,
        }
        memory: MemoryInput | InvalidInput
        try:
            memory = converted(fields, MemoryInput)
        except InvalidInput as exc:
            memory = exc
        return CorpusRow(line=line, id=row.id, namespace=row.namespace, memory=memory)


def _session(metadata: dict[str, Any]) -> str | None:
    """The session of a chat turn as text."""
    value = metadata.get("session", metadata.get("session_id"))
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InvalidInput("must be text or a whole number", loc=("metadata", "session"))
    return str(value)


def _utc(timestamp: str | None, field: str) -> datetime | None:
    """The time with its zone, UTC if it has none."""
    if timestamp is None:
        return None
    try:
        parsed = datetime.fromisoformat(timestamp)
    except ValueError as exc:
        raise InvalidInput("must be an ISO 8601 time such as 2023-05-08T13:56:00Z", loc=(field,)) from exc
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
