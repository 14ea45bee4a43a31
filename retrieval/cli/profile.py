"""`trivet profile`."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from retrieval.cli.engine import with_engine
from retrieval.cli.options import common_options, example, in_folder, input_file
from retrieval.cli.output import console, in_a_line, numbers, print_json, progress, say
from retrieval.engine import Trivet
from retrieval.evaluation.folder import read_folders
from retrieval.plurals import counted
from retrieval.profiles.profile import Profile, Recipe, parse_label
from retrieval.profiles.schema import (
    ModelsInput,
    ProfileInfo,
    ProfileInput,
    ProfileShadow,
    ProfileSummary,
    StoredVersion,
)
from retrieval.reporting.table import aligned
from retrieval.reporting.tuning import gate_lines, gate_table
from retrieval.settings import Settings
from retrieval.tuning.checking import check
from retrieval.tuning.fitting import find_baselines
from retrieval.validation import check_storable, decode


class ProfileGroup(click.Group):
    """The commands of this module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of use."""
        return list(self.commands)


@click.group(cls=ProfileGroup, epilog=example("trivet profile show default"))
def command() -> None:
    """Show and change the fusion profiles: their versions, which cannot be deleted, and which one is live."""


@command.command("list", epilog=example("trivet profile list"))
@common_options
def list_profiles(settings: Settings, as_json: bool) -> None:
    """List the profiles."""
    found: Sequence[ProfileSummary] = with_engine(settings, lambda engine: engine.profiles.list())
    if as_json:
        print_json({"profiles": found})
        return
    for each in found:
        beside = f", shadow {each.shadow.version} on {each.shadow.share:.0%}" if each.shadow else ""
        live = f"version {each.live} is live" if each.live else "none is live"
        click.echo(f"{each.name}: versions stored: {each.versions}, {live}{beside}")


@command.command(epilog=example("trivet profile show default", "trivet profile show default@3 --json"))
@click.argument("label", metavar="NAME[@VERSION]")
@common_options
def show(label: str, settings: Settings, as_json: bool) -> None:
    """Show a profile's parameters, its versions and how they went live."""
    name, version = parse_label(label)
    found = with_engine(settings, lambda engine: engine.profiles.describe(name, version))
    if as_json:
        print_json(found)
    else:
        _tell(found)


@command.command(
    epilog=example(
        "trivet profile put support support.json --note 'deeper lists for manuals'",
        "trivet profile put support --intent-model my-model/intent.onnx",
    )
)
@click.argument("name")
@click.argument("file", type=input_file, required=False)
@click.option(
    "--intent-model",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An intent.onnx from `trivet train`, to store in the database.",
)
@click.option("--note", default="", show_default=False, help="Why this version exists.")
@common_options
def put(
    name: str, file: BinaryIO | None, intent_model: Path | None, note: str, settings: Settings, as_json: bool
) -> None:
    """Write a new version of NAME, not live yet, from the JSON object of parameters in FILE ("-": standard input).

    Parameters left out come from the live version, or from `default` if none is live. Changes made in a version that
    never went live are not carried over.
    """
    if file is None and intent_model is None:
        raise click.UsageError("give a FILE of parameters, or --intent-model.")
    content = file.read().removeprefix(codecs.BOM_UTF8) if file else b"{}"
    given = decode(content, msgspec.json.Decoder(ProfileInput))
    check_storable(given)

    async def write(engine: Trivet) -> tuple[StoredVersion, bool]:
        wanted = given
        if intent_model is not None:
            models = wanted.models if isinstance(wanted.models, ModelsInput) else ModelsInput()
            stored = await engine.models.put_model("intent", intent_model)
            wanted = msgspec.structs.replace(wanted, models=msgspec.structs.replace(models, intent=stored))
        profile, is_new = await engine.profiles.write(name, wanted, note=note or given.note)
        return await engine.profiles.version(name, profile.version), is_new

    stored, is_new = with_engine(settings, write)
    if as_json:
        print_json(stored)
    else:
        click.echo(f"{stored.profile.label} {'written' if is_new else 'unchanged'}")


@command.command(epilog=example("trivet profile promote support", "trivet profile promote support@4"))
@click.argument("label", metavar="NAME[@VERSION]")
@common_options
def promote(label: str, settings: Settings, as_json: bool) -> None:
    """Make a version live, by default the newest; it must have passed the gate."""
    name, version = parse_label(label)
    _make_live(name, lambda engine: engine.profiles.promote(name, version), settings, as_json=as_json)


