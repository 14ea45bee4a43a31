"""`trivet keys`."""

from __future__ import annotations

import secrets

import click

from retrieval.api.tokens import TokenClaims, signed
from retrieval.cli.options import example, json_option
from retrieval.cli.output import print_json
from retrieval.settings import Settings, variable_of
from retrieval.store.namespaces import check_new_name

KEY_BYTES = 32
DAY_S = 86_400
MOST_DAYS = 36_525


@click.command(
    epilog=example(
        "trivet keys > trivet.key",
        "export TRIVET_API_KEY=$(trivet keys)",
        "trivet keys --namespace user:ana --read-only --days 30",
    )
)
@click.option("-n", "--namespace", "namespaces", multiple=True, help="A namespace that the token opens; repeatable.")
@click.option("--read-only", is_flag=True, help="The token can search and read, but change nothing.")
@click.option("--metrics", is_flag=True, help="A token for GET /metrics and no namespace, for Prometheus.")
@click.option("--days", type=float, help="Days until the token expires.")
@json_option
def command(namespaces: tuple[str, ...], read_only: bool, metrics: bool, days: float | None, as_json: bool) -> None:
    """Print a new random API key, or a token for some namespaces or for the metrics.

    A server has one key, set in its environment, which opens every namespace; nothing is stored. The key alone goes to
    standard output, so that you can assign it to a variable; how to use it goes to standard error.

    With --namespace or --metrics, print a token instead: a JSON Web Token signed with the key in TRIVET_API_KEY and
    sent in place of the key. Changing the key invalidates all tokens.
    """
    variable = variable_of("api_key")
    if metrics and (namespaces or read_only):
        raise click.UsageError("--metrics opens no namespace: leave --namespace and --read-only out.")
    if not namespaces and not metrics:
        if read_only or days is not None:
            raise click.UsageError("--read-only and --days are for tokens: name a --namespace, or --metrics.")
        key = secrets.token_urlsafe(KEY_BYTES)
        if as_json:
            print_json({"variable": variable, "key": key})
            return
        click.echo(key)
        click.echo(f"Start the server with {variable} set to it; callers send `Authorization: Bearer KEY`.", err=True)
        return
    if days is not None and not 0 < days <= MOST_DAYS:  # a range of click accepts NaN
        raise click.UsageError(f"--days must be above 0 and at most {MOST_DAYS}.")
    api_key = Settings.from_env().api_key
    if api_key is None:
        raise click.UsageError(f"Set {variable} to the server's key, which signs the token.")
    for name in namespaces:
        check_new_name(name)
    claims = TokenClaims(namespaces=list(namespaces), access="metrics" if metrics else "read" if read_only else "write")
    token = signed(claims, api_key, expires_in_s=None if days is None else days * DAY_S)
    if as_json:
        print_json({"token": token, "namespaces": claims.namespaces, "access": claims.access})
        return
    click.echo(token)
    click.echo("Callers send it as they would send the key: `Authorization: Bearer TOKEN`.", err=True)
