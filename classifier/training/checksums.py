"""Checksums of the models, in `SHA256SUMS` in the same folder."""

from hashlib import sha256
from pathlib import Path


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    return sha256(path.read_bytes()).hexdigest()


def record_checksum(path: Path) -> None:
    """Record the file's line in `SHA256SUMS` in its folder (sha256sum format), keeping the other lines."""
    sums = path.parent / "SHA256SUMS"
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    kept = [line for line in lines if line and line[66:] != path.name]
    ordered = sorted([*kept, f"{file_sha256(path)}  {path.name}"], key=lambda line: line[66:])
    sums.write_text("".join(f"{line}\n" for line in ordered), encoding="utf-8")
