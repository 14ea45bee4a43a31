"""Settings from the environment. Each name is `TRIVET_` plus the field's name in capitals."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from retrieval.errors import SettingsError

EmbeddingProvider = Literal["onnx"]
LogLevel = Literal["debug", "info", "warning", "error"]

EMBEDDED = "embedded"
"""The `database_url` that stands for the PostgreSQL that Trivet runs itself."""


def default_data_dir() -> Path:
    """Where the embedded database lives: the user's data folder, for root /var/lib/trivet.

    PostgreSQL refuses to run as root and runs under a user of its own then, who could not
    enter root's home.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/trivet")
    base = os.environ.get("XDG_DATA_HOME")
    return Path(base) / "trivet" if base else Path.home() / ".local" / "share" / "trivet"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How this process runs.

    Attributes:
        database_url: a libpq URL, or `embedded`. One never silently replaces the other.
        data_dir: folder of the embedded database.
        host: address to listen on; a public one needs `api_key`.
        port: TCP port to listen on.
        api_key: the bearer key that requests must carry; None for no key.
        embedding_provider: who computes embeddings.
        embedding_model: name of the provider's model; None for its default.
        log_level: least severe messages to log.
        pool_size: database connections of one server process.
        leg_timeout_s: deadline of each leg, seconds.
        embedding_cache_entries: query embeddings kept.
        embedding_cache_age_s: seconds for which a query embedding is kept.
        max_body_bytes: longest request body outside the bulk endpoint.
        bm25_tail_docs: memories a namespace keeps unpacked before they are compacted.
        mirror_bytes: most memory for what a process knows of the namespaces asked for last, about.
    """

    database_url: str = EMBEDDED
    data_dir: Path = Path()
    host: str = "127.0.0.1"
    port: int = 8321
    api_key: str | None = None
    embedding_provider: EmbeddingProvider = "onnx"
    embedding_model: str | None = None
    log_level: LogLevel = "info"
    pool_size: int = 12
    leg_timeout_s: float = 2.0
    embedding_cache_entries: int = 1_024
    embedding_cache_age_s: float = 600.0
    max_body_bytes: int = 16 * 1024 * 1024
    bm25_tail_docs: int = 500
    mirror_bytes: int = 1024 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.data_dir == Path():
            object.__setattr__(self, "data_dir", default_data_dir())
        for name, least in (
            ("pool_size", 4),
            ("embedding_cache_entries", 0),
            ("max_body_bytes", 1_024),
            ("bm25_tail_docs", 1),
            ("mirror_bytes", 1024 * 1024),
        ):
            if getattr(self, name) < least:
                raise SettingsError(f"TRIVET_{name.upper()} must be at least {least}")
        if not 0 <= self.port <= 65_535:
            raise SettingsError("TRIVET_PORT must be between 0 and 65535")
        if not self.leg_timeout_s > 0:
            raise SettingsError("TRIVET_LEG_TIMEOUT_S must be above 0")
        if self.database_url != EMBEDDED and not self.database_url.startswith(("postgresql://", "postgres://")):
            raise SettingsError("TRIVET_DATABASE_URL must be 'embedded' or a URL that starts with postgresql://")

    @property
    def uses_embedded(self) -> bool:
        """Whether Trivet runs its own PostgreSQL."""
        return self.database_url == EMBEDDED

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Read `TRIVET_*`; `overrides` that are not None win.

        Raises:
            SettingsError: a value of the wrong type or out of range, with the variable's name.

        >>> Settings.from_env({"TRIVET_PORT": "9000"}).port
        9000
        """
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for field in fields(cls):
            raw = environ.get(f"TRIVET_{field.name.upper()}")
            if raw is not None and raw != "":
                values[field.name] = _parse(field.name, raw)
        values.update({name: value for name, value in overrides.items() if value is not None})
        return cls(**values)


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "embedding_provider": get_args(EmbeddingProvider),
    "log_level": get_args(LogLevel),
}
_TYPES: Mapping[str, type] = {
    "data_dir": Path,
    "port": int,
    "pool_size": int,
    "leg_timeout_s": float,
    "embedding_cache_entries": int,
    "embedding_cache_age_s": float,
    "max_body_bytes": int,
    "bm25_tail_docs": int,
    "mirror_bytes": int,
}


def _parse(name: str, raw: str) -> Any:
    """The value of one variable, of the field's type."""
    variable = f"TRIVET_{name.upper()}"
    if name in _CHOICES and raw not in _CHOICES[name]:
        raise SettingsError(f"{variable} must be one of {', '.join(_CHOICES[name])}, not {raw!r}")
    kind = _TYPES.get(name, str)
    try:
        return kind(raw)
    except ValueError as exc:
        wanted = "a whole number" if kind is int else "a number"
        raise SettingsError(f"{variable} must be {wanted}, not {raw!r}") from exc
