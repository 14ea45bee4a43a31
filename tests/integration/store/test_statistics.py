"""Maintenance vacuums and analyses what has changed much."""

from __future__ import annotations

import psycopg
import pytest

from retrieval.engine import Trivet


@pytest.fixture
def changed(trivet: Trivet, database_url: str) -> None:
    """A table with many new rows, which can only be analysed without a statement timeout; the database has one."""
    with psycopg.connect(database_url) as db:
        db.execute(f"alter database {db.info.dbname} set statement_timeout = '2min'")
        db.execute("""
            create function unhurried(integer) returns integer immutable language plpgsql as $$ begin
                assert current_setting('statement_timeout') = '0';
                return $1;
            end $$
        """)
        db.execute("create table changed as select number from generate_series(1, 1000) as number")
        db.execute("create index on changed (unhurried(number))")
        db.execute("select pg_stat_force_next_flush()")


def analysed(database_url: str) -> int:
    """How often the table was analysed."""
    with psycopg.connect(database_url) as db:
        [(count,)] = db.execute("select analyze_count from pg_stat_user_tables where relname = 'changed'").fetchall()
        return int(count)


async def test_a_large_table_has_the_time_that_it_takes(trivet: Trivet, changed: None, database_url: str) -> None:
    """Some gigabytes take longer than any other statement may."""
    for _ in range(2):  # the second time it is no longer changed
        await trivet.maintain()
        assert analysed(database_url) == 1


async def test_a_table_that_another_process_vacuums_is_not_waited_for(
    trivet: Trivet, changed: None, database_url: str
) -> None:
    with psycopg.connect(database_url) as other:
        other.execute("lock table changed in share update exclusive mode")
        await trivet.maintain()
        assert analysed(database_url) == 0
