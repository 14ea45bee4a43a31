"""`trivet train`."""

from __future__ import annotations

from pathlib import Path

import click

from retrieval.cli.options import example, html_option, json_option, out_folder
from retrieval.cli.output import print_json, progress
from retrieval.installation import models_dir

_LIBRARIES = ("jinja2", "matplotlib", "sklearn", "scipy", "onnx")
"""Optional libraries, which the extra `train` installs."""


@click.command(
    epilog=example(
        "trivet train queries.jsonl --out my-model --html my-model/report.html",
        "where a line of queries.jsonl is",
        '{"text": "any ideas for a birthday present?", "intent": "preference"}',
    )
)
@click.argument("queries", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", required=True, type=out_folder, help="Write the model there.")
@click.option("--base/--no-base", default=True, help="Also train on Trivet's own queries.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=20251121)
@html_option
@json_option
def command(queries: Path, out: Path, base: bool, seed: int, html: Path | None, as_json: bool) -> None:
    """Train an intent classifier on labelled QUERIES, one {"text", "intent"} per line.

    Every intent (fact_lookup, relationship, preference, open_ended) needs at least five. The folder gets intent.onnx,
    its card intent.md, calibration.svg, confusion.svg and SHA256SUMS. The same seed on the same machine gives the
    same bytes. Beside Trivet's own queries, each of the given ones has more weight.
    """
    try:
        from classifier.inference import IntentClassifier
        from classifier.training.custom import BadQueries, read_labelled, train_custom
        from classifier.training.embedder import bundled_embedder, remembering
        from classifier.training.fit import FOLDS
        from retrieval.reporting.training_page import write_charts
    except ModuleNotFoundError as exc:
        library = (exc.name or "").partition(".")[0]
        if library not in _LIBRARIES:
            raise
        raise click.UsageError(f"training needs {library}, which is missing: pip install 'trivet[train]'") from exc
    try:
        given = read_labelled(queries)
    except BadQueries as exc:
        raise click.UsageError(str(exc)) from exc
    embed, shipped = remembering(bundled_embedder(models_dir())), IntentClassifier(models_dir() / "intent.onnx")
    with progress("training", FOLDS + 1) as advance:
        trained = train_custom(given, out, embed, shipped=shipped, base=base, seed=seed, advance=advance)
    write_charts(out, trained, html)
    if as_json:
        print_json(trained)
        return
    figures = trained.with_embedding
    click.echo(f"{out / 'intent.onnx'}: sha256 {trained.sha256}")
    click.echo(f"  {trained.queries} given queries, {trained.base} of Trivet's")
    click.echo(f"  {trained.folds} folds: macro-F1 {figures.macro_f1:.3f}, calibration error {figures.ece:.3f}")
    before = trained.shipped
    click.echo(f"  Trivet's own classifier: macro-F1 {before.macro_f1:.3f}, calibration error {before.ece:.3f}")
