"""The compiled library: checks of arrays, and the errors if it is missing or for another machine."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.tags import sys_tags

import hatch_build
import native
from hatch_build import WheelHook
from native.build import system_compiler
from native.cpu import LEVELS, file_name
from tests.processes import ROOT, new_data_dir, python

LIBRARY = file_name(LEVELS[0])
MACHINE = slice(18, 20)
"""Offset of the machine type in an ELF file."""


@pytest.mark.parametrize("is_writable", [True, False])
def test_only_the_address_of_a_contiguous_array_is_given(is_writable: bool) -> None:
    array = np.arange(12.0).reshape(3, 4)
    array.flags.writeable = is_writable
    assert native.address(array) == array.ctypes.data
    assert native.address(array[1:]) == array.ctypes.data + 4 * 8
    for view in (array[:, 1:], array[::2], array.T, array[::-1]):
        with pytest.raises(ValueError, match="not contiguous"):
            native.address(view)


def classify(native_folder: Path) -> subprocess.CompletedProcess[str]:
    """A command that needs the library, with another folder instead of `native/`."""
    command = ("-m", "retrieval.cli", "classify", "Who is Ann?")
    paths = os.pathsep.join((str(native_folder.parent), str(ROOT)))
    with new_data_dir() as data:
        settings = {"PYTHONPATH": paths, "TRIVET_DATA_DIR": str(data)}
        return python(*command, status=None, cwd=native_folder.parent, **settings)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder `native` with a library that can be spoilt."""
    copied = tmp_path / "native"
    copied.mkdir()
    for file in (ROOT / "native").iterdir():
        if file.suffix == ".py" or file.name.startswith("_kernels"):
            (copied / file.name).write_bytes(file.read_bytes())
    return copied


def check(done: subprocess.CompletedProcess[str], *said: str) -> None:
    """It ended with one message that says what is wrong and what to do."""
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr
    for part in (*said, LIBRARY, "run `make`", "pip install"):
        assert part in done.stderr


def test_a_copy_of_the_library_will_do(folder: Path) -> None:
    assert classify(folder).returncode == 0


def test_a_missing_library_is_named_with_what_to_do(folder: Path) -> None:
    (folder / LIBRARY).unlink()
    check(classify(folder), "is missing")


@pytest.mark.skipif(sys.platform != "linux", reason="the file is patched as ELF")
def test_a_library_for_another_processor_or_cut_short_is_named(folder: Path) -> None:
    library = bytearray((folder / LIBRARY).read_bytes())
    machine = library[MACHINE]
    library[MACHINE] = b"\x16\x00"  # S/390
    (folder / LIBRARY).write_bytes(library)
    check(classify(folder), "cannot be loaded", "Linux")
    library[MACHINE] = machine
    (folder / LIBRARY).write_bytes(library[:32])
    check(classify(folder), "cannot be loaded")


def test_a_library_of_other_sources_is_not_used(folder: Path) -> None:
    """After an update it would be called as the new one is, and might answer wrongly."""
    for file in (ROOT / "native").glob("*.[ch]"):
        (folder / file.name).write_bytes(file.read_bytes())
    assert classify(folder).returncode == 0
    with (folder / "walk.c").open("a") as source:
        source.write("/* changed */\n")
    check(classify(folder), "other C files")


def test_a_library_without_the_functions_is_of_another_version(folder: Path) -> None:
    other = np.random._mt19937.__file__  # a library that can be loaded
    (folder / LIBRARY).write_bytes(Path(other).read_bytes())
    check(classify(folder), "another version", "trivet_cpu_level")


@pytest.fixture
def cc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the only `cc` of this test may be."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "cc"


def hook() -> WheelHook:
    return WheelHook(str(ROOT), {}, None, None, "", "wheel")  # type: ignore[arg-type]


def build_requirements() -> list[str]:
    return hook().dependencies()


def test_without_a_c_compiler_zig_is_a_build_requirement(cc: Path) -> None:
    assert system_compiler() is None
    (requirement,) = build_requirements()
    assert requirement.startswith("ziglang")


@pytest.mark.parametrize(("status", "compiler"), [(0, ["cc"]), (1, None)])
def test_a_c_compiler_is_used_if_it_compiles_for_the_highest_level(
    cc: Path, status: int, compiler: list[str] | None
) -> None:
    level = LEVELS[-1].removeprefix("baseline")
    cc.write_text(f"#!/bin/sh\ncase $* in *{level}*) exit {status};; *) exit 2;; esac\n")
    cc.chmod(0o755)
    assert system_compiler() == compiler
    assert (build_requirements() == []) is (compiler is not None)


def test_the_compiler_that_cc_names_is_used_as_it_is(cc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "ccache gcc-13")
    assert system_compiler() == ["ccache", "gcc-13"]
    assert build_requirements() == []


def test_pip_takes_the_wheel_also_for_a_python_compiled_on_a_minor_version_of_macos(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As pyenv's is."""

    def tag() -> str:
        made: dict[str, Any] = {}
        hook().initialize("editable", made)
        supported = {f"py3-none-{each.platform}" for each in sys_tags()}
        assert made["tag"] in supported
        return str(made["tag"])

    monkeypatch.setitem(hatch_build._NATIVE, "build", lambda: None)
    tag()
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "macosx-14.7-arm64")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("14.7.1", ("", "", ""), "arm64"))
    assert tag() == "py3-none-macosx_14_0_arm64"
