"""The context pack: as many of the best memories as a token budget holds, cited and in one text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from retrieval.render import LAYOUTS, Layout, PackCandidate, citation
from retrieval.types import DroppedItem, PackFormat, PackItem, PackOrder

__all__ = ["PackCandidate", "Packed", "pack"]

OVER_BUDGET = "over_budget"
SOURCE_CAP = "source_cap"
DUPLICATE_OF = "duplicate_of:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """A rendered pack.

    Attributes:
        context: the text; empty if nothing fits.
        tokens_used: tokens of `context`, never above the budget.
        items: what is in it, in the order shown; `tokens` are those of the entry alone.
        dropped: what is not, and why.
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
    """Fill the budget greedily by relevance and render what was chosen.

    What does not fit is skipped, and smaller memories behind it still get in. The budget holds for the
    whole text with headers and citations, which is counted again at the end: where the parts joined
    cost more than their sum, the least relevant go. `order` arranges what was chosen and numbers the
    citations, it chooses nothing.

    Args:
        candidates: best first, ids unique.
        max_tokens: budget of the rendered text.
        format: markdown, xml or json.
        order: relevance, or time (oldest first).
        count: tokens of a text, at least 1 for each word between spaces.
        source_cap: most memories of one document or session; None for no bound.
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
        if source_cap is not None and candidate.source and per_source[candidate.source] >= source_cap:
            dropped.append(DroppedItem(id=candidate.id, reason=SOURCE_CAP))
            continue
        cost = _cost(candidate, len(chosen) + 1, left, layout, count)
        if cost is None:
            dropped.append(DroppedItem(id=candidate.id, reason=OVER_BUDGET))
            continue
        left -= cost
        chosen.append(candidate)
        if candidate.source:
            per_source[candidate.source] += 1
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
    """What an entry adds to the pack, None if more than is left; a text far too long is not counted."""
    if left <= 0 or (len(candidate.text) > left and len(candidate.text.split(maxsplit=left)) > left):
        return None
    cost = count(layout.separator + layout.entry(candidate, number))
    return cost if cost <= left else None


def _shrinking(chosen: list[PackCandidate], dropped: list[DroppedItem]) -> Iterator[list[PackCandidate]]:
    """The chosen, then without the least relevant of them, and so on while there are any."""
    while chosen:
        yield chosen
        dropped.append(DroppedItem(id=chosen.pop().id, reason=OVER_BUDGET))
