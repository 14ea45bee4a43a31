"""How much of the evidence context packs contain, by token budget.

The packs of several systems for the same queries form a `ScoreTable` with `pack_measures` as its measures.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrieval.answer.pack import DUPLICATE_OF
from retrieval.errors import InvalidInput
from retrieval.evaluation.folder import Query
from retrieval.evaluation.runner import Names, Progress, for_each
from retrieval.evaluation.scores import ScoreTable, macro_cells
from retrieval.evaluation.systems import System
from retrieval.significance import Scores
from retrieval.types.evaluation import Estimate
from retrieval.types.search import DroppedItem, PackItem

if TYPE_CHECKING:
    from retrieval.engine import Trivet

MIN_BUDGET, MAX_BUDGET = 64, 200_000


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetCell:
    """A system's packs under one budget: how many, mean evidence recall, mean tokens used."""

    system: str
    budget: int
    queries: int
    recall: Estimate
    tokens: float


def parse_budgets(text: str) -> tuple[int, ...]:
    """Parse a comma-separated list of token budgets: ascending, without repeats.

    >>> parse_budgets("2048,512")
    (512, 2048)
    """
    try:
        budgets = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError as exc:
        raise InvalidInput(f"budgets are whole numbers of tokens such as 512,1024, not {text!r}") from exc
    for budget in budgets:
        if not MIN_BUDGET <= budget <= MAX_BUDGET:
            raise InvalidInput(f"a budget is {MIN_BUDGET} to {MAX_BUDGET:,} tokens, not {budget}")
    return budgets


def pack_measures(budgets: Sequence[int]) -> tuple[str, ...]:
    """The measures of packs: the share of the evidence under each budget, then the tokens used.

    >>> pack_measures([512])
    ('recall@512', 'tokens@512')
    """
    return tuple(f"{what}@{budget}" for what in ("recall", "tokens") for budget in budgets)


def evidence_held(items: Iterable[PackItem], dropped: Iterable[DroppedItem], relevant: Collection[str]) -> set[str]:
    """The relevant memories that the pack contains, or that were dropped as a duplicate of one that it contains.

    >>> item, twin = PackItem(id="a", tokens=9, citation="[1]"), DroppedItem(id="b", reason="duplicate_of:a")
    >>> evidence_held([item], [twin], {"b", "c"})
    {'b'}
    """
    held = {item.id for item in items}
    stood_for = {
        drop.id
        for drop in dropped
        if drop.reason.startswith(DUPLICATE_OF) and drop.reason.removeprefix(DUPLICATE_OF) in held
    }
    return {*relevant} & (held | stood_for)


def evidence_recall(items: Iterable[PackItem], dropped: Iterable[DroppedItem], relevant: Collection[str]) -> float:
    """The share of the relevant memories that are in `evidence_held`."""
    return len(evidence_held(items, dropped, relevant)) / len({*relevant})


async def pack_each(
    engine: Trivet,
    queries: Sequence[Query],
    system: System,
    names: Names,
    budgets: Sequence[int],
    *,
    concurrency: int,
    progress: Progress,
) -> Scores:
    """The system's packs for the queries: (queries, measures), columns in the order of `pack_measures(budgets)`."""

    async def ask(query: Query) -> list[tuple[float, int]]:
        packs = [
            await engine.context(names(query.namespace), system.context_request(query, budget)) for budget in budgets
        ]
        return [(evidence_recall(pack.items, pack.dropped, query.relevant), pack.tokens_used) for pack in packs]

    found = np.array(await for_each(queries, ask, concurrency=concurrency, progress=progress), dtype=np.float64)
    return np.hstack([found[:, :, 0], found[:, :, 1]])


def budget_cells(packs: ScoreTable, budgets: Sequence[int], *, seed: int) -> list[BudgetCell]:
    """Means over the queries, with equal weight for every set of the table."""
    return [
        BudgetCell(
            system=cell.system,
            budget=budget,
            queries=cell.queries,
            recall=cell.measures[f"recall@{budget}"],
            tokens=cell.measures[f"tokens@{budget}"].mean,
        )
        for cell in macro_cells(packs, seed=seed)
        for budget in budgets
    ]
