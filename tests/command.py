"""`trivet` in the tests' own process: Python and its libraries take seconds to start."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from click.testing import CliRunner, Result

from retrieval.cli import main

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"
"""The URL of a database without a server."""

Cli = Callable[..., Result]
"""`trivet` on one database."""


class _Stdin(BytesIO):
    name = "<stdin>"


def trivet(
    database_url: str, *arguments: str | bytes | Path, stdin: str = "", status: int = 0, **environment: str
) -> Result:
    """Run a command with only the settings in `environment`; its exit status must be `status`."""
    others = {name: None for name in os.environ if name.startswith("TRIVET_")}
    result = CliRunner().invoke(
        main,
        [os.fsdecode(argument) for argument in arguments],
        input=_Stdin(stdin.encode()),
        env={**others, "TRIVET_DATABASE_URL": database_url, **environment},
        prog_name="trivet",
    )
    assert result.exit_code == status, result.output
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result
