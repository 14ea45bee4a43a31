"""Receipts for what clients sent."""

from __future__ import annotations

from msgspec import Struct

from retrieval.types.memory import AddResult


class AddResponse(Struct, frozen=True, kw_only=True):
    """The outcome for each memory, in the order of the batch."""

    results: list[AddResult]


class Deleted(Struct, frozen=True, kw_only=True):
    """How many entries were deleted."""

    deleted: int


class FeedbackReceipt(Struct, frozen=True, kw_only=True):
    """Whether feedback was written; False if the same feedback was stored before."""

    id: str
    stored: bool
