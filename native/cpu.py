"""The processor levels the library is compiled for."""

from __future__ import annotations

import platform
import sys

LEVELS = ("x86-64-v2", "x86-64-v3") if platform.machine().lower() in ("x86_64", "amd64") else ("baseline",)
"""In ascending order: every processor supports the first; `trivet_cpu_level` in cpu.c returns the best for this one."""


def file_name(level: str) -> str:
    """File name of the library for a level, in this folder."""
    return f"_kernels-{level}.{'dylib' if sys.platform == 'darwin' else 'so'}"
