"""Requests from options, checked by the same types as HTTP requests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import click
import msgspec

from classifier.intents import Intent
from retrieval.cli.options import Decorator, checked, gathered, together
from retrieval.errors import InvalidInput
from retrieval.ranking.weighting import parse_weights
from retrieval.types.memory import Kind
from retrieval.types.search import MAX_HOPS, Filters, Mode
from retrieval.validation import check_storable, converted, decode

T = TypeVar("T")

KINDS = get_args(Kind)

_object_decoder = msgspec.json.Decoder(dict[str, Any])


def convert(fields: Mapping[str, Any], kind: type[T]) -> T:
    """A struct of these fields; None counts as not given.

    Raises:
        UsageError: names the field.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        check_storable(given)
        return converted(given, kind)
    except InvalidInput as exc:
        raise click.UsageError(exc.located) from exc


def _metadata(_context: click.Context, _parameter: click.Parameter, text: str | None) -> dict[str, Any] | None:
    """The JSON object of an option's value; raises UsageError for anything else."""
    if text is None:
        return None
    try:
        return decode(os.fsencode(text), _object_decoder)
    except InvalidInput as exc:
        raise click.UsageError(InvalidInput(str(exc), loc=("metadata", *exc.loc)).located) from exc


def metadata_option(help: str) -> Decorator:
    """`--metadata`; the command gets the object."""
    return click.option("--metadata", callback=_metadata, help=help)


def _filters(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of filters that are given."""
    return {"filters": {name: given for name in Filters.__struct_fields__ if (given := values.pop(name))}}


filter_options = gathered(
    [
        click.option("--tag", "tags_all", multiple=True, help="Only with this tag; if repeated, with all of them."),
        click.option("--any-tag", "tags_any", multiple=True, help="Only with one of these tags."),
        click.option("--kind", multiple=True, type=click.Choice(KINDS), help="Only of this kind."),
        click.option("--session", "session_id", multiple=True, help="Only of this session."),
        click.option("--document", "document_id", multiple=True, help="Only of this document."),
        click.option("--speaker", multiple=True, help="Only by this speaker."),
        click.option("--after", "created_after", help="Only later than this, RFC 3339 with a zone."),
        click.option("--before", "created_before", help="Only earlier than this."),
        metadata_option("Only where the metadata contains this JSON object."),
    ],
    _filters,
)
"""The options of filters; the command gets `filters`, the given fields of `Filters`."""


search_options = together(
    click.option(
        "-k",
        "--top-k",
        type=click.IntRange(1, 200),
        help="Maximum number of results.  [default: 10, in `trivet context` 200]",
    ),
    click.option("--mode", type=click.Choice(list(map(str, Mode))), help="How legs combine.  [default: adaptive]"),
    click.option(
        "--weights", callback=checked(parse_weights), metavar="V,B,G", help="Weights of vector, BM25 and graph."
    ),
    click.option("--intent", type=click.Choice(list(map(str, Intent))), help="Use this intent instead of classifying."),
    click.option("--profile", help="Fusion profile: name, or name@version."),
    click.option("--rrf-k", type=click.IntRange(1, 1_000), help="Smoothing constant of the fusion."),
    filter_options,
    click.option("--as-of", help="Search the namespace as of that time."),
    click.option("--query-timestamp", help='When the query is asked, the reference for "last week".'),
    click.option(
        "--source-cap", type=click.IntRange(1, 200), help="Maximum number of memories per session or document."
    ),
    click.option("--diversity", type=click.FloatRange(0, 1), help="0: by relevance alone; 1: as varied as possible."),
    click.option("--include-superseded", is_flag=True, help="Include superseded memories."),
    click.option("--min-similarity", type=click.FloatRange(-1, 1), help="Minimum cosine similarity."),
    click.option("--min-relevance", type=click.FloatRange(0, 1), help="Minimum relevance."),
    click.option("--ef-search", type=click.IntRange(1, 200), help="Breadth of the vector index's search."),
    click.option("--max-hops", type=click.IntRange(0, MAX_HOPS), help="How far the graph leg walks."),
    click.option("--rescore/--no-rescore", default=None, help="Reorder the results with the rescorer, or not."),
)
"""The options that search and context share; the command gets fields of the request."""
