"""Settings from the environment. Each name is `TRIVET_` plus the field's name in capitals."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_type_hints
from urllib.parse import unquote

import msgspec
from msgspec import Meta

from retrieval.errors import SettingsError
from retrieval.types.namespace import DEFAULT_EMBEDDER, EmbedderName

log = logging.getLogger(__name__)

EMBEDDED = "embedded"
"""The `database_url` that stands for the PostgreSQL that Trivet runs itself."""


def default_data_dir() -> Path:
    """Where the embedded database lives: the user's data folder, for root /var/lib/trivet.

    PostgreSQL refuses to run as root, so it then runs as a separate user, who could not enter root's home.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/trivet")
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share", "trivet")


DatabaseUrl = Annotated[
    str,
    Meta(pattern=r"^(embedded\Z|postgres(ql)?://)", description="'embedded' or a URL that starts with postgresql://"),
]
# A header ends at a line break and is stripped of blanks around it; undecodable bytes cannot be compared.
ApiKey = Annotated[
    Annotated[str, Meta(pattern=r"^(?!\s)[^\x00-\x1f\x7f\ud800-\udfff]+(?<!\s)\Z")] | None,
    Meta(description="one line of text with no blanks around it"),
]
# Sent in a header, which is ASCII. The URL must not hold a password, as errors and logs show it.
ProviderKey = Annotated[
    Annotated[str, Meta(pattern=r"^[\x21-\x7e]+\Z")] | None, Meta(description="visible ASCII characters without blanks")
]
ProviderUrl = Annotated[
    Annotated[str, Meta(pattern=r"^https?://(\[[\da-fA-F:.]+\]|[\w.\-]+)(:\d{1,5})?(/[^\s?#@]*)?\Z")] | None,
    Meta(description="a URL that starts with http:// or https://, without user, password, query or fragment"),
]
ProviderModel = Annotated[
    Annotated[str, Meta(pattern=r"^[\w.:@+/\-]{1,200}\Z")] | None,
    Meta(description="a model's name: letters, digits or any of . : @ + / -"),
]
Provider = Annotated[
    Literal["onnx", "openai", "ollama", "google"], Meta(description="one of onnx, openai, ollama, google")
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"], Meta(description="one of debug, info, warning, error")
]
Port = Annotated[int, Meta(ge=0, le=65_535, description="a whole number from 0 to 65535")]
PoolSize = Annotated[int, Meta(ge=4, description="a whole number, at least 4")]
Count = Annotated[int, Meta(ge=0, description="a whole number, at least 0")]
Workers = Annotated[int, Meta(ge=1, le=256, description="a whole number from 1 to 256")]
PositiveCount = Annotated[int, Meta(ge=1, description="a whole number, at least 1")]
HostNames = Annotated[
    str,
    Meta(
        pattern=r"^[\w.:*\[\], -]*\Z",
        description="names separated by commas; *.example.com means all names below that one, * all names",
    ),
]
BodyBytes = Annotated[int, Meta(ge=1_024, description="a whole number, at least 1024")]
IndexBytes = Annotated[int, Meta(ge=1024 * 1024, description="a whole number, at least 1048576")]
Seconds = Annotated[float, Meta(ge=0, description="a number, at least 0")]
PositiveSeconds = Annotated[float, Meta(gt=0, description="a number above 0")]

Folder = Annotated[Path, Meta(description="a path")]
OptionalFolder = Annotated[Path | None, Meta(description="a path")]

Switch = Annotated[bool, Meta(description="true or false")]

_SECRET: Final = (DatabaseUrl, ApiKey, ProviderKey, ProviderUrl)
"""Types whose values may hold a password or a key; errors do not repeat them."""


class _Usual(NamedTuple):
    """A provider's defaults; `key_variable` holds the key for `url`."""

    model: str
    url: str | None = None
    key_variable: str | None = None


