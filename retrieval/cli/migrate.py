"""`trivet migrate`."""

from __future__ import annotations

import asyncio

import click

from retrieval.cli.options import common_options, example
from retrieval.cli.output import print_json
from retrieval.settings import Settings
from retrieval.store.embedded import instance
from retrieval.store.migrate import bundled, migrate, pending


@click.command(epilog=example("trivet migrate --database-url postgresql://trivet@db.example/trivet"))
@click.option("--check", is_flag=True, help="Change nothing; exit status 1 if migrations are pending.")
@common_options
def command(check: bool, settings: Settings, as_json: bool) -> None:
    """Update the database's schema to this version. Starting the server does the same."""
    versions = asyncio.run(_migrate(settings, check=check))
    if as_json:
        print_json({"outstanding" if check else "applied": versions})
    elif not versions:
        click.echo("the schema is up to date")
    else:
        click.echo(f"{'outstanding' if check else 'applied'}: {', '.join(f'{version:04d}' for version in versions)}")
    if check and versions:
        raise click.exceptions.Exit(1)


async def _migrate(settings: Settings, *, check: bool) -> list[int]:
    """The versions applied, or with `check` the pending ones."""
    act = pending if check else migrate
    if not settings.uses_embedded:
        return await act(settings.database_url)
    if check and not instance.is_made(settings.data_dir):
        return [migration.version for migration in bundled()]
    async with instance.running(settings.data_dir) as url:
        return await act(url)
