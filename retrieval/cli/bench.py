"""`trivet bench`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrieval.cli.options import example, in_folder, json_option, out_folder
from retrieval.cli.output import console, print_json, progress, say
from retrieval.errors import InvalidInput
from retrieval.evaluation.files import write_json
from retrieval.evaluation.folder import read_folder

if TYPE_CHECKING:
    from benchmarks.speed.figures import Benchmark

_CHECKOUT = Path(__file__).resolve().parents[2]
_VERDICTS = {True: "met", False: "NOT MET", None: ""}


@click.command(
    epilog=example(
        "trivet bench --sizes 10k,100k --data-dir bench-data --out bench",
        "trivet bench --sizes 100k --peers all --quality data/locomo --quality data/hotpotqa --out bench",
    )
)
@click.option("--sizes", default="1k,10k,100k", help="Sizes of the large namespaces.")
@click.option("--small", type=click.IntRange(0), default=200, help="Number of small namespaces around them.")
@click.option("--queries", type=click.IntRange(20), default=200, help="Searches per kind.")
@click.option("--seconds", type=click.FloatRange(0.1), default=8.0, help="Duration for each number of clients.")
@click.option("--ingest", type=click.IntRange(0), default=6_000, help="Memories written over HTTP.")
@click.option(
    "--mixed",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SECONDS",
    help="Duration of mixed requests by 64 clients on the largest namespace.",
)
@click.option("--workers", type=click.IntRange(1, 64), default=1, help="Also measure this many server processes.")
@click.option("--peers", default="all", metavar="NAMES", help="pgvector,lancedb,txtai or none.")
@click.option("--peers-at", default="10k,100k", metavar="SIZES", help="Sizes at which peers are measured.")
@click.option("--quality", multiple=True, type=in_folder, help="Also judge the rankings on this evaluation folder.")
@click.option("--limit", type=click.IntRange(1), default=200, help="Queries per folder.")
@click.option("--seed", type=click.IntRange(0), default=7, help="Seed of the texts and the queries.")
@click.option("--data-dir", type=out_folder, help="Keep the data there and reuse it.  [default: a temporary folder]")
@click.option("--out", type=out_folder, help="Write JSON, a report as HTML and Markdown, and plots there.")
@json_option
def command(quality: tuple[Path, ...], data_dir: Path | None, out: Path | None, as_json: bool, **options: Any) -> None:
    """Measure speed on namespaces of several sizes, and peers on the same data.

    Everything runs in a separate embedded database. Memories are generated from the seed and written
    like any client's, except that their embeddings are precomputed. Searches go over HTTP to a real
    server. Peers need their own libraries (pip install 'trivet[bench]'); missing ones are left out.
    The benchmark is part of a checkout of Trivet, not of the installed package.
    """
    if not (_CHECKOUT / "benchmarks" / "speed").is_dir():
        raise click.UsageError("trivet bench needs a checkout of Trivet: benchmarks/speed is not part of the wheel")
    if str(_CHECKOUT) not in sys.path:
        sys.path.insert(0, str(_CHECKOUT))
    from benchmarks.speed.page import as_html, as_markdown
    from benchmarks.speed.peers import parse_peers
    from benchmarks.speed.plan import BenchmarkPlan, parse_sizes
    from benchmarks.speed.report import charts, write_plots
    from benchmarks.speed.run import run
    from benchmarks.speed.targets import targets

    try:
        for name, parse in (("sizes", parse_sizes), ("peers", parse_peers), ("peers_at", parse_sizes)):
            options[name] = parse(options[name])
    except InvalidInput as exc:
        raise click.UsageError(str(exc)) from exc
    folders = [read_folder(path) for path in quality]
    drawn = find_spec("matplotlib") is not None
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        if not drawn:
            click.echo("no plots: they are drawn with matplotlib (pip install 'trivet[bench]')", err=True)

    def keep(found: Benchmark) -> None:
        if out is not None:
            write_json(out / "benchmark.json", found)
            plots = charts(found) if drawn else {}
            (out / "benchmark.md").write_text(as_markdown(found, write_plots(out, plots)), encoding="utf-8")
            (out / "benchmark.html").write_text(as_html(found, plots), encoding="utf-8")

    with _folder(data_dir) as folder:
        found = asyncio.run(run(folder, BenchmarkPlan(**options), folders, progress, keep))
    if as_json:
        print_json(found)
        return
    for each in targets(found):
        say(console(), f"{_VERDICTS[each.met]:8}{each.what}: {each.measured} (asked: {each.asked})")


@contextmanager
def _folder(chosen: Path | None) -> Iterator[Path]:
    """The folder for the data: the chosen one, or one for this run that the database's user can enter."""
    if chosen is not None:
        yield chosen.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="trivet-bench-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "data"
