"""A report as one HTML file that loads nothing: figures and charts in sections, in the page shell of `page.html`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from retrieval.reporting.table import Table

Fact = str | Sequence[str] | Mapping[str, str]
"""A text, several lines, or names with checksums."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A piece of a section; the fields that are set are shown, in this order.

    Rows of the system `judged` are highlighted in the tables, which are folded under the name `fold` if set.
    """

    text: str = ""
    soft: bool = False
    verdicts: Sequence[tuple[str, bool]] = ()
    svg: str = ""
    caption: str = ""
    narrow: bool = False
    tables: Sequence[Table] = ()
    judged: str = ""
    fold: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageSection:
    """A heading with its content; with an `anchor` it is linked from the top."""

    heading: str
    parts: Sequence[Part]
    anchor: str = ""


def render_page(title: str, lead: Sequence[Part], facts: Mapping[str, Fact], sections: Sequence[PageSection]) -> str:
    """The page as HTML: every text is escaped, charts are inserted unchanged."""
    templates = Environment(
        loader=PackageLoader(__package__, "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("page.html").render(title=title, lead=lead, facts=facts, sections=sections) + "\n"
