"""Work written once for both clients: with a synchronous one it is done at once, with an asynchronous one awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, TypeVar

from trivet import AsyncClient, Client, InvalidInput, NotFound, SearchResult, StoredMemory
from trivet.calls import BATCH

P = ParamSpec("P")
T = TypeVar("T")


class _Immediate:
    """A synchronous client with an asynchronous one's methods; awaiting them never suspends."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._client, name)

        async def done(*arguments: Any, **named: Any) -> Any:
            return method(*arguments, **named)

        return done

    async def get_all(self, **filters: Any) -> AsyncIterator[StoredMemory]:
        for memory in self._client.get_all(**filters):
            yield memory


EitherClient = AsyncClient | _Immediate


def run(
    client: Client | AsyncClient,
    work: Callable[Concatenate[EitherClient, P], Coroutine[Any, Any, T]],
    /,
    *arguments: P.args,
    **named: P.kwargs,
) -> T:
    """The result of work with a synchronous client; raises TypeError for an asynchronous one."""
    if not isinstance(client, Client):
        raise TypeError("with an AsyncClient only the asynchronous methods work: their names begin with an a")
    running = work(_Immediate(client), *arguments, **named)
    try:
        running.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("a synchronous call was suspended")


async def arun(
    client: Client | AsyncClient,
    work: Callable[Concatenate[EitherClient, P], Coroutine[Any, Any, T]],
    /,
    *arguments: P.args,
    **named: P.kwargs,
) -> T:
    """The result of work with either client; with a synchronous one it is done in a thread."""
    if isinstance(client, Client):
        return await asyncio.to_thread(run, client, work, *arguments, **named)
    return await work(client, *arguments, **named)


async def add(client: EitherClient, memories: Sequence[Mapping[str, Any]], /, **named: Any) -> list[str]:
    """Add memories, and return their ids; raises InvalidInput if some were refused, while the others are stored."""
    results = await client.add(memories, **named)
    for number, result in enumerate(results, start=1):
        if result.status == "rejected":
            raise InvalidInput(f"text {number} of {len(results)} was not stored: {result.error}")
    return [str(result.id) for result in results]


async def delete(client: EitherClient, ids: Sequence[str], /, **named: Any) -> None:
    """Delete memories; neither they nor the namespace need to exist."""
    for start in range(0, len(ids), BATCH):
        with suppress(NotFound):
            await client.delete_all(ids=ids[start : start + BATCH], **named)


async def every(client: EitherClient, /, **filters: Any) -> AsyncIterator[StoredMemory]:
    """All memories that match the filters; none in a namespace that does not exist yet."""
    with suppress(NotFound):
        async for memory in client.get_all(**filters):
            yield memory


async def found(client: EitherClient, /, query: str, **fields: Any) -> list[SearchResult]:
    """What a search finds; nothing in a namespace that does not exist yet."""
    try:
        return (await client.search(query, **fields)).results
    except NotFound:
        return []
