"""Shadow mode: a candidate profile ranks beside the live one, for a share of the searches and after they answered."""

from __future__ import annotations

import asyncio
import logging
import random

from msgspec import structs

from retrieval.journal import Journal
from retrieval.pipeline import Answer, Pipeline
from retrieval.profile_book import ProfileBook
from retrieval.profiles import Profile
from retrieval.stopwatch import Stopwatch
from retrieval.store.shadow import Ranked
from retrieval.types import Mode, SearchRequest

log = logging.getLogger(__name__)

MOST_RUNNING = 2
"""Shadow searches at a time; what would come beyond them is left out, so that they never crowd out the live ones."""


class Shadow:
    """Runs the candidate's searches in the background and has the journal record them."""

    def __init__(self, pipeline: Pipeline, book: ProfileBook, journal: Journal) -> None:
        self._pipeline = pipeline
        self._book = book
        self._journal = journal
        self._running: set[asyncio.Task[None]] = set()

    def follow(self, request: SearchRequest, answer: Answer) -> None:
        """Ask the candidate the same, if the live profile has one and this search is of its share."""
        if request.mode not in (Mode.ADAPTIVE, Mode.HYBRID) or request.weights is not None:
            return
        beside = self._book.shadow_of(answer.profile)
        if beside is None or len(self._running) >= MOST_RUNNING:
            return
        candidate, share = beside
        if random.random() < share:
            task = asyncio.create_task(self._run(request, answer, candidate))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def aclose(self) -> None:
        """Wait for what is under way."""
        while self._running:
            await asyncio.wait(self._running)

    async def _run(self, request: SearchRequest, answer: Answer, candidate: Profile) -> None:
        try:
            shadow = await self._pipeline.search(
                answer.namespace.name, structs.replace(request, profile=candidate.label), Stopwatch()
            )
        except Exception as exc:
            # its message may quote the query
            log.warning("a shadow search of %s failed: %s", candidate.label, type(exc).__name__)
            return
        self._journal.compared(answer.namespace, answer.search_id, live=_ranked(answer), candidate=_ranked(shadow))


def _ranked(answer: Answer) -> Ranked:
    return Ranked(
        profile=answer.profile.label,
        ids=[found.memory.id for found in answer.found],
        total_ms=answer.stopwatch.timings_ms()["total"],
    )
