"""Tables of text, for a terminal, a pipe, Markdown and HTML alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrieval.types.evaluation import Estimate


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A title, the columns' headings, and rows of equal length."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def aligned(table: Table) -> str:
    """The table as text, after a blank line.

    >>> print(aligned(Table(title="sizes", headings=["what", "n"], rows=[["legs", "3"]])))
    <BLANKLINE>
    sizes
    what  n
    legs  3
    """
    lines = [table.headings, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join(["", table.title, *texts])


def markdown(table: Table) -> str:
    """The table below a heading with its title."""
    lines = [table.headings, ["---"] * len(table.headings), *table.rows]
    return "\n".join([f"## {table.title}", "", *(f"| {' | '.join(line)} |" for line in lines)])


def show_interval(found: Estimate, *, signed: bool = False) -> str:
    """A mean and its bounds.

    >>> show_interval(Estimate(mean=0.4821, low=0.455, high=0.509))
    '.482 [.455 .509]'
    """
    mean, low, high = (show_share(value, signed=signed) for value in (found.mean, found.low, found.high))
    return f"{mean} [{low} {high}]"


def show_share(share: float, *, signed: bool = False) -> str:
    """A number between -1 and 1 with three digits, such as `.482`."""
    return format(share, "+.3f" if signed else ".3f").replace("0.", ".", 1)


def show_counts(counts: Mapping[str, int]) -> str:
    """The number of each kind.

    >>> show_counts({"updated": 1, "created": 12})
    '12 created, 1 updated'
    """
    return ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts))
