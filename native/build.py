"""Compiles the library when Trivet is installed, for hatchling; by hand: `python native/build.py`.

The compiler is zig's, which comes as a Python package, so that nobody needs one of their own.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_HERE = Path(__file__).parent
_FLAGS = (
    "-std=c11", "-O3", "-shared", "-fPIC", "-fno-sanitize=all", "-Wall", "-Wextra", "-Werror",
    "-ffp-contract=off",  # the same results on every processor
)  # fmt: skip


def build() -> list[Path]:
    """Compile all C files for each level of the processor; the libraries.

    Raises:
        subprocess.CalledProcessError: the compiler refused; what it said is on standard error.
    """
    levels = runpy.run_path(str(_HERE / "levels.py"))
    sources = sorted(str(path) for path in _HERE.glob("*.c"))
    built = []
    with tempfile.TemporaryDirectory() as cache:
        for level in levels["LEVELS"]:
            library = _HERE / levels["file_name"](level)
            command = [
                sys.executable,
                "-m",
                "ziglang",
                "cc",
                *_FLAGS,
                f"-mcpu={level}",
                *sources,
                "-o",
                str(library),
                "-lm",
            ]
            subprocess.run(command, check=True, env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache})
            built.append(library)
    return built


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the compiled library into the wheel, which is then one of this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, whether for a wheel or in place."""
        if self.target_name != "wheel":
            return
        build_data["artifacts"] += [f"native/{library.name}" for library in build()]
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


if __name__ == "__main__":
    build()
