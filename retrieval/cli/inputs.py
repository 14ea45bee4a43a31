"""Requests from options, checked by the same types as those that come over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import click
import msgspec

from classifier.intents import Intent
from retrieval.cli.options import checked, gathered
from retrieval.errors import InvalidInput
from retrieval.ranking.weighting import parse_weights
from retrieval.types.memory import Kind
from retrieval.types.search import MAX_HOPS, Mode
from retrieval.validation import check_storable, converted

T = TypeVar("T")

KINDS = get_args(Kind)


def convert(fields: Mapping[str, Any], kind: type[T]) -> T:
    """A struct of these fields; those that are None count as not given.

    Raises:
        UsageError: names the field.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        check_storable(given)
        return converted(given, kind)
    except InvalidInput as exc:
        raise click.UsageError(exc.located) from exc


def parse_metadata(text: str | None) -> dict[str, Any] | None:
    """The JSON object of an option's value.

    Raises:
        UsageError: it is something else.
    """
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError) as exc:
        raise click.UsageError(f"metadata: no JSON object: {exc}") from exc


_FILTERS = {
    "tag": "tags_all",
    "any_tag": "tags_any",
    "only_kind": "kind",
    "session": "session_id",
    "document": "document_id",
    "only_speaker": "speaker",
    "after": "created_after",
    "before": "created_before",
}
"""Fields of the filters by the options' names."""

_PLAIN = (
    *("top_k", "mode", "weights", "intent", "profile", "rrf_k", "as_of", "include_superseded"),
    *("min_similarity", "min_relevance", "ef_search", "max_hops", "rescore"),
    *("query_timestamp", "source_cap", "diversity"),
)
"""Options that are called as the request's fields are."""


_FILTER_OPTIONS = [
    click.option("--tag", multiple=True, help="Only with this tag (all of several)."),
    click.option("--any-tag", multiple=True, help="Only with one of these tags."),
    click.option("--kind", "only_kind", multiple=True, type=click.Choice(KINDS), help="Only of this kind."),
    click.option("--session", multiple=True, help="Only of this session."),
    click.option("--document", multiple=True, help="Only of this document."),
    click.option("--speaker", "only_speaker", multiple=True, help="Only by this speaker."),
    click.option("--after", help="Only later than this, RFC 3339 with a zone."),
    click.option("--before", help="Only earlier than this."),
    click.option("--metadata", "having", help="Only where the metadata contains this JSON object."),
]


def _filters(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of filters out of the options' values; those that are not given are left out."""
    filters = {field: values.pop(option) for option, field in _FILTERS.items()}
    filters["metadata"] = parse_metadata(values.pop("having"))
    return {name: list(value) if isinstance(value, tuple) else value for name, value in filters.items() if value}


def _search(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of a request out of the options' values."""
    filters = _filters(values)
    return {"fields": {**{name: values.pop(name) for name in _PLAIN}, "filters": filters}}


filter_options = gathered(_FILTER_OPTIONS, lambda values: {"filters": _filters(values)})
"""What chooses memories; the command gets `filters`, the fields of `Filters` that are given."""


search_options = gathered(
    [
        click.option("-k", "--top-k", type=click.IntRange(1, 200), help="Most results."),
        click.option("--mode", type=click.Choice(list(map(str, Mode))), help="How legs combine.  [default: adaptive]"),
        click.option("--weights", callback=checked(parse_weights), metavar="V,B,G", help="Instead of the mode's."),
        click.option("--intent", type=click.Choice(list(map(str, Intent))), help="Instead of the classifier's."),
        click.option("--profile", help="Fusion profile: name, or name@version."),
        click.option("--rrf-k", type=click.IntRange(1, 1_000), help="Smoothing constant of the fusion."),
        *_FILTER_OPTIONS,
        click.option("--as-of", help="As the namespace stood at that time."),
        click.option("--query-timestamp", help='When the query is asked, from which "last week" counts.'),
        click.option("--source-cap", type=click.IntRange(1, 200), help="Most memories of one session or document."),
        click.option("--diversity", type=click.FloatRange(0, 1), help="0: relevance alone; 1: unlike those before."),
        click.option("--include-superseded", is_flag=True, help="Also memories that others replaced."),
        click.option("--min-similarity", type=click.FloatRange(-1, 1), help="Least cosine similarity."),
        click.option("--min-relevance", type=click.FloatRange(0, 1), help="Least relevance."),
        click.option("--ef-search", type=click.IntRange(1, 200), help="Breadth of the vector index's search."),
        click.option("--max-hops", type=click.IntRange(0, MAX_HOPS), help="How far the graph leg goes."),
        click.option("--rescore/--no-rescore", default=None, help="The learned last step, on or off."),
    ],
    _search,
)
"""What search and context have in common; the command gets `fields` of the request."""
