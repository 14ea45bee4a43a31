"""The wheel, installed by a user who has modules with the same names as ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hatch_build import PACKAGES, within_trivet
from tests.processes import ROOT, python


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with the wheel's content."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"  # other tests use the libraries in the checkout
    for name in ("trivet", *PACKAGES, "models"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "_kernels-*"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(ROOT / name, tree)
    compiler = folder / "cc"  # copies what is compiled already, of the same sources
    compiler.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp "{ROOT}/native/${{2##*/}}" "$2"\n')
    compiler.chmod(0o755)
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    environment = {**os.environ, "CC": str(compiler)}
    subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's folder with modules of the same names as ours, which fail when imported."""
    for package in (*PACKAGES, "models"):
        (tmp_path / f"{package}.py").write_text("raise RuntimeError('the user has this one')")
    return tmp_path


def run(installed: Path, home: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return python(*arguments, cwd=home, PYTHONPATH=str(installed), **settings)


def test_it_takes_one_name_of_its_user(installed: Path) -> None:
    assert [path.name for path in installed.iterdir() if path.suffix != ".dist-info"] == ["trivet"]
    assert not list(installed.rglob("*.c"))
    assert (installed / "trivet" / "py.typed").exists()


def test_it_is_used_beside_modules_of_the_same_names(installed: Path, home: Path, data_dir: Path) -> None:
    done = run(installed, home, "-m", "trivet", "classify", "Where did Ana meet Ben?", TRIVET_DATA_DIR=str(data_dir))
    assert done.stderr == ""
    assert "weights: vector" in done.stdout
    used = "import trivet; print(trivet.Client().__class__.__module__)"
    assert run(installed, home, "-c", used).stdout == "trivet._client\n"


def test_every_module_is_imported_from_there(installed: Path, home: Path) -> None:
    """Apart from those that need what only developers and training install."""
    imported = """
import importlib, pkgutil, re, trivet
for found in pkgutil.walk_packages(trivet.__path__, "trivet."):
    if not re.search("__main__|_kernels|training|build_onnx|generate|bench", found.name):
        importlib.import_module(found.name)
"""
    assert run(installed, home, "-c", imported).stderr == ""


def test_documents_are_read_by_a_program_of_it(installed: Path, home: Path) -> None:
    read = """
import asyncio
from trivet.retrieval.documents.extraction import extract
print(asyncio.run(extract(b"<html><p>Tea", None)).text)
"""
    done = run(installed, home, "-c", read)
    assert (done.stdout, done.stderr) == ("Tea\n", "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("from graph.names import NameKey", "from trivet.graph.names import NameKey"),
        ("    from native import Array", "    from trivet.native import Array"),
        ("import native", "from trivet import native"),
        (">>> from retrieval.ids import uuid7", ">>> from trivet.retrieval.ids import uuid7"),
        ("from graphlib import TopologicalSorter", "from graphlib import TopologicalSorter"),
        ("import native_things", "import native_things"),
        ("from trivet import calls", "from trivet import calls"),
    ],
)
def test_imports_of_our_packages_become_imports_from_trivet(line: str, expected: str) -> None:
    assert within_trivet(f"{line}\n") == f"{expected}\n"
