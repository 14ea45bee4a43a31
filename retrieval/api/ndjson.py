"""Lines out of a streamed body, none of them longer than the limit in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from litestar.types import Receive


class ClientGone(Exception):
    """The client closed the connection before the end of its body."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is not blank.

    Attributes:
        number: from 1, blank lines counted.
        content: without the line break; None for a line over the limit.
    """

    number: int
    content: bytes | None


async def body_chunks(receive: Receive) -> AsyncIterator[bytes]:
    """The body as it arrives.

    Raises:
        ClientGone: it ends before its end.
    """
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        more = message.get("more_body", False)
        if body := message.get("body", b""):
            yield body


async def lines(chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[Line]:
    """Split at line feeds, whatever the chunks' bounds; blank lines are skipped, overlong ones have no content."""
    number = 0
    pending = bytearray()
    overlong = False
    async for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            number += 1
            if overlong or len(pending) + len(piece) > max_bytes:
                yield Line(number, None)
            else:
                content = bytes(pending) + piece
                if not content.isspace() and content:
                    yield Line(number, content)
            pending.clear()
            overlong = False
        if overlong or len(pending) + len(rest) > max_bytes:
            overlong = True
            pending.clear()
        else:
            pending += rest
    if overlong:
        yield Line(number + 1, None)
    elif pending.strip():
        yield Line(number + 1, bytes(pending))
