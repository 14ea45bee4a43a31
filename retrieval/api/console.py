"""The console: a page at `/` that shows why a search answered as it did, and changes it.

The files are built by `make console` from `console/`. The page is like any other client: it uses the HTTP API from the
reader's browser, with the key that the reader types. That is why the page itself is served without one.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from litestar import Controller, MediaType, Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from retrieval.api.parameters import TypedRequest

_FILES = Path(__file__).parents[1] / "console"
_TYPES: Final[Mapping[str, str]] = {
    ".html": MediaType.HTML,
    ".css": MediaType.CSS,
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": MediaType.TEXT,
}
_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-cache",  # the browser revalidates its copy by the ETag
    "referrer-policy": "no-referrer",
    "vary": "accept-encoding",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    compressed: bytes
    media_type: str
    etag: str

    @classmethod
    def from_path(cls, path: Path) -> _File:
        content = path.read_bytes()
        etag = f'"{sha256(content).hexdigest()[:16]}"'
        return cls(content, gzip.compress(content, mtime=0), _TYPES[path.suffix], etag)

    def response(self, request: TypedRequest) -> Response[bytes]:
        """The file, compressed if the client accepts that; 304 if it already has it."""
        headers = {**_HEADERS, "etag": self.etag}
        if request.headers.get("if-none-match") == self.etag:
            return Response(b"", status_code=304, headers=headers, media_type=self.media_type)
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
            return Response(self.compressed, headers=headers, media_type=self.media_type)
        return Response(self.content, headers=headers, media_type=self.media_type)


class ConsoleController(Controller):
    """Serves the page and its files; registered where `TRIVET_CONSOLE` is on."""

    include_in_schema = False
    files: Mapping[str, _File] = {path.name: _File.from_path(path) for path in sorted(_FILES.iterdir())}

    @get("/")
    async def page(self, request: TypedRequest) -> Response[bytes]:
        """The page."""
        return self.files["index.html"].response(request)

    @get("/console/{name:str}")
    async def file(self, request: TypedRequest, name: FromPath[str]) -> Response[bytes]:
        """A file of the page."""
        if name not in self.files:
            raise NotFoundException
        return self.files[name].response(request)
