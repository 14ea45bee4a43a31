"""Compiles the library: at installation, called by hatch_build.py, or by hand: `python native/build.py`.

The compiler is the one named by CC, else `cc` if it works, else zig's, a Python package installed only for the build.
With CI=true in the environment warnings are errors; elsewhere a newer compiler's warnings must not prevent an
installation.
"""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent
_CPU = runpy.run_path(str(_HERE / "cpu.py"))  # the package cannot be imported before it is built
_LEVELS: tuple[str, ...] = _CPU["LEVELS"]

_FLAGS = (
    "-std=c11", "-D_DEFAULT_SOURCE", "-O3", "-shared", "-fPIC", "-Wall", "-Wextra",
    "-ffp-contract=off",  # identical results on every processor
)  # fmt: skip

ZIG = "ziglang>=0.13,<1"
_PROBE = "#include <math.h>\n#include <pthread.h>\ndouble probe(double x) { return log(x) + (pthread_self() == 0); }\n"


def build() -> None:
    """Compile all C files for each processor level; a failing compiler raises CalledProcessError."""
    strict = ("-Werror",) if os.environ.get("CI") == "true" else ()
    sources = sorted(str(path) for path in _HERE.glob("*.c"))
    digest = f'-DTRIVET_SOURCES="{_CPU["SOURCES"]}"'
    compiler = system_compiler()
    with tempfile.TemporaryDirectory() as cache:
        zig_cache = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
        for level, library in zip(_LEVELS, libraries(), strict=True):
            command = _zig(level) if compiler is None else [*compiler, *_march(level)]
            command += [*_FLAGS, *strict, digest, *sources, "-o", str(library), "-lm", "-lpthread"]
            subprocess.run(command, check=True, env={**os.environ, **zig_cache})


def libraries() -> list[Path]:
    """The files that `build` writes, one per processor level."""
    return [_HERE / _CPU["file_name"](level) for level in _LEVELS]


def system_compiler() -> list[str] | None:
    """The command in CC, else `cc` if it supports the highest processor level, else None."""
    if named := os.environ.get("CC"):
        return shlex.split(named)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(_PROBE)
        command = ["cc", *_march(_LEVELS[-1]), *_FLAGS, str(source), "-o", str(Path(folder, "probe.so")), "-lm"]
        try:
            works = subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            works = False
    return ["cc"] if works else None


def _march(level: str) -> list[str]:
    return [] if level == "baseline" else [f"-march={level}"]


def _zig(level: str) -> list[str]:
    return [sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=all", f"-mcpu={level.replace('-', '_')}"]


if __name__ == "__main__":
    build()
