"""What each leg stores of a memory: terms, entities and relations, and a vector."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from classifier.traits import pack_traits
from graph.graph_rows import DocGraph
from retrieval.embedding.embedders import Embedders
from retrieval.ingest.checks import Draft
from retrieval.ingest.graphs import graph_of
from retrieval.store.memories import NewMemory
from retrieval.text.analysis import TermBag, bag
from retrieval.text.normalized_text import without_speaker
from retrieval.types.memory import MemoryInput
from retrieval.types.namespace import NamespaceSettings

TITLE_WEIGHT = 3
"""Weight of a title's terms in BM25, relative to 1 for the text's."""

_ANALYSED_AT_ONCE = 32


class Analyser:
    """Analyses memories in threads, while the embedder computes."""

    def __init__(self, embedders: Embedders) -> None:
        """Embed with the namespaces' `embedders`."""
        self._embedders = embedders
        # Concurrent analyses would only compete with each other and the event loop for the GIL.
        self._one_at_a_time = asyncio.Lock()

    async def analyse(
        self,
        drafts: Sequence[Draft],
        settings: NamespaceSettings,
        embeddings: Mapping[str, NDArray[np.float32]],
    ) -> list[NewMemory]:
        """What is stored of each draft; `embeddings` has those that need not be computed, by id."""
        now = datetime.now(UTC)
        missing = [draft for draft in drafts if draft.id not in embeddings]
        # The embedder releases the GIL while it computes.
        made, analyses = await asyncio.gather(
            self._embedders.get(settings.embedder).embed_documents([embedded_text(draft.input) for draft in missing]),
            self._analyses(drafts, settings.language),
        )
        embeddings = {**embeddings, **{draft.id: row for draft, row in zip(missing, made, strict=True)}}
        return [
            NewMemory(
                id=draft.id,
                input=draft.input,
                fingerprint=draft.fingerprint,
                # What expired before it was sent did not begin now: so its export can be taken back.
                created_at=draft.input.created_at or min(now, draft.input.expires_at or now),
                bag=terms,
                graph=graph,
                traits=traits,
                embedding=embeddings[draft.id],
            )
            for draft, (terms, graph, traits) in zip(drafts, analyses, strict=True)
        ]

    async def _analyses(self, drafts: Sequence[Draft], language: str) -> list[tuple[TermBag, DocGraph, int]]:
        """Analyse each draft, in chunks under a lock, so that a small batch does not wait for a large one."""

        def analyse(some: Sequence[Draft]) -> list[tuple[TermBag, DocGraph, int]]:
            return [_analysed(draft.input, language) for draft in some]

        analyses: list[tuple[TermBag, DocGraph, int]] = []
        for start in range(0, len(drafts), _ANALYSED_AT_ONCE):
            async with self._one_at_a_time:
                analyses += await asyncio.to_thread(analyse, drafts[start : start + _ANALYSED_AT_ONCE])
        return analyses


def _attributed_text(memory: MemoryInput) -> str:
    """The text prefixed with its speaker, so that all legs find it, unless the text already names the speaker."""
    if not memory.speaker or without_speaker(memory.text, memory.speaker) != memory.text:
        return memory.text
    return f"{memory.speaker}: {memory.text}"


def embedded_text(memory: MemoryInput) -> str:
    """The text to embed for a memory: its title, speaker and text."""
    return f"{memory.title}\n{_attributed_text(memory)}" if memory.title else _attributed_text(memory)


def _analysed(memory: MemoryInput, language: str) -> tuple[TermBag, DocGraph, int]:
    """The terms, graph and traits of a memory."""
    return (
        bag(_attributed_text(memory), memory.title, language, title_weight=TITLE_WEIGHT),
        graph_of(memory),
        pack_traits(without_speaker(memory.text, memory.speaker)),
    )
