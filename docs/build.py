"""Build the documentation's site in build/docs/site: `make docs`, or `python -m docs.build`.

The pages of `docs` are its navigation; every other Markdown page of the project is below `project/`, so that links to
it resolve. Nothing is fetched from outside, neither now nor by a reader's browser. Zensical's strict mode fails on a
link to a missing page or heading.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from docs.check_links import CODE_OR_FENCE, ROOT, pages

DOCS = ROOT / "docs"
OUT = ROOT / "build" / "docs"
SECTIONS = {
    "tutorial": "Tutorial",
    "how-to": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
    ".": "In depth",
    "migrate": "Coming from elsewhere",
    "decisions": "Decisions",
}
"""The folders of `docs` in the order of the navigation; `.` stands for the pages beside them."""

_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(<?([^)>\s]+)>?\)")
_FIGURES = (".svg", ".png")


def place(file: Path) -> PurePosixPath:
    """The place of a page or figure of the project in the site's source."""
    if file.is_relative_to(DOCS):
        return PurePosixPath(file.relative_to(DOCS))
    return PurePosixPath("project") / file.relative_to(ROOT).as_posix()


def with_links_of_site(page: Path, text: str) -> str:
    """The page's text, with links to places in the site; links to anything but a page or figure are removed."""

    def moved(link: re.Match[str]) -> str:
        mark, label, target = link.groups()
        path, hash_, anchor = target.partition("#")
        file = (page.parent / unquote(path)).resolve()
        if not path or re.match(r"[a-z][a-z0-9+.-]*:", target) or not file.exists():
            return link[0]
        if file.suffix != ".md" and file.suffix not in _FIGURES:
            return str(label)
        relative = os.path.relpath(place(file), place(page).parent)
        return f"{mark}[{label}]({relative}{hash_}{anchor})"

    codes = [*CODE_OR_FENCE.findall(text), ""]
    prose = CODE_OR_FENCE.split(text)
    return "".join(_LINK.sub(moved, part) + code for part, code in zip(prose, codes, strict=True))


def title(page: Path) -> str:
    """The page's first heading."""
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise SystemExit(f"{page.relative_to(ROOT)} has no heading")
    return found[1].replace("`", "")


def navigation() -> Iterator[str]:
    """The entries of the navigation, in TOML: the index, then the sections."""

    def entry(page: Path) -> str:
        return f"{{ {json.dumps(title(page), ensure_ascii=False)} = {json.dumps(str(place(page)))} }}"

    yield entry(DOCS / "index.md")
    for folder, name in SECTIONS.items():
        found = sorted((DOCS / folder).glob("*.md"), key=lambda page: (page.name != "index.md", page.name))
        if found := [page for page in found if page != DOCS / "index.md"]:
            yield f"{{ {json.dumps(name)} = [{', '.join(map(entry, found))}] }}"


def collect() -> None:
    """Write pages, figures and the configuration to the site's source folder."""
    shutil.rmtree(OUT, ignore_errors=True)
    figures = [file for suffix in _FIGURES for file in DOCS.rglob(f"*{suffix}")]
    for file in (*pages(), *figures):
        target = OUT / "pages" / place(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            target.write_text(with_links_of_site(file, file.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            shutil.copyfile(file, target)
    design = (DOCS / "zensical.toml").read_text(encoding="utf-8")
    entries = "".join(f"  {entry},\n" for entry in navigation())
    (OUT / "zensical.toml").write_text(design.replace("[project]\n", f"[project]\nnav = [\n{entries}]\n", 1))


if __name__ == "__main__":
    collect()
    zensical = (sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(OUT / "zensical.toml"))
    sys.exit(subprocess.run(zensical, check=False, cwd=OUT, env={**os.environ, "NO_COLOR": "1"}).returncode)
