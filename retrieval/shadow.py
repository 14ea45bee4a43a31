"""Shadow mode: a candidate profile repeats a share of the live profile's searches in the background."""

from __future__ import annotations

import asyncio
import logging
import random

from msgspec import structs

from retrieval.answer.answer import Answer
from retrieval.journal.writer import JournalWriter
from retrieval.pipeline import Pipeline
from retrieval.profiles.profile import Profile
from retrieval.profiles.registry import ProfileRegistry
from retrieval.store.shadow import ShadowRanking
from retrieval.timings import Stopwatch
from retrieval.types.search import Mode

log = logging.getLogger(__name__)

MOST_RUNNING = 2
"""Shadow searches running at a time; others are skipped, so that they never slow down live ones."""


class Shadow:
    """Runs the candidate's searches in the background and records them in the journal."""

    def __init__(self, pipeline: Pipeline, profile_registry: ProfileRegistry, journal_writer: JournalWriter) -> None:
        self._pipeline = pipeline
        self._profile_registry = profile_registry
        self._journal_writer = journal_writer
        self._running: set[asyncio.Task[None]] = set()

    def follow(self, answer: Answer) -> None:
        """Repeat a search with the live profile's candidate, if it has one and the search falls into its share."""
        request = answer.query.request
        if request.mode not in (Mode.ADAPTIVE, Mode.HYBRID) or request.weights is not None:
            return
        shadow = self._profile_registry.shadow_of(answer.query.profile)
        if shadow is None or len(self._running) >= MOST_RUNNING:
            return
        candidate, share = shadow
        if random.random() < share:
            task = asyncio.create_task(self._run(answer, _ranked(answer), candidate))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def aclose(self) -> None:
        """Wait for the running searches."""
        while self._running:
            await asyncio.wait(self._running)

    async def _run(self, answer: Answer, live: ShadowRanking, candidate: Profile) -> None:
        try:
            shadow = await self._pipeline.search(
                answer.namespace.name,
                structs.replace(answer.query.original_request, profile=candidate.label),
                Stopwatch(),
                answer.query.conversation,
                answer.query.pack_size,
            )
        except Exception as exc:
            # its message may quote the query
            log.warning("a shadow search of %s failed: %s", candidate.label, type(exc).__name__)
            return
        self._journal_writer.log_shadow_run(answer.namespace, answer.search_id, live=live, candidate=_ranked(shadow))


def _ranked(answer: Answer) -> ShadowRanking:
    """What a search found and how long it has taken until now, without packing."""
    timings_ms = answer.query.stopwatch.timings_ms()
    return ShadowRanking(
        profile=answer.query.profile.label,
        ids=[found.memory.id for found in answer.memories],
        total_ms=timings_ms["total"] - timings_ms.get("pack", 0.0),
    )
