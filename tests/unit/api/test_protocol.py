"""In how many pieces a response is sent."""

from __future__ import annotations

import asyncio
from typing import cast

from retrieval.api.protocol import HeadWithBody

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


class Sink:
    """A transport that keeps what is written, each write by itself."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def joining(sink: Sink) -> HeadWithBody:
    return HeadWithBody(cast(asyncio.Transport, sink))


async def test_a_head_is_sent_with_its_body() -> None:
    transport = joining(sink := Sink())
    transport.write(HEAD)
    transport.write(b"body")
    transport.write(b"more")
    await asyncio.sleep(0)
    assert sink.written == [HEAD + b"body", b"more"]


async def test_a_head_without_a_body_yet_is_sent_alone() -> None:
    transport = joining(sink := Sink())
    transport.write(HEAD)
    await asyncio.sleep(0)
    assert sink.written == [HEAD]
    transport.write(b"body")
    assert sink.written == [HEAD, b"body"]


async def test_two_heads_keep_their_order() -> None:
    """As after `100 Continue`."""
    transport = joining(sink := Sink())
    transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    transport.write(HEAD)
    transport.write(b"body")
    await asyncio.sleep(0)
    assert b"".join(sink.written) == b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"body"


async def test_a_head_is_sent_before_the_end() -> None:
    transport = joining(sink := Sink())
    transport.write(HEAD)
    transport.close()
    await asyncio.sleep(0)
    assert sink.written == [HEAD]
    assert transport.closed


async def test_nothing_is_sent_to_a_client_that_left() -> None:
    transport = joining(sink := Sink())
    transport.write(HEAD)
    sink.close()
    await asyncio.sleep(0)
    assert sink.written == []
