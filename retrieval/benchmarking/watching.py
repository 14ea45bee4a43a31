"""How long work is shown to whoever waits for it."""

from collections.abc import Callable
from contextlib import AbstractContextManager

Progress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
"""Opens the display of some work, given its title and how much it is; gives what to call with how much is done."""
