"""Reads text from Jupyter notebooks, as Markdown."""

from __future__ import annotations

import msgspec

from retrieval.documents.html import fenced
from retrieval.documents.reading import Reading


class _Cell(msgspec.Struct):
    cell_type: str
    source: str | list[str] = ""


class _Notebook(msgspec.Struct):
    cells: list[_Cell]


def read_notebook(content: bytes) -> Reading:
    """The cells of a notebook in UTF-8, code between fences, without the outputs."""
    cells = msgspec.json.decode(content, type=_Notebook).cells
    sources = [(cell.cell_type == "code", "".join(cell.source).strip()) for cell in cells]
    texts = [fenced(source) if is_code else source for is_code, source in sources if source]
    return Reading(text="\n\n".join(texts))