_USUAL: Final[Mapping[str, _Usual]] = {
    "onnx": _Usual(DEFAULT_EMBEDDER),
    "openai": _Usual("text-embedding-3-small", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "ollama": _Usual("all-minilm", "http://localhost:11434"),
    "google": _Usual("gemini-embedding-001", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
}

REMOTE_PROVIDERS: Final = tuple(name for name, usual in _USUAL.items() if usual.url)
"""Embedding providers to which texts are sent."""

_PASSWORD: Final = re.compile(r"//[^:@/]*:([^@/]*)@|[?&](?:ssl)?password=([^&]*)")
"""A password in a URL as libpq reads it, which accepts more than `urlsplit` does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How this process runs.

    Attributes:
        database_url: a libpq URL, or `embedded`; there is no silent fallback from one to the other.
        data_dir: folder of the embedded database.
        host: address to listen on; a public one needs `TRIVET_API_KEY`.
        port: port to listen on; 0 takes a free one.
        workers: server processes.
        api_key: the bearer key that requests must carry; without one, no key is needed.
        allowed_hosts: hosts that requests may name besides loopback and `TRIVET_HOST`; unset: any, if there is a key.
        log_level: what is logged; `debug` also shows tracebacks of failed commands.
        pool_size: database connections of one server process.
        leg_timeout_s: deadline of each leg, seconds.
        embedding_provider: what embeds texts in new namespaces; all but `onnx` send them to another server.
        embedding_model: the provider's model.
        embedding_url: address of an OpenAI-compatible or Ollama server; the provider's own if unset.
        embedding_api_key: the provider's key; for its own address also `OPENAI_API_KEY` or `GEMINI_API_KEY`.
        embedding_cache_entries: query embeddings cached.
        embedding_cache_age_s: seconds for which a query embedding is cached.
        rate_limit: requests that an address may send a server process at once, and again each minute; 0: no limit.
        max_body_bytes: largest request body, except for the bulk endpoint.
        bm25_tail_docs: memories a namespace keeps unpacked before they are compacted.
        index_bytes: approximate memory limit of a process's in-memory indexes.
        cache_dir: folder for the files of large indexes; the embedded database keeps them in `index` beside it.
        console: whether the page at `/` is served.
    """

    database_url: DatabaseUrl = EMBEDDED
    data_dir: Folder = field(default_factory=default_data_dir)
    host: str = "127.0.0.1"
    port: Port = 8321
    workers: Workers = 1
    api_key: ApiKey = None
    allowed_hosts: HostNames = ""
    log_level: LogLevel = "info"
    pool_size: PoolSize = 12
    leg_timeout_s: PositiveSeconds = 2.0
    embedding_provider: Provider = "onnx"
    embedding_model: ProviderModel = None
    embedding_url: ProviderUrl = None
    embedding_api_key: ProviderKey = field(default=None, repr=False)
    embedding_cache_entries: Count = 1_024
    embedding_cache_age_s: Seconds = 600.0
    rate_limit: Count = 0
    max_body_bytes: BodyBytes = 16 * 1024 * 1024
    bm25_tail_docs: PositiveCount = 500
    index_bytes: IndexBytes = 1024 * 1024 * 1024
    cache_dir: OptionalFolder = None
    console: Switch = True

    def __post_init__(self) -> None:
        for name in ("data_dir", "cache_dir"):
            if (folder := getattr(self, name)) is not None:
                object.__setattr__(self, name, Path(os.path.expanduser(folder)))
        usual = _USUAL[self.embedding_provider]
        if not self.sends_texts:
            if self.embedding_model not in (None, usual.model):
                raise SettingsError(
                    f"TRIVET_EMBEDDING_MODEL must be {usual.model} with the provider onnx, not "
                    f"{self.embedding_model!r}; set TRIVET_EMBEDDING_PROVIDER for another provider's model"
                )
            if self.embedding_url or self.embedding_api_key:
                raise SettingsError(
                    "TRIVET_EMBEDDING_URL and TRIVET_EMBEDDING_API_KEY are for other servers: set "
                    f"TRIVET_EMBEDDING_PROVIDER to one of {', '.join(REMOTE_PROVIDERS)}"
                )
        elif usual.key_variable and not (self.embedding_url or self.embedding_api_key):
            raise SettingsError(
                f"the embedding provider {self.embedding_provider} needs a key: "
                f"set TRIVET_EMBEDDING_API_KEY or {usual.key_variable}"
            )
        object.__setattr__(self, "embedding_model", self.embedding_model or usual.model)
        object.__setattr__(self, "embedding_url", self.embedding_url or usual.url)

    @property
    def address(self) -> str:
        """Where the server listens, as a URL.

        >>> Settings(host="::1").address
        'http://[::1]:8321'
        """
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def embedder(self) -> EmbedderName:
        """The name of the embedder that new namespaces get."""
        model = str(self.embedding_model)
        return f"{self.embedding_provider}/{model}" if self.sends_texts else model

    @property
    def sends_texts(self) -> bool:
        """Whether the embedding provider is another server, to which texts are sent."""
        return self.embedding_provider in REMOTE_PROVIDERS

    @property
    def index_dir(self) -> Path | None:
        """The folder for index files; None if there are none."""
        return self.cache_dir or (self.data_dir / "index" if self.uses_embedded else None)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be logged: the keys, the database URL and its password, raw and decoded."""
        found = {self.api_key, self.embedding_api_key}
        if not self.uses_embedded:
            passwords = [one[1] or one[2] for one in _PASSWORD.finditer(self.database_url)]
            found |= {self.database_url, *passwords, *map(unquote, passwords)}
        return tuple(sorted((secret for secret in found if secret), key=len, reverse=True))

    @property
    def uses_embedded(self) -> bool:
        """Whether Trivet runs its own PostgreSQL."""
        return self.database_url == EMBEDDED

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Read `TRIVET_*`; `overrides` that are not None win. Warns about unknown variables.

        Raises SettingsError, with the name of the variable or override, for a value of the wrong type or out of range.

        >>> Settings.from_env({"TRIVET_PORT": "9000"}).port
        9000
        """
        environ = os.environ if environ is None else environ
        types = {variable_of(name): (name, kind) for name, kind in get_type_hints(cls, include_extras=True).items()}
        given = {variable: raw for variable, raw in environ.items() if variable.startswith("TRIVET_") and raw != ""}
        given |= {variable_of(name): value for name, value in overrides.items() if value is not None}
        values: dict[str, Any] = {}
        usual = _USUAL.get(given.get("TRIVET_EMBEDDING_PROVIDER", ""), _USUAL["onnx"])
        # Never send a provider's own key to another server.
        if usual.key_variable and "TRIVET_EMBEDDING_URL" not in given and environ.get(usual.key_variable):
            given.setdefault("TRIVET_EMBEDDING_API_KEY", environ[usual.key_variable])
        for variable, raw in given.items():
            if variable in types:
                name, kind = types[variable]
                values[name] = _converted(variable if overrides.get(name) is None else name, raw, kind)
            else:
                close = get_close_matches(variable, types, n=1, cutoff=0.8)
                log.warning("%s is not a setting%s", variable, f"; did you mean {close[0]}?" if close else "")
        return cls(**values)


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return f"TRIVET_{name.upper()}"


def _converted(given_as: str, raw: Any, kind: Any) -> Any:
    """The value of one variable or override, of the field's type."""
    try:
        return msgspec.convert(raw, kind, strict=False, dec_hook=lambda wanted, value: wanted(value))
    except msgspec.ValidationError as exc:
        (meta,) = kind.__metadata__
        shown = "" if kind in _SECRET else f", not {raw!r}"
        raise SettingsError(f"{given_as} must be {meta.description}{shown}") from exc
