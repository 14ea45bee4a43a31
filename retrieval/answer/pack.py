"""The context pack: the best memories that fit a token budget, cited, in one text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from retrieval.answer.pack_formats import LAYOUTS, Layout, PackCandidate, citation
from retrieval.ranking.diversity import source_of
from retrieval.types.search import DroppedItem, PackFormat, PackItem, PackOrder

__all__ = ["PackCandidate", "Packed", "pack"]

OVER_BUDGET = "over_budget"
SOURCE_CAP = "source_cap"
DUPLICATE_OF = "duplicate_of:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """A rendered pack, never above the budget; its text is empty if nothing fits.

    The items are in the order shown, and their `tokens` count the entry alone.
    """

    context: str
    tokens_used: int
    items: list[PackItem]
    dropped: list[DroppedItem]


def pack(
    candidates: Sequence[PackCandidate],
    *,
    max_tokens: int,
    format: PackFormat,
    order: PackOrder,
    count: Callable[[str], int],
    source_cap: int | None = None,
) -> Packed:
    """Fill the budget greedily by relevance and render the chosen memories.

    A memory that does not fit is skipped; smaller ones after it may still fit. The budget covers the whole
    text with headers and citations. The text is counted again when complete: if the joined parts cost more
    than their sum, the least relevant are removed. `order` arranges the chosen memories and numbers their
    citations; it does not affect the choice.

    Args:
        candidates: best first, ids unique.
        max_tokens: budget of the rendered text.
        format: markdown, xml or json.
        order: relevance, or time (oldest first).
        count: counts the tokens of a text; at least 1 per whitespace-separated word.
        source_cap: most memories of one document or session; None for no cap.
    """
    layout = LAYOUTS[format]
    dropped = [
        DroppedItem(id=duplicate, reason=f"{DUPLICATE_OF}{candidate.id}")
        for candidate in candidates
        for duplicate in candidate.duplicates
    ]
    chosen: list[PackCandidate] = []
    left = max_tokens - count(layout.render([]))
    per_source: Counter[tuple[str, str]] = Counter()
    for candidate in candidates:
        source = source_of(candidate.document_id, candidate.session_id)
        if source_cap is not None and source and per_source[source] >= source_cap:
            dropped.append(DroppedItem(id=candidate.id, reason=SOURCE_CAP))
            continue
        cost = _cost(candidate, len(chosen) + 1, left, layout, count)
        if cost is None:
            dropped.append(DroppedItem(id=candidate.id, reason=OVER_BUDGET))
            continue
        left -= cost
        chosen.append(candidate)
        if source:
            per_source[source] += 1
    for shown in _shrinking(chosen, dropped):
        arranged = sorted(shown, key=lambda one: one.created_at) if order == "time" else shown
        entries = [layout.entry(candidate, number) for number, candidate in enumerate(arranged, 1)]
        context = layout.render(entries)
        tokens_used = count(context)
        if tokens_used <= max_tokens:
            items = [
                PackItem(id=candidate.id, tokens=count(entry), citation=citation(number))
                for number, (candidate, entry) in enumerate(zip(arranged, entries, strict=True), 1)
            ]
            return Packed(context=context, tokens_used=tokens_used, items=items, dropped=dropped)
    return Packed(context="", tokens_used=0, items=[], dropped=dropped)


def _cost(candidate: PackCandidate, number: int, left: int, layout: Layout, count: Callable[[str], int]) -> int | None:
    """Tokens an entry adds to the pack; None if more than are left. A text with more words than that is not counted."""
    if left <= 0 or (len(candidate.text) > left and len(candidate.text.split(maxsplit=left)) > left):
        return None
    cost = count(layout.separator + layout.entry(candidate, number))
    return cost if cost <= left else None


def _shrinking(chosen: list[PackCandidate], dropped: list[DroppedItem]) -> Iterator[list[PackCandidate]]:
    """The chosen memories, then the same without the least relevant, and so on until none is left."""
    while chosen:
        yield chosen
        dropped.append(DroppedItem(id=chosen.pop().id, reason=OVER_BUDGET))
