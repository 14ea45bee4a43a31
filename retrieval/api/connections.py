"""Limits on what a connection may send before its request is complete: neither uvicorn nor httptools has any.

Also reads requests that ask for another protocol; both would drop the bodies of these.
"""

from __future__ import annotations

import asyncio

from httptools import HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

KEEP_ALIVE_S = 75
"""How long an idle connection is kept: longer than clients keep theirs, so that no request hits one being closed.

httpx keeps them for 5 seconds, which is uvicorn's default, too.
"""

HEAD_TIMEOUT_S = KEEP_ALIVE_S
"""How long a client may take from its connection, or a request's first byte, to the end of the request's headers."""

MAX_HEAD_BYTES = 256 * 1024
"""Most bytes of a request's line and headers, or after its body; a list's filters may make a long request line."""


class BoundedConnection(HttpToolsProtocol):
    """Closes a connection whose request line and headers are too long or too slow.

    Anyone can send them, even without the key.
    """

    parser: _Parser

    _unread_bytes = 0
    """Received since the last complete headers or piece of a body; the parser does not report incomplete ones."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for the first request."""
        super().connection_made(transport)
        self.parser = _Parser(self)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, then refuse if too much is still incomplete."""
        self._unread_bytes += len(data)
        super().data_received(data)
        if self._unread_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response(f"The request has more than {MAX_HEAD_BYTES} bytes beside its body.")

    def on_message_begin(self) -> None:
        """Wait for the request's headers."""
        super().on_message_begin()
        self._timer.cancel()
        self._start_timer()

    def on_headers_complete(self) -> None:
        """Start the request; its body may take its time."""
        if self.parser.asks_for_upgrade:
            return
        self._timer.cancel()
        self._unread_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of the body, whose length the request's handler limits."""
        self._unread_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request's body."""
        if not self.parser.asks_for_upgrade:
            super().on_message_complete()

    def head_without_upgrade(self) -> bytes:
        """The request's line and headers, without the one that asks for another protocol."""
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        return line + b"".join(b"%b: %b\r\n" % each for each in self.headers if each[0] != b"upgrade") + b"\r\n"

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self.timeout_keep_alive_handler)


class _Parser(HttpRequestParser):
    """Reads a request that asks to go on in another protocol as if it did not ask, which HTTP allows (RFC 9110, 7.8).

    Java's HTTP client asks for HTTP/2 in its requests. httptools takes their bodies for the other protocol's.
    """

    def __init__(self, connection: BoundedConnection) -> None:
        self._connection = connection
        self._begin()

    def _begin(self) -> None:
        super().__init__(self._connection)
        self.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does: a request may follow the last

    @property
    def asks_for_upgrade(self) -> bool:
        """Whether the request asks for another protocol, other than by the method CONNECT."""
        return self.should_upgrade() and self.get_method() != b"CONNECT"

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # uvicorn passes bytes
        """Parse, reading a request that asks for another protocol a second time without that."""
        while True:
            try:
                return super().feed_data(data)
            except HttpParserUpgrade as upgrade:
                if not self.asks_for_upgrade:
                    raise
                (end,) = upgrade.args
                data = self._connection.head_without_upgrade() + data[end:]
                self._begin()  # a request that asks to close, too, has ended the parser
