"""Texts sent as the text of an array arrive as they are."""

from __future__ import annotations

import pytest
from psycopg import AsyncConnection

from postgres.arrays import text_array


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["Ann", "", "null", "NULL", " a ", "{x}", "a,b"],
        ['","', "b"],
        ['"', '"'],
        ["\\", 'C:\\"x"\\', "\\\\"],
        ["Zürich", "日本", "\n\t", "'"],
        [None],
        [None, "", "NULL", '"', None],
    ],
)
async def test_an_array_arrives_as_it_was(database_url: str, texts: list[str | None]) -> None:
    async with await AsyncConnection.connect(database_url) as conn:
        row = await (await conn.execute("select %(texts)s::text[]", {"texts": text_array(texts)})).fetchone()
        assert row == (texts,)
        found = await (
            await conn.execute("select ('a,b' = any(%(texts)s)) is true", {"texts": text_array(texts)})
        ).fetchone()
        assert found == ("a,b" in texts,)
