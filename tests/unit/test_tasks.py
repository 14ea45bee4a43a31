"""Work that is shared out among workers."""

from __future__ import annotations

import asyncio

import pytest

from retrieval.tasks import share_out


async def test_results_are_in_the_order_of_the_items_whichever_ends_first() -> None:
    async def slower_first(item: int) -> int:
        for _ in range(10 - item):
            await asyncio.sleep(0)
        return item * item

    assert await share_out(slower_first, range(5), at_once=3) == [0, 1, 4, 9, 16]
    assert await share_out(slower_first, [], at_once=3) == []


async def test_a_failure_ends_what_is_under_way_and_begins_no_more() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def work(item: int) -> None:
        begun.append(item)
        try:
            if item == 1:
                raise LookupError(item)
            await asyncio.Event().wait()
        finally:
            ended.append(item)

    with pytest.raises(LookupError, match="1"):
        await share_out(work, range(5), at_once=2)
    assert (begun, sorted(ended)) == ([0, 1], [0, 1])
