"""`trivet tune`."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import click

from retrieval.cli.options import checked, common_options, example, html_option, in_folder, out_folder, with_folder
from retrieval.cli.output import console, print_json, progress, say
from retrieval.evaluation.files import write_json
from retrieval.evaluation.folder import read_folders
from retrieval.profiles.profile import DEFAULT, check_name
from retrieval.reporting.table import aligned
from retrieval.reporting.tuning import gate_lines, group_tables, headline, outcome, recipe_table, score_table
from retrieval.settings import Settings
from retrieval.tuning.collection import collect_feedback, collect_folders
from retrieval.tuning.fitting import TuningPlan, find_baselines, store, tune
from retrieval.tuning.summary import Tuning


@click.command(
    epilog=example(
        "trivet tune data/support --profile support --html tuning.html",
        "trivet tune --from-feedback -n support --profile support --from support",
    )
)
@click.argument("folders", nargs=-1, type=in_folder)
@click.option("--from-feedback", is_flag=True, help="Learn from a namespace's feedback instead of folders.")
@click.option("-n", "--namespace", help="The namespace whose feedback it is.")
@click.option(
    "--profile", "name", required=True, callback=checked(check_name), metavar="NAME", help="The tuned profile's name."
)
@click.option("--from", "base", default=DEFAULT.name, metavar="NAME[@V]", help="The profile to start from.")
@click.option("--folds", type=click.IntRange(2, 20), default=5, help="Folds, each held out in turn.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the sample, the folds and the tests.")
@click.option("--limit", type=click.IntRange(1), help="At most this many queries per folder, drawn at random.")
@click.option(
    "--position-bias",
    type=click.FloatRange(0, 4),
    default=1.0,
    help="Users look at a rank with probability (1/rank)^ETA; 0 takes clicks as they are.",
)
@click.option("--work", type=out_folder, help="Folder to keep what the legs found.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=2, help="Queries in parallel.")
@click.option("--keep/--fresh", default=True, help="Use what is stored, or store and query again.")
@html_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=with_folder,
    help="Write all figures there.",
)
@click.option("--promote", is_flag=True, help="Make the profile live if it passes the gate.")
@click.option("--dry-run", is_flag=True, help="Store no profile.")
@common_options
def command(
    folders: tuple[Path, ...],
    from_feedback: bool,
    namespace: str | None,
    name: str,
    base: str,
    folds: int,
    seed: int,
    limit: int | None,
    position_bias: float,
    work: Path | None,
    concurrency: int,
    keep: bool,
    html: Path | None,
    out: Path | None,
    promote: bool,
    dry_run: bool,
    settings: Settings,
    as_json: bool,
) -> None:
    """Fit a profile to the labelled queries of evaluation FOLDERS, or to collected feedback.

    Searches leg weights, rrf_k and fan-out for every intent, shrink and trust for all of them. The other
    parameters stay as in the starting profile, including bm25_k1 and bm25_b, which change what BM25
    finds. Each query runs once; what the legs found is kept in files and replayed, and an interrupted
    run continues where it stopped. Rows of the folders are stored where "trivet eval" stores them, and
    stay. The profile goes into the serving database with the gate's report: it can only be promoted if
    it is not worse, on queries that it was not fitted to, than the fixed recipe of the live version.

    Feedback must cover 50 searches, 30 of them with something relevant, rated above 0 or clicked. A
    click at rank r counts min(10, r^ETA).
    """
    started = time.perf_counter()
    if from_feedback == bool(folders):
        raise click.UsageError("name evaluation folders, or --from-feedback")
    if from_feedback != (namespace is not None):
        raise click.UsageError("--from-feedback and --namespace go together")
    read = read_folders(folders)
    baselines = asyncio.run(find_baselines(settings, name, base=base))
    plan = baselines.collection_plan(settings, work, concurrency, progress)
    if namespace is not None:
        source = f"feedback of namespace {namespace}"
        runs, skipped = asyncio.run(collect_feedback(plan, namespace, position_bias=position_bias))
    else:
        source = ", ".join(folder.name for folder in read)
        runs = asyncio.run(collect_folders(plan, read, limit=limit, seed=seed, fresh=not keep))
        skipped = sum(folder.skipped for folder in read)
    tuning_plan = TuningPlan(name=name, folds=folds, seed=seed, source=source, skipped=skipped, watch=progress)
    tuning = tune(runs, baselines, tuning_plan, started=started)
    if tuning.improved and not dry_run:
        tuning = asyncio.run(store(settings, tuning, promote=promote))
    if out is not None:
        write_json(out, tuning)
    if html is not None:
        from retrieval.reporting.tuning_page import page

        html.write_text(page(tuning), encoding="utf-8")
    if as_json:
        print_json(tuning)
    else:
        _tell(tuning, promoted=promote and tuning.label is not None and tuning.gate.passed)


def _tell(tuning: Tuning, *, promoted: bool) -> None:
    lines = [headline(tuning), outcome(tuning)]
    tables = [score_table(tuning), *group_tables(tuning)]
    if tuning.improved:
        tables.insert(0, recipe_table(tuning.profile, tuning.label or "found"))
    lines += [aligned(table) for table in tables]
    if tuning.improved:
        lines += ["", *gate_lines(tuning.gate)]
    if tuning.label is not None:
        lines += ["", _next_step(tuning, promoted=promoted)]
    for line in lines:
        say(console(), line)


def _next_step(tuning: Tuning, *, promoted: bool) -> str:
    if promoted:
        return f"{tuning.label} is live"
    if tuning.gate.passed:
        return f"next: trivet profile promote {tuning.label}"
    return f"next: label more queries, or see what the gate says of others: trivet profile check {tuning.label} FOLDER"
