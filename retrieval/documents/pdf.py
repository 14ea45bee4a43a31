"""Reads text from PDF; needs pypdf."""

from __future__ import annotations

import re
from io import BytesIO

from retrieval.documents.reading import Reading

MAX_PAGES = 5_000

_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[a-z])")
_LEADER = re.compile(r"(?:\. ?){5,}")
"""The dots of a table of contents, each of which would be a word piece."""
_NO_TITLE = re.compile(
    r"\W*|\(?(?:anonymous|no title|untitled|unknown)\)?[\W_]*\d*|(?:document|presentation|slide|layout|book) ?\d+"
    r"|microsoft (?:word|excel|powerpoint) - .*|powerpoint presentation"
    r"|.*\.(?:docx?|dvi|indd|odt|pdf|pptx?|qxd|rtf|tex|xlsx?)",
    re.IGNORECASE | re.DOTALL,
)
"""Titles that programs write if the author gave none: "Untitled" or the name of a file."""


def read_pdf(content: bytes) -> Reading:
    """The text of a PDF, page after page."""
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        return Reading(error="is encrypted; remove the password first")
    pages = len(reader.pages)
    if pages > MAX_PAGES:
        return Reading(error=f"has {pages:,} pages, more than {MAX_PAGES:,}; split it")
    text = "\n\n".join(page.extract_text().strip() for page in reader.pages)
    if not text.strip():
        return Reading(error=f"has no text: its {pages} pages are pictures, which a program for OCR can read")
    text = _LEADER.sub("… ", _HYPHENATED.sub("", text))
    title = str((reader.metadata and reader.metadata.title) or "").strip()
    return Reading(text=text, title=None if _NO_TITLE.fullmatch(title) else title)
