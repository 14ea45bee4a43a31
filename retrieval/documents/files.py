"""Turns files into documents to put: name, content and media type."""

from __future__ import annotations

import base64
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from retrieval.errors import InvalidInput
from retrieval.types.document import MAX_DOCUMENT_BYTES, DocumentInput

_OFFICE = "application/vnd.openxmlformats-officedocument."
_PLAIN = ("adoc", "log", "org", "srt", "tex", "txt", "vtt")
_SOURCE = (
    *("c", "cc", "cpp", "cs", "css", "go", "h", "hpp", "java", "js", "json", "jsx", "kt", "lua", "mjs", "php", "pl"),
    *("py", "r", "rb", "rs", "scala", "sh", "sql", "swift", "toml", "ts", "tsx", "vue", "xml", "yaml", "yml"),
)
_MEDIA_TYPES = {
    **{f".{name}": f"text/x-{name}" for name in _SOURCE},
    **{f".{name}": "text/plain" for name in _PLAIN},
    ".csv": "text/csv",
    ".docx": f"{_OFFICE}wordprocessingml.document",
    ".epub": "application/epub+zip",
    ".htm": "text/html",
    ".html": "text/html",
    ".ipynb": "application/x-ipynb+json",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".odp": "application/vnd.oasis.opendocument.presentation",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".pdf": "application/pdf",
    ".pptx": f"{_OFFICE}presentationml.presentation",
    ".rst": "text/x-rst",
    ".tsv": "text/tab-separated-values",
    ".xhtml": "application/xhtml+xml",
    ".xlsx": f"{_OFFICE}spreadsheetml.sheet",
}


def is_document(name: str) -> bool:
    """Whether a file's name is that of a text, web page, book, office or source file."""
    return Path(name).suffix.lower() in _MEDIA_TYPES


def documents_in(folder: Path) -> tuple[Sequence[Path], Counter[str]]:
    """The documents of a folder and its subfolders, by name, and the number of other files by suffix.

    Hidden files are skipped. JSON does not count as a document, as it may be a program's export.
    """
    found: list[Path] = []
    others = Counter[str]()
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for file in (Path(path, name) for name in sorted(names) if not name.startswith(".")):
            suffix = file.suffix.lower()
            if is_document(file.name) and suffix != ".json":
                found.append(file)
            else:
                others[suffix or file.name] += 1
    return found, others


def id_of(path: Path) -> str:
    """The id of a file's document, derived from its path, so that importing it again replaces it."""
    return str(uuid5(NAMESPACE_URL, path.resolve().as_uri()))


def document_of(path: Path, folder: Path | None = None) -> DocumentInput:
    """A file as a document, with its name, or its path in the folder, in the metadata.

    Raises:
        OSError: it cannot be read.
        InvalidInput: it is empty or too large, or a link out of the folder, which somebody else may have made.
    """
    size = path.stat().st_size  # before `resolve`, to which a link in a circle is no OSError
    if folder is not None and not path.resolve().is_relative_to(folder.resolve()):
        raise InvalidInput("it is a link that leads out of the folder; import the file itself")
    if not 0 < size <= MAX_DOCUMENT_BYTES:
        raise InvalidInput(f"{path} has {size:,} bytes; a document has 1 to {MAX_DOCUMENT_BYTES:,}")
    return DocumentInput(
        id=id_of(path),
        content_base64=base64.b64encode(path.read_bytes()).decode(),
        media_type=_MEDIA_TYPES.get(path.suffix.lower()),
        metadata={"file": path.relative_to(folder or path.parent).as_posix()},
    )
