"""For which processors the library is compiled."""

from __future__ import annotations

import platform
import sys

LEVELS = ("x86_64_v2", "x86_64_v3") if platform.machine().lower() in ("x86_64", "amd64") else ("baseline",)
"""Names that `zig cc -mcpu` knows; every processor has the first."""


def file_name(level: str) -> str:
    """Of the library of a level, beside this file."""
    return f"_kernels-{level}.{'dylib' if sys.platform == 'darwin' else 'so'}"
