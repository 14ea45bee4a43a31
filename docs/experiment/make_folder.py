"""Build an evaluation folder of docs/experiment.md out of the running Python alone.

Usage: python docs/experiment/make_folder.py {characters,stdlib} OUT

characters: the characters that have a name in HTML, with their Unicode names.
stdlib: the docstrings of the standard library; a newer Python makes a slightly different folder.
"""

from __future__ import annotations

import argparse
import html.entities
import importlib
import inspect
import json
import platform
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FEWEST_QUERIES = 190
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Of a default value in memory, which differs from run to run."""

LONGEST_TEXT = 900
"""Characters; the first paragraphs of a docstring say what a thing is for."""

MODULES = (
    *("builtins", "argparse", "asyncio", "base64", "bisect", "calendar", "collections", "concurrent.futures"),
    *("configparser", "contextlib", "copy", "csv", "dataclasses", "datetime", "difflib", "enum", "fnmatch"),
    *("fractions", "functools", "getpass", "glob", "gzip", "hashlib", "heapq", "hmac", "html", "inspect", "io"),
    *("ipaddress", "itertools", "json", "logging", "math", "mimetypes", "operator", "os", "os.path", "pathlib"),
    *("pickle", "pprint", "queue", "random", "re", "secrets", "shelve", "shlex", "shutil", "socket", "sqlite3"),
    *("statistics", "string", "struct", "subprocess", "sys", "tempfile", "textwrap", "threading", "time"),
    *("timeit", "tomllib", "traceback", "unicodedata", "urllib.parse", "urllib.request", "uuid", "weakref"),
    *("zipfile", "zlib", "zoneinfo"),
)

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


def characters() -> dict[str, Row]:
    """A memory for every character that has a name in HTML, by its code point."""
    entities: dict[str, list[str]] = {}
    for entity, text in sorted(html.entities.html5.items()):
        if len(text) == 1 and entity.endswith(";") and unicodedata.category(text) != "Cc":
            entities.setdefault(text, []).append(f"&{entity}")
    return {(row := _character(text, names))["id"]: row for text, names in sorted(entities.items())}


def _character(text: str, entities: list[str]) -> Row:
    code, name = f"U+{ord(text):04X}", unicodedata.name(text)
    block = _MAJOR_CATEGORIES[unicodedata.category(text)[0]]
    return {"id": code, "title": name, "text": f"{text} {code} {name}, {block}, in HTML {' '.join(entities)}"}


def stdlib() -> dict[str, Row]:
    """A memory for every module, function, class and method with a docstring, by its qualified name."""
    found: dict[str, Row] = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        _keep(found, module_name, module_name, module)
        for name in _public(module):
            thing = getattr(module, name)
            if not (inspect.isclass(thing) or callable(thing)) or not _is_at_home(thing, module):
                continue
            qualified = name if module_name == "builtins" else f"{module_name}.{name}"
            _keep(found, qualified, module_name, thing)
            if inspect.isclass(thing):
                for method, value in _methods(thing):
                    _keep(found, f"{qualified}.{method}", module_name, value)
    return found


def _public(module: Any) -> list[str]:
    """The names that a module offers."""
    return sorted(name for name in getattr(module, "__all__", vars(module)) if not name.startswith("_"))


def _is_at_home(thing: Any, module: Any) -> bool:
    """Whether a module did not merely import a thing; what C or an inner module defines belongs to who offers it."""
    origin = getattr(thing, "__module__", None)
    if hasattr(module, "__all__") or origin is None:
        return True
    family: str = module.__name__.partition(".")[0]
    return str(origin).lstrip("_").partition(".")[0] == family


def _methods(owner: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class defines itself."""
    for name, value in sorted(vars(owner).items()):
        if name.startswith("_") or isinstance(value, type):
            continue
        if callable(value) or isinstance(value, property | classmethod | staticmethod):
            yield name, getattr(owner, name) if isinstance(value, classmethod | staticmethod) else value


def _keep(found: dict[str, Row], qualified: str, module: str, thing: Any) -> None:
    """Add a memory, if the thing has a docstring of its own."""
    doc = getattr(thing, "__doc__", None)
    if not isinstance(doc, str) or not doc.strip() or qualified in found:
        return
    text = f"{qualified}{_signature(thing)}\n\n{inspect.cleandoc(doc)}"
    found[qualified] = {
        "id": qualified,
        "title": qualified,
        "text": _beginning(text),
        "metadata": {"module": module},
    }


def _signature(thing: Any) -> str:
    """The parameters in parentheses; nothing for a module, a property or what tells none."""
    if inspect.ismodule(thing) or not callable(thing):
        return ""
    try:
        return _ADDRESS.sub("", str(inspect.signature(thing)))
    except (TypeError, ValueError):  # some of what is written in C tells none
        return ""


def _beginning(text: str) -> str:
    """The first paragraphs that fit `LONGEST_TEXT`, at least the first one's beginning."""
    kept = ""
    for paragraph in text.split("\n\n"):
        longer = f"{kept}\n\n{paragraph}".strip("\n")
        if len(longer) > LONGEST_TEXT:
            break
        kept = longer
    return kept or text[:LONGEST_TEXT]


DOMAINS: Mapping[str, Callable[[], dict[str, Row]]] = {"characters": characters, "stdlib": stdlib}


def queries(file: Path, known: Mapping[str, Row]) -> list[Row]:
    """The written queries of a file; a relevant id that this Python lacks is told of and taken out."""
    kept = []
    for line in file.read_text(encoding="utf-8").splitlines():
        row: Row = json.loads(line)
        missing = [name for name in row["relevant"] if name not in known]
        if missing:
            print(f"{row['id']}: this Python has no {', '.join(missing)}", file=sys.stderr)
        relevant = [name for name in row["relevant"] if name in known]
        if relevant:
            kept.append({**row, "relevant": relevant})
    return kept


def write(domain: str, out: Path) -> None:
    """Write the folder of a domain.

    Raises:
        SystemExit: too few queries have anything relevant in this Python.
    """
    known = DOMAINS[domain]()
    asked = queries(HERE / f"{domain}.jsonl", known)
    if len(asked) < FEWEST_QUERIES:
        sys.exit(f"too few queries are left: {len(asked)}; the experiment wants {FEWEST_QUERIES}")
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", list(known.values())), ("queries", asked)):
        lines = [json.dumps({**row, "namespace": domain}, ensure_ascii=False) for row in rows]
        (out / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    dataset = {
        "name": domain,
        "licence": "queries: Apache-2.0; texts: PSF-2.0, character names: Unicode-3.0",
        "source": f"Python {platform.python_version()}, Unicode {unicodedata.unidata_version}",
        "counts": {"corpus": len(known), "queries": len(asked)},
    }
    (out / "dataset.json").write_text(json.dumps(dataset, indent=2) + "\n", encoding="utf-8")
    print(f"{out}: {len(known)} memories, {len(asked)} queries")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build an evaluation folder of docs/experiment.md.")
    parser.add_argument("domain", choices=sorted(DOMAINS), help="what is searched")
    parser.add_argument("out", type=Path, help="the folder")
    given = parser.parse_args()
    write(given.domain, given.out)