@command.command(epilog=example("trivet profile rollback support"))
@click.argument("name")
@common_options
def rollback(name: str, settings: Settings, as_json: bool) -> None:
    """Make the previously live version live again; twice goes back two promotions."""
    _make_live(name, lambda engine: engine.profiles.rollback(name), settings, as_json=as_json)


@command.command(epilog=example("trivet profile shadow support@5 --share 0.1", "trivet profile shadow support --off"))
@click.argument("label", metavar="NAME[@VERSION]")
@click.option("--share", type=click.FloatRange(0, 1, min_open=True), default=1.0, help="Share of queries.")
@click.option("--off", is_flag=True, help="Switch shadow mode off.")
@common_options
def shadow(label: str, share: float, off: bool, settings: Settings, as_json: bool) -> None:
    """Let a version answer in the background beside the live one; without a version, show which one does."""
    name, version = parse_label(label)
    if off and version is not None:
        raise click.UsageError("--off is for a name without a version.")

    async def act(engine: Trivet) -> ProfileShadow:
        if off:
            await engine.profiles.clear_shadow(name)
        elif version is not None:
            await engine.profiles.set_shadow(name, version, share)
        return await engine.shadow(name)

    found = with_engine(settings, act)
    if as_json:
        print_json(found)
    elif found.shadow is None:
        live = f"@{found.live}" if found.live else ", which has no live version"
        click.echo(f"nothing answers beside {name}{live}")
    else:
        click.echo(
            f"{name}@{found.shadow.version} answers {found.shadow.share:.0%} of the queries of {name}@{found.live}"
        )
        if found.compared is not None and found.compared.n:
            compared = counted(found.compared.n, "query", "queries")
            click.echo(
                f"{compared} so far: {found.compared.mean_overlap:.0%} of the memories in common, "
                f"the same first on {found.compared.same_first:.0%}"
            )


@command.command("check", epilog=example("trivet profile check support@2 data/support"))
@click.argument("label", metavar="NAME@VERSION")
@click.argument("folders", nargs=-1, required=True, type=in_folder)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the sample and the tests.")
@click.option("--limit", type=click.IntRange(1), help="At most this many queries per folder, drawn at random.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=2, help="Queries in parallel.")
@click.option("--keep/--fresh", default=True, help="Use what is stored, or store it again.")
@common_options
def check_version(
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


def _make_live(name: str, act: Callable[[Trivet], Awaitable[Profile]], settings: Settings, *, as_json: bool) -> None:
    """Make another version of a profile live, and print which it is."""

    async def change(engine: Trivet) -> ProfileInfo:
        await act(engine)
        return await engine.profiles.describe(name)

    found = with_engine(settings, change)
    if as_json:
        print_json(found)
    else:
        click.echo(f"{found.name}@{found.live} is live")


def _tell(found: ProfileInfo) -> None:
    if found.shown is not None:
        profile = found.shown.profile
        click.echo(f"{profile.label} {'live' if found.shown.live else 'not live'}, {found.shown.origin}")
        _tell_recipe("fixed", profile.fixed)
        for intent, recipe in profile.per_intent.items():
            _tell_recipe(intent.value, recipe)
    else:
        newest = found.versions[0].version
        click.echo(f"no version of {found.name} is live; to see the newest: trivet profile show {found.name}@{newest}")
    for each in found.versions:
        gate = {None: "not measured", True: "passed", False: "refused"}[each.gate]
        note = f"  {in_a_line(each.note)}" if each.note else ""
        live = ", live" if each.live else ""
        click.echo(f"  {each.version}: {each.origin}, gate {gate}{live}, {each.created_at:%Y-%m-%d %H:%M}{note}")
    for promotion in found.history:
        click.echo(f"  {promotion.at:%Y-%m-%d %H:%M} {promotion.by} of {promotion.version}")


def _tell_recipe(name: str, recipe: Recipe) -> None:
    weights = {leg.value: weight for leg, weight in recipe.weights.items()}
    click.echo(f"  {name}: {numbers(weights)}, rrf_k {recipe.rrf_k:g}, fan-out {recipe.fan_out}")
