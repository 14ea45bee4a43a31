"""A first start that is killed halfway does not prevent the next one."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from retrieval.store.embedded.instance import EmbeddedPostgres
from tests.processes import new_data_dir, unheard, until

START = """
import sys
from pathlib import Path
from retrieval.store.embedded.instance import EmbeddedPostgres
EmbeddedPostgres(Path(sys.argv[1])).start()
"""


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param("postgres.new", id="before initdb"),
        pytest.param("postgres.new/base/1", id="in initdb"),
        pytest.param("postgres.new/base/4", id="at initdb's end"),
        pytest.param("postgres/trivet.conf", id="before the server"),
        pytest.param("postgres/postmaster.pid", id="as the server starts"),
    ],
)
def test_the_next_start_succeeds(begun: str) -> None:
    """At once: processes that the killed one had started may still run."""
    with new_data_dir() as data_dir:
        process = unheard("-c", START, data_dir)
        until((data_dir / begun).exists)
        process.kill()
        process.wait()
        server = EmbeddedPostgres(data_dir, settings={"shared_buffers": "64MB"})
        try:
            with psycopg.connect(server.start(), autocommit=True) as db:
                assert db.execute("select current_database()").fetchone() == ("trivet",)
        finally:
            server.stop()
        assert {path.name for path in Path(data_dir).iterdir()} == {"change.lock", "postgres", "users.lock"}
