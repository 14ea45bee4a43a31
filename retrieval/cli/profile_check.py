"""`trivet profile check`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.options import common_options, example, in_folder
from retrieval.cli.output import console, print_json, progress, say
from retrieval.evaluation.folder import read_folders
from retrieval.plurals import counted
from retrieval.profiles.profile import parse_label
from retrieval.reporting.table import aligned
from retrieval.reporting.tuning import gate_lines, gate_table
from retrieval.settings import Settings
from retrieval.tuning.checking import check
from retrieval.tuning.fitting import find_baselines


@click.command(name="check", epilog=example("trivet profile check support@2 data/support"))
@click.argument("label", metavar="NAME@VERSION")
@click.argument("folders", nargs=-1, required=True, type=in_folder)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the sample and the tests.")
@click.option("--limit", type=click.IntRange(1), help="At most this many queries per folder, drawn at random.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=2, help="Queries in parallel.")
@click.option("--keep/--fresh", default=True, help="Use what is stored, or store it again.")
@common_options
def command(
    label: str,
    folders: tuple[Path, ...],
    seed: int,
    limit: int | None,
    concurrency: int,
    keep: bool,
    settings: Settings,
    as_json: bool,
) -> None:
    """Let the gate judge a stored version's answers to the queries of evaluation FOLDERS.

    Nothing is fitted, so every query counts as unseen: do not use folders that the version was tuned
    on. The report replaces the version's previous one. Exit status 1 if the gate refuses.
    """
    name, version = parse_label(label)
    if version is None:
        raise click.UsageError(f"which version of {name}? `trivet profile show {name}` lists them")
    read = read_folders(folders)
    baselines = asyncio.run(find_baselines(settings, name, base=label))
    plan = baselines.collection_plan(settings, None, concurrency, progress)
    report = asyncio.run(check(plan, read, baselines, limit=limit, seed=seed, fresh=not keep))
    base = baselines.base
    with_engine(settings, lambda engine: engine.profiles.attach_report(base.name, base.version, report))
    if as_json:
        print_json(report)
    else:
        if skipped := sum(folder.skipped for folder in read):
            say(console(), f"{counted(skipped, 'query', 'queries')} without relevant memories skipped")
        for line in (aligned(gate_table(report)), "", *gate_lines(report)):
            say(console(), line)
    if not report.passed:
        raise click.exceptions.Exit(1)
