"""What the HTML reports have in common: one file that loads nothing, and figures in it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path


def document(title: str, body: Iterable[str]) -> str:
    """A whole page with the reports' style."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style}</style></head>",
            "<body>",
            *body,
            "</body></html>",
            "",
        ]
    )


def figure(svg: str, caption: str, *, narrow: bool = False) -> str:
    """A chart with its caption, which is HTML; `narrow` is half as wide."""
    kind = ' class="narrow"' if narrow else ""
    return f"<figure{kind}><figcaption>{caption}</figcaption>{svg}</figure>"
