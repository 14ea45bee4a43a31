"""The installed version of Trivet, and where its ONNX files are and whether they are intact."""

import hashlib
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from retrieval.errors import ModelFileError

CHECKSUMS = "SHA256SUMS"
"""File in the models' folder with the checksum of each, in lines of "checksum  name"."""

REMEDY = "install Trivet again or, in a checkout, restore the file with `git restore models`"

_PACKAGE = Path(__file__).resolve().parent


def models_dir() -> Path:
    """The folder of the bundled models: `retrieval/_models`, where the wheel puts them, or the checkout's `models/`."""
    installed = _PACKAGE / "_models"
    return installed if installed.is_dir() else _PACKAGE.parent / "models"


def checksums(folder: Path) -> dict[str, str]:
    """The expected SHA-256 of each model of a folder, by file name; empty without `SHA256SUMS`."""
    listed = folder / CHECKSUMS
    if not listed.is_file():
        return {}
    lines = (line.split(maxsplit=1) for line in listed.read_text(encoding="utf-8", errors="replace").splitlines())
    return {name.strip().removeprefix("*"): checksum for checksum, name in (line for line in lines if len(line) == 2)}


def fault_of(file: Path, checksum: str) -> str | None:
    """What is wrong with a model file that should have this SHA-256; None if it is intact."""
    if not file.is_file():
        return f"{file} is missing"
    found = file.stat()
    if _sha256(file, found.st_size, found.st_mtime_ns) != checksum:
        return f"{file} is damaged or incomplete: its {found.st_size} bytes have another checksum than {CHECKSUMS} says"
    return None


def check_model_file(file: Path) -> None:
    """Raise ModelFileError if a model file that `SHA256SUMS` lists is missing or damaged."""
    checksum = checksums(file.parent).get(file.name)
    fault = None if checksum is None else fault_of(file, checksum)
    if fault is not None:
        raise ModelFileError(f"the model {fault}; {REMEDY}")


@lru_cache(maxsize=32)
def _sha256(file: Path, size: int, changed_ns: int) -> str:
    """The SHA-256 of a file, cached by size and modification time."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def installed_version() -> str:
    """The version of the installed package `trivet`; "unknown" if it is not installed."""
    try:
        return version("trivet")
    except PackageNotFoundError:
        return "unknown"
