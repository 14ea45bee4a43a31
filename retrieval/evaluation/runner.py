"""Puts an evaluation folder into a database and runs its queries."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from retrieval.errors import Conflict, NotFound
from retrieval.evaluation.folder import EvaluationFolder, Query
from retrieval.evaluation.systems import System
from retrieval.evaluation.trec import Scored
from retrieval.plurals import counted
from retrieval.tasks import share_out
from retrieval.types.namespace import NamespaceSettings
from retrieval.types.search import SearchResult

if TYPE_CHECKING:
    from retrieval.engine import Trivet

T = TypeVar("T")

BATCH = 256
"""Memories per call of `add`."""

Progress = Callable[[int], None]
"""Called with the number of items done since the last call."""

Names = Callable[[str], str]
"""The database's namespace for one of the folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RejectedRow:
    """A row of the corpus that could not be stored."""

    line: int
    id: str
    error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Ingestion:
    """The result of storing the corpus: numbers of rows by status, as in `AddResult`, and the rejected rows."""

    counts: Mapping[str, int]
    rejected: Sequence[RejectedRow]
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedAnswer:
    """The ranking of one query by one system: best-first ids with scores as they are judged, see `credited`."""

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
    settings: NamespaceSettings | None = None,
    fresh: bool = False,
    progress: Progress = lambda _: None,
) -> Ingestion:
    """Store the folder's corpus; rows already stored with the same content are left alone.

    With `settings` None, namespaces keep theirs or get the default ones; `fresh` deletes the namespaces first.

    Raises:
        Conflict: a namespace has another language or embedder.
        InvalidInput: the embedder is not installed.
    """
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    rejected: list[RejectedRow] = []
    for namespace in folder.namespaces:
        name = names(namespace)
        if fresh:
            with suppress(NotFound):
                await engine.delete_namespace(name)
        if settings is not None:
            await _prepare(engine, name, settings)
        rows = [row for row in folder.corpus if row.namespace == namespace]
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            results = await engine.add(name, [row.memory for row in batch])
            counts.update(result.status for result in results)
            rejected += [
                RejectedRow(line=row.line, id=row.id, error=result.error or "")
                for row, result in zip(batch, results, strict=True)
                if result.status == "rejected"
            ]
            progress(len(batch))
    return Ingestion(counts=counts, rejected=rejected, seconds=time.perf_counter() - started)


async def check_complete(engine: Trivet, folder: EvaluationFolder, ingestion: Ingestion) -> None:
    """Check that the namespaces contain the folder's memories and no others.

    Raises:
        Conflict: one contains other memories, so its rankings are not the folder's.
    """
    rejected = {row.line for row in ingestion.rejected}
    stored = Counter(row.namespace for row in folder.corpus if row.line not in rejected)
    for namespace, expected in stored.items():
        name = folder.stored_name(namespace)
        held = (await engine.get_namespace(name)).memories
        if held != expected:
            raise Conflict(
                f"namespace {name!r} holds {counted(held, 'memory', 'memories')}, the folder {expected}: "
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
) -> list[JudgedAnswer]:
    """The system's answers to the queries, in their order.

    Raises:
        TrivetError: a search failed; the others are not waited for.
    """

    async def ask(query: Query) -> JudgedAnswer:
        namespace = names(query.namespace)
        await engine.load(namespace)  # so that results do not depend on when it is loaded
        response = await engine.search(namespace, system.request(query, top_k))
        return JudgedAnswer(
            query=query,
            ranking=credited(response.results, query, top_k=top_k),
            intent=response.intent.label,
            degraded=tuple(degradation.leg for degradation in response.degraded),
            total_ms=response.timings_ms["total"],
        )

    return await for_each(queries, ask, concurrency=concurrency, progress=progress)


async def for_each(
    queries: Sequence[Query],
    ask: Callable[[Query], Awaitable[T]],
    *,
    concurrency: int,
    progress: Progress = lambda _: None,
) -> list[T]:
    """The results of `ask` for all queries, in their order, at most `concurrency` at a time.

    Raises:
        TrivetError: one failed; the others are not waited for.
    """

    async def asked(query: Query) -> T:
        found = await ask(query)
        progress(1)
        return found

    return await share_out(asked, queries, at_once=concurrency)


async def _prepare(engine: Trivet, name: str, settings: NamespaceSettings) -> None:
    """Create the namespace, or check that it has this language and embedder."""
    try:
        found = (await engine.get_namespace(name)).settings
    except NotFound:
        await engine.put_namespace(name, settings)
        return
    for what, has, wanted in (
        ("analysed as", found.language, settings.language),
        ("embedded by", found.embedder, settings.embedder),
    ):
        if has != wanted:
            raise Conflict(f"namespace {name!r} is {what} {has}, not {wanted}; delete it first (trivet eval --fresh)")


def credited(results: Iterable[SearchResult], query: Query, *, top_k: int) -> tuple[Scored, ...]:
    """The ids of a ranking as they are judged; the search must have `explain`.

    Deduplication may merge a relevant memory into another with the same words, so that the reader
    of the answer still gets its words. So a result counts as the relevant ids among itself and
    its `duplicates`, one after the other, or as its own id if there are none. The list is then
    cut to `top_k`: merging gains no extra places.
    """
    relevant = set(query.relevant)
    scored: dict[str, float] = {}
    for result in results:
        duplicates = result.duplicates if isinstance(result.duplicates, list) else []
        found = [id_ for id_ in (result.id, *duplicates) if id_ in relevant]
        for id_ in found or [result.id]:
            scored.setdefault(id_, result.score)
    return tuple(scored.items())[:top_k]
