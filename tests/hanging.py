"""Work that must not take forever on any machine: a limit of processor time that only a defect reaches."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENOUGH_S = 20.0
"""Of this process's own time; the limited work takes a hundredth of it or less."""


@contextmanager
def bounded() -> Iterator[None]:
    """Interrupt endless work, such as a regular expression that backtracks on a hostile text."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"it has not ended after {ENOUGH_S:.0f} s of processor time")

    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, ENOUGH_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
