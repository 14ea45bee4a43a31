"""Cards and checksums of the models, in `SHA256SUMS` in the same folder."""

from hashlib import sha256
from pathlib import Path

MODELS = Path(__file__).resolve().parents[2] / "models"


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    return sha256(path.read_bytes()).hexdigest()


def fingerprint(path: Path) -> str:
    """Checksum and size of a file, as its card states them."""
    return f"sha256 `{file_sha256(path)}`, {path.stat().st_size} bytes"


def write_card(model: Path, card: str) -> None:
    """Write the card of a model beside it, and its checksum."""
    model.with_suffix(".md").write_text(card, encoding="utf-8")
    record_checksum(model)


def record_checksum(path: Path) -> None:
    """Record the file's line in `SHA256SUMS` in its folder (sha256sum format), keeping the other lines."""
    sums = path.parent / "SHA256SUMS"
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    kept = [line for line in lines if line and line[66:] != path.name]
    ordered = sorted([*kept, f"{file_sha256(path)}  {path.name}"], key=lambda line: line[66:])
    sums.write_text("".join(f"{line}\n" for line in ordered), encoding="utf-8")
