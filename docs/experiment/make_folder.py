"""Build the evaluation folder of docs/experiment.md: the characters with a name in HTML, with their Unicode names.

Usage: python docs/experiment/make_folder.py OUT

Everything comes from the running Python. A newer Unicode version gives the same folder, as names never change.
"""

from __future__ import annotations

import argparse
import html.entities
import json
import platform
import unicodedata
from pathlib import Path
from typing import Any

NAME = "characters"
QUERIES = Path(__file__).with_name("characters.jsonl")

Row = dict[str, Any]

_MAJOR_CATEGORIES = {
    "C": "format character",
    "L": "letter",
    "M": "mark",
    "N": "number",
    "P": "punctuation",
    "S": "symbol",
    "Z": "space",
}


def characters() -> list[Row]:
    """A memory for every character with a name in HTML."""
    entities: dict[str, list[str]] = {}
    for entity, text in sorted(html.entities.html5.items()):
        if len(text) == 1 and entity.endswith(";") and unicodedata.category(text) != "Cc":
            entities.setdefault(text, []).append(f"&{entity}")
    return [_character(text, names) for text, names in sorted(entities.items())]


def _character(text: str, entities: list[str]) -> Row:
    code, name = f"U+{ord(text):04X}", unicodedata.name(text)
    block = _MAJOR_CATEGORIES[unicodedata.category(text)[0]]
    return {"id": code, "title": name, "text": f"{text} {code} {name}, {block}, in HTML {' '.join(entities)}"}


def write(out: Path) -> None:
    """Write the folder."""
    queries = [json.loads(line) for line in QUERIES.read_text(encoding="utf-8").splitlines()]
    corpus = characters()
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", corpus), ("queries", queries)):
        lines = [json.dumps({**row, "namespace": NAME}, ensure_ascii=False) for row in rows]
        (out / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    dataset = {
        "name": NAME,
        "licence": "queries: Apache-2.0; texts: PSF-2.0, character names: Unicode-3.0",
        "source": f"Python {platform.python_version()}, Unicode {unicodedata.unidata_version}",
        "counts": {"corpus": len(corpus), "queries": len(queries)},
    }
    (out / "dataset.json").write_text(json.dumps(dataset, indent=2) + "\n", encoding="utf-8")
    print(f"{out}: {len(corpus)} memories, {len(queries)} queries")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the evaluation folder of docs/experiment.md.")
    parser.add_argument("out", type=Path, help="the folder")
    write(parser.parse_args().out)
