"""Puts an evaluation folder into a database and runs its queries."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retrieval.errors import Conflict, NotFound
from retrieval.evaluation.folder import EvaluationFolder, Query
from retrieval.evaluation.systems import System
from retrieval.evaluation.trec import Scored
from retrieval.types import NamespaceSettings, SearchResult

if TYPE_CHECKING:
    from retrieval.engine import Trivet

BATCH = 256
"""Memories per call of `add`."""

Progress = Callable[[int], None]
"""Called with how many more are done."""

Names = Callable[[str], str]
"""The database's namespace for one of the folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """A row of the corpus that could not be stored."""

    line: int
    id: str
    error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Ingestion:
    """What became of the corpus.

    Attributes:
        counts: rows by status, as in `AddResult`.
        rejected: the rows that are not in the database.
        seconds: how long it took.
    """

    counts: Mapping[str, int]
    rejected: Sequence[Rejected]
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The ranking of one query by one system.

    Attributes:
        ranking: best-first ids with scores, after `credited`.
        intent: the most probable intent, if the mode asks for it.
        degraded: legs that did not answer.
        total_ms: time of the search as the engine reports it.
    """

    query: Query
    ranking: tuple[Scored, ...]
    intent: str | None
    degraded: tuple[str, ...]
    total_ms: float


async def ingest(
    engine: Trivet,
    folder: EvaluationFolder,
    names: Names,
    *,
    language: str | None = None,
    fresh: bool = False,
    progress: Progress = lambda _: None,
) -> Ingestion:
    """Store the folder's corpus; rows already there with the same content are left as they are.

    Args:
        engine: where to.
        folder: what.
        names: the namespaces' names in the database.
        language: of the analysis, a key of `retrieval.text.languages.LANGUAGES`; None for what
            the namespaces have, or else the default.
        fresh: delete these namespaces first.
        progress: told of each batch.

    Raises:
        Conflict: a namespace is there with another language.
    """
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    rejected: list[Rejected] = []
    for namespace in folder.namespaces:
        name = names(namespace)
        if fresh:
            await _drop(engine, name)
        if language is not None:
            await _prepare(engine, name, language)
        rows = [row for row in folder.corpus if row.namespace == namespace]
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            results = await engine.add(name, [row.memory for row in batch])
            counts.update(result.status for result in results)
            rejected += [
                Rejected(line=row.line, id=row.id, error=result.error or "")
                for row, result in zip(batch, results, strict=True)
                if result.status == "rejected"
            ]
            progress(len(batch))
    return Ingestion(counts=counts, rejected=rejected, seconds=time.perf_counter() - started)


async def check_complete(engine: Trivet, folder: EvaluationFolder, names: Names, ingestion: Ingestion) -> None:
    """See that the namespaces hold what the folder holds and nothing else.

    Raises:
        Conflict: one holds other memories, so that rankings over it are not the folder's.
    """
    rejected = {row.line for row in ingestion.rejected}
    stored = Counter(row.namespace for row in folder.corpus if row.line not in rejected)
    for namespace, expected in stored.items():
        held = (await engine.get_namespace(names(namespace))).memories
        if held != expected:
            raise Conflict(
                f"namespace {names(namespace)!r} holds {held} memories, the folder {expected}: "
                "it was filled from other rows; delete it first (trivet eval --fresh)"
            )


async def run_system(
    engine: Trivet,
    queries: Sequence[Query],
    system: System,
    names: Names,
    *,
    top_k: int,
    concurrency: int = 2,
    progress: Progress = lambda _: None,
) -> list[Answer]:
    """The system's answers to the queries, in their order.

    Raises:
        TrivetError: a search failed; the others are not waited for.
    """
    answers: dict[str, Answer] = {}
    waiting = iter(queries)

    async def work() -> None:
        for query in waiting:
            answers[query.id] = await _answer(engine, query, system, names(query.namespace), top_k)
            progress(1)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    return [answers[query.id] for query in queries]


def credited(results: Iterable[SearchResult], query: Query, *, top_k: int) -> tuple[Scored, ...]:
    """Ids of a ranking as they are judged.

    Deduplication may merge a relevant memory into another of the same words, and the reader of
    the answer has its words all the same. So a result stands for the relevant ids among itself
    and its `duplicates`, one after the other, and for its own id where there are none. The list
    is cut to `top_k` after that: what merging saves brings no extra places.

    Args:
        results: best first, searched with `explain`.
        query: whose relevant ids count.
        top_k: length of the list.
    """
    relevant = set(query.relevant)
    scored: dict[str, float] = {}
    for result in results:
        duplicates = result.duplicates if isinstance(result.duplicates, list) else []
        found = [id_ for id_ in (result.id, *duplicates) if id_ in relevant]
        for id_ in found or [result.id]:
            scored.setdefault(id_, result.score)
    return tuple(scored.items())[:top_k]


async def _answer(engine: Trivet, query: Query, system: System, namespace: str, top_k: int) -> Answer:
    response = await engine.search(namespace, system.request(query.text, top_k))
    return Answer(
        query=query,
        ranking=credited(response.results, query, top_k=top_k),
        intent=response.intent.label if response.intent else None,
        degraded=tuple(degradation.leg for degradation in response.degraded),
        total_ms=response.timings_ms["total"],
    )


async def _drop(engine: Trivet, name: str) -> None:
    """Delete a namespace if it is there."""
    try:
        await engine.delete_namespace(name)
    except NotFound:
        return


async def _prepare(engine: Trivet, name: str, language: str) -> None:
    """Have a namespace of this language."""
    try:
        found = (await engine.get_namespace(name)).settings.language
    except NotFound:
        await engine.put_namespace(name, NamespaceSettings(language=language))
        return
    if found != language:
        raise Conflict(
            f"namespace {name!r} is analysed as {found}, not {language}; delete it first (trivet eval --fresh)"
        )
