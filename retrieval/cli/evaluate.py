"""`trivet eval`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.options import example, json_option, settings_options
from retrieval.cli.output import console, print_json, progress
from retrieval.engine import Trivet
from retrieval.errors import InvalidInput
from retrieval.evaluation import summary as figures
from retrieval.evaluation.files import write_files
from retrieval.evaluation.folder import EvaluationFolder, Query, read_folder
from retrieval.evaluation.report import print_report
from retrieval.evaluation.runner import Answer, check_complete, ingest, run_system
from retrieval.evaluation.systems import System, parse_modes, weighted
from retrieval.settings import Settings
from retrieval.text.languages import resolve_language
from retrieval.types import NamespaceSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How folders are evaluated. `limit` queries are drawn by `seed`; None runs all."""

    systems: Sequence[System]
    limit: int | None
    seed: int
    top_k: int
    concurrency: int
    fresh: bool
    language: str


@click.command(epilog=example("trivet eval data/locomo --modes bm25,adaptive --out results"))
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write TREC files, CSV and JSON there.")
@click.option("--modes", default="vector,bm25,graph,hybrid,adaptive", show_default=True, help="Which, comma-separated.")
@click.option("--weights", "weights", multiple=True, metavar="V,B,G", help="Also run with these fixed weights.")
@click.option("--limit", type=click.IntRange(1), help="Only so many queries, drawn at random.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sample and the intervals.")
@click.option("--top-k", type=click.IntRange(10, 200), default=10, show_default=True, help="Results per query.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=2, show_default=True, help="Queries at a time.")
@click.option("--language", default=NamespaceSettings().language, show_default=True, help="Of the analysis.")
@click.option("--keep/--fresh", default=True, show_default=True, help="Use what is stored, or store it anew.")
@settings_options
@json_option
def command(
    folders: tuple[Path, ...],
    out: Path | None,
    modes: str,
    weights: tuple[str, ...],
    limit: int | None,
    seed: int,
    top_k: int,
    concurrency: int,
    language: str,
    keep: bool,
    settings: Settings,
    as_json: bool,
) -> None:
    """Measure the rankings on evaluation FOLDERS (corpus.jsonl and queries.jsonl).

    Rows go into namespaces of their own, "eval:NAME:NAMESPACE": in the database that is named, or
    in an embedded one of its own in the folder "eval" of the data folder. They stay there, so that
    the next run only asks. Queries without relevant memories are left out. Where deduplication
    merged a relevant memory into another, it counts as found at the other's rank.
    """
    systems = _systems(modes, weights)
    plan = Plan(
        systems=systems,
        limit=limit,
        seed=seed,
        top_k=top_k,
        concurrency=concurrency,
        fresh=not keep,
        language=resolve_language(language),
    )
    read = [read_folder(folder) for folder in folders]
    for folder in read:
        if not folder.judged:
            raise InvalidInput(f"{folder.path}: no query has anything relevant")
    if len({folder.name for folder in read}) < len(read):
        raise InvalidInput("two of the folders have the same name")
    if settings.uses_embedded:
        settings = replace(settings, data_dir=settings.data_dir / "eval")
    summaries = []

    async def evaluate(engine: Trivet) -> None:
        for folder in read:
            found, answers = await _evaluate(engine, folder, plan)
            summaries.append(found)
            if out is not None:
                write_files(out if len(read) == 1 else out / folder.name, found, answers)
            if not as_json:
                print_report(found, console())

    with_engine(settings, evaluate)
    if as_json:
        print_json(summaries)


def _systems(modes: str, weights: Sequence[str]) -> list[System]:
    """What is compared.

    Raises:
        UsageError: a mode that does not exist, or weights that are not three numbers.
    """
    try:
        return [*(parse_modes(modes) if modes else ()), *weighted(weights)]
    except InvalidInput as exc:
        raise click.UsageError(str(exc)) from exc


async def _evaluate(
    engine: Trivet, folder: EvaluationFolder, plan: Plan
) -> tuple[figures.Summary, dict[str, list[Answer]]]:
    """Store the folder, run its queries by every system, and sum up."""

    def name_of(namespace: str) -> str:
        return f"eval:{folder.name}:{namespace}"

    queries = _sample(folder.judged, plan)
    with progress(f"{folder.name}: storing", len(folder.corpus)) as advance:
        stored = await ingest(engine, folder, name_of, language=plan.language, fresh=plan.fresh, progress=advance)
    await check_complete(engine, folder, name_of, stored)
    answers: dict[str, list[Answer]] = {}
    for system in plan.systems:
        with progress(f"{folder.name}: {system.name}", len(queries)) as advance:
            answers[system.name] = await run_system(
                engine, queries, system, name_of, top_k=plan.top_k, concurrency=plan.concurrency, progress=advance
            )
    judged = "adaptive" if "adaptive" in answers else plan.systems[-1].name
    found = figures.Summary(
        dataset=folder.name,
        language=plan.language,
        queries=len(queries),
        skipped=len(folder.queries) - len(folder.judged),
        sampled=len(queries) < len(folder.judged),
        namespaces=len({query.namespace for query in queries}),
        top_k=plan.top_k,
        seed=plan.seed,
        ingestion=stored,
        cells=figures.cells(answers, top_k=plan.top_k, seed=plan.seed),
        running=figures.running(answers),
        versus=figures.versus(answers, judged, top_k=plan.top_k, seed=plan.seed),
        models=figures.model_checksums(),
    )
    return found, answers


def _sample(queries: Sequence[Query], plan: Plan) -> Sequence[Query]:
    """At most `limit` queries, in the folder's order."""
    if plan.limit is None or plan.limit >= len(queries):
        return queries
    chosen = sorted(random.Random(plan.seed).sample(range(len(queries)), plan.limit))
    return [queries[index] for index in chosen]
