"""`trivet forget`."""

from __future__ import annotations

import click

from retrieval.cli.engine import with_engine
from retrieval.cli.options import common_options, example, namespace_option
from retrieval.cli.output import confirm, console, in_a_line, print_json, printable, say
from retrieval.engine import Trivet
from retrieval.settings import Settings
from retrieval.types.memory import ForgetReceipt, ForgetRequest


@click.command(
    epilog=example("trivet forget -n alice --speaker Lucía --dry-run", "trivet forget -n alice --entity Acme")
)
@click.option("--speaker", help="Delete what this speaker said; what others said about them is only shown.")
@click.option("--entity", help="Delete everything that mentions it, by name or alias.")
@click.option("--dry-run", is_flag=True, help="Delete nothing; show what would be deleted.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before anything is deleted.")
@namespace_option
@common_options
def command(
    speaker: str | None,
    entity: str | None,
    dry_run: bool,
    yes: bool,
    namespace: str,
    settings: Settings,
    as_json: bool,
) -> None:
    """Forget a speaker or an entity. This cannot be undone."""
    if (speaker is None) == (entity is None):
        raise click.UsageError("Give either --speaker or --entity.")
    if not dry_run and not yes:
        what = f"what {speaker!r} said" if speaker is not None else f"all that mentions {entity!r}"
        confirm(f"Delete {what} in {namespace!r}?")

    async def forget(engine: Trivet) -> ForgetReceipt:
        request = ForgetRequest(speaker=speaker, entity=entity, dry_run=dry_run)
        return await engine.lifecycle.forget(namespace, request)

    receipt = with_engine(settings, forget)
    if as_json:
        print_json(receipt)
        return
    to = console()
    say(to, f"{len(receipt.deleted)} {'would be deleted' if dry_run else 'deleted'}")
    if dry_run and receipt.deleted:
        say(to, "  " + in_a_line(" ".join(receipt.deleted)), "dim")
    if receipt.mentioned_by:
        say(to, f"{len(receipt.mentioned_by)} of others mention {printable(speaker or '')} and are still there:")
        say(to, "  " + in_a_line(" ".join(receipt.mentioned_by)), "dim")
