"""What clients are told of their feedback."""

from __future__ import annotations

from msgspec import Struct


class FeedbackReceipt(Struct, frozen=True, kw_only=True):
    """Whether feedback was written; False if the same feedback was stored before."""

    id: str
    stored: bool
