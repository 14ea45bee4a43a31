"""The OpenAPI document is correct: requests generated from it are answered as documented, and never with a 5xx."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.serving import on_a_port, settings_for

FOLDER = Path(__file__).parent
EXAMPLES_PER_OPERATION = 8


def test_requests_made_from_the_document(database_url: str, tmp_path: Path) -> None:
    """Statuses, headers, media types and bodies are as documented, for good requests and for bad ones."""
    with on_a_port(settings_for(database_url, pool_size=12)) as url:
        done = subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"),
                *("--config-file", FOLDER / "schemathesis.toml"),
                *("run", f"{url}/openapi.json", "--no-color", "--warnings=off"),
                *("--phases=examples,coverage,fuzzing", f"--max-examples={EXAMPLES_PER_OPERATION}"),
                # one worker: in CPython 3.11 two threads that parse Python source at once can fail
                *("--workers=1", "--generation-database=none", f"--url={url}"),
            ],
            env={**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(FOLDER)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Tested: (\d+)", done.stdout)
