"""Build hook: compiles native/, and puts all packages into the wheel below `trivet`.

In the checkout the packages are side by side at the top level. Installed like that, a user's own `graph.py` would
shadow ours. So they are copied, and their imports of each other become imports from `trivet`. An editable installation
uses the checkout directly.
"""

from __future__ import annotations

import re
import runpy
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

_ROOT = Path(__file__).parent
_NATIVE = runpy.run_path(str(_ROOT / "native" / "build.py"))

PACKAGES = ("retrieval", "classifier", "graph", "postgres", "native")
_NAMES = "|".join(PACKAGES)
_FROM = re.compile(rf"^(\s*(?:>>> )?)from ({_NAMES})(?=[. ])", re.MULTILINE)
_IMPORT = re.compile(rf"^(\s*)import ({_NAMES})$", re.MULTILINE)
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.pyc", "*.c", "*.h", "*.sh", "build.py", "_kernels-*")


def within_trivet(source: str) -> str:
    """A module's source, with imports of the packages turned into imports from `trivet`."""
    return _IMPORT.sub(r"\1from trivet import \2", _FROM.sub(r"\1from trivet.\2", source))


def stage(folder: Path) -> None:
    """Copy `trivet` and the packages below it, libraries and models included."""
    trivet = folder / "trivet"
    shutil.copytree(_ROOT / "trivet", trivet, ignore=_NOT_COPIED)
    for package in PACKAGES:
        shutil.copytree(_ROOT / package, trivet / package, ignore=_NOT_COPIED)
    for library in _NATIVE["libraries"]():
        shutil.copy2(library, trivet / "native")
    shutil.copytree(_ROOT / "models", trivet / "retrieval" / "_models")
    for module in trivet.rglob("*.py"):
        module.write_text(within_trivet(module.read_text(encoding="utf-8")), encoding="utf-8")


class WheelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Makes the wheel, which is specific to the platform."""

    _staged: tempfile.TemporaryDirectory[str] | None = None

    def dependencies(self) -> list[str]:
        """Build requirements in addition to hatchling."""
        return [_NATIVE["ZIG"]] if self.target_name == "wheel" and _NATIVE["system_compiler"]() is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and stage the wheel's contents."""
        if self.target_name != "wheel":
            return
        _NATIVE["build"]()
        build_data["pure_python"] = False
        # As pip counts them: `sysconfig.get_platform` names a minor version of macOS with a Python compiled there.
        platform = next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))
        build_data["tag"] = f"py3-none-{platform}"
        if version != "editable":
            self._staged = tempfile.TemporaryDirectory()
            stage(Path(self._staged.name))
            build_data["force_include"][self._staged.name] = "/"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the staged files."""
        if self._staged is not None:
            self._staged.cleanup()
