"""What the library is compiled from and for; its build, before which the package cannot be imported, runs this file."""

from __future__ import annotations

import platform
import sys
from hashlib import sha256
from pathlib import Path

LEVELS = ("x86-64-v2", "x86-64-v3") if platform.machine().lower() in ("x86_64", "amd64") else ("baseline",)
"""In ascending order: every processor supports the first; `trivet_cpu_level` in cpu.c returns the best for this one."""


def file_name(level: str) -> str:
    """File name of the library for a level, in this folder."""
    return f"_kernels-{level}.{'dylib' if sys.platform == 'darwin' else 'so'}"


_FILES = sorted(Path(__file__).parent.glob("*.[ch]"))
SOURCES = sha256(b"".join(file.read_bytes() for file in _FILES)).hexdigest() if _FILES else ""
"""The digest of the C files in this folder, which a library made of them contains; empty if there are none."""
