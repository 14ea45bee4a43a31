"""Work that must not take for ever, whatever the machine: a bound on processor time that only a defect reaches."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENOUGH_S = 20.0
"""Of this process's own time; what is bounded takes a hundredth of it or less."""


@contextmanager
def bounded() -> Iterator[None]:
    """Interrupt what runs on and on, as an expression that tries all ways to match a hostile text does."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"it has not ended after {ENOUGH_S:.0f} s of processor time")

    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, ENOUGH_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
