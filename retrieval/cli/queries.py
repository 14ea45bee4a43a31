"""`trivet queries`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from retrieval.cli.engine import with_engine
from retrieval.cli.export import replacing
from retrieval.cli.options import common_options, example, namespace_option, with_folder
from retrieval.cli.output import console, in_a_line, print_json, say
from retrieval.engine import Trivet
from retrieval.journal.service import relevant_of
from retrieval.plurals import counted
from retrieval.settings import Settings
from retrieval.types.journal import Feedback, LoggedQuery, asked_at

PAGE = 1_000
"""Entries read at once."""

UNKNOWN_TYPE = "unknown"
"""The type of an exported query without an intent."""


@click.command(epilog=example("trivet queries -n alice", "trivet queries -n alice --export evaluation/queries.jsonl"))
@namespace_option
@click.option(
    "--export",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=with_folder,
    help="Write them as queries.jsonl of an evaluation folder, with what feedback marks as relevant.",
)
@click.option("--redact", "containing", metavar="TEXT", help="Remove text and filters from entries that contain TEXT.")
@click.option("--delete", "deleting", is_flag=True, help="Delete them, after the export if there is one.")
@common_options
def command(
    namespace: str, file: Path | None, containing: str | None, deleting: bool, settings: Settings, as_json: bool
) -> None:
    """List the logged searches of a namespace, oldest first.

    Searches are logged where the namespace's settings have `query_log`. Entries whose text was withheld are left
    out of an export.
    """
    if containing is not None and (file is not None or deleting):
        raise click.UsageError("--redact goes neither with --export nor with --delete.")

    async def act(engine: Trivet) -> dict[str, int]:
        done: dict[str, int] = {}
        if containing is not None:
            done["redacted"] = await engine.journal.redact_queries(namespace, containing)
        if file is not None:
            done["exported"] = await _export(engine, namespace, file)
        if deleting:
            done["deleted"] = await engine.journal.delete_queries(namespace)
        return done

    if containing is None and file is None and not deleting:
        _print(with_engine(settings, lambda engine: _all(engine, namespace)), as_json=as_json)
        return
    done = with_engine(settings, act)
    to_stdout = file == Path("-")
    if as_json and not to_stdout:
        print_json(done)
    else:
        click.echo(", ".join(f"{number} {what}" for what, number in done.items()), err=to_stdout)


async def _all(engine: Trivet, namespace: str) -> list[LoggedQuery]:
    """Every entry, oldest first."""
    found: list[LoggedQuery] = []
    cursor: str | None = None
    while True:
        page = await engine.journal.list_queries(namespace, cursor=cursor, limit=PAGE)
        found += page.queries
        cursor = page.next_cursor
        if cursor is None:
            return found


async def _export(engine: Trivet, namespace: str, file: Path) -> int:
    """Write the entries that have a text; returns how many."""
    judged = {each.search_id: each for each in await engine.journal.judged_searches(namespace)}
    rows = list(_rows(namespace, await _all(engine, namespace), judged))
    with replacing(file) as written:
        written.write(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return len(rows)


def _rows(
    namespace: str, entries: Sequence[LoggedQuery], judged: Mapping[str | None, Feedback]
) -> Iterator[dict[str, Any]]:
    """The entries as rows of an evaluation folder, with what replaying them needs.

    An intent that feedback states is a label. The classifier's own is only a type: as a label it would always be right.
    """
    for entry in entries:
        if entry.query is None or entry.filters is None:  # withheld
            continue
        feedback = judged.get(entry.id)
        stated = feedback.intent if feedback else None
        yield {
            "id": entry.id,
            "namespace": namespace,
            "text": entry.query,
            "type": stated or entry.intent or UNKNOWN_TYPE,
            "relevant": relevant_of(feedback) if feedback else (),
            "filters": entry.filters,
            "as_of": entry.as_of,
            "timestamp": asked_at(entry),
            "metadata": {"intent": stated},
        }


def _print(entries: Sequence[LoggedQuery], *, as_json: bool) -> None:
    if as_json:
        print_json({"queries": entries})
        return
    to = console()
    for entry in entries:
        say(to, in_a_line(entry.query if entry.query is not None else f"({entry.query_chars} characters withheld)"))
        found = "" if entry.results is None else f"  {counted(len(entry.results), 'result', 'results')}"
        about = f"{entry.at:%Y-%m-%d %H:%M:%S}  {entry.id}  {entry.mode}  {entry.profile}{found}"
        say(to, f"   {about}  {entry.total_ms:.1f} ms", "dim")
    if not entries:
        say(to, "nothing is logged")
