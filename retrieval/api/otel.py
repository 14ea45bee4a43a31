"""Tracing as the standard `OTEL_*` variables configure it. Without them OpenTelemetry is not imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from retrieval.errors import SettingsError

if TYPE_CHECKING:
    from retrieval.api.tracing import Tracing

_EXPORTERS = ("otlp", "console", "none")
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"
_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_HEADER = re.compile(r"([\w!#$%&'*+.^`|~-]+[ \t]*=[ !#-+\--:<-\[\]-~]*)?", re.ASCII)
"""What the SDK accepts between two commas; of anything else, such as `NAME: KEY`, it logs the key."""


def tracing_by(environ: Mapping[str, str]) -> Tracing | None:
    """Tracing as configured, by an exporter's name or a collector's address; None if it is off.

    These variables are read here, all others by OpenTelemetry's SDK.

    Raises:
        SettingsError: an exporter, a protocol, an address or a header cannot be used, or a package is missing.
    """
    endpoints = {name: environ[name] for name in _ENDPOINTS if environ.get(name)}
    given = environ.get("OTEL_TRACES_EXPORTER") or ("otlp" if endpoints else "none")
    names = {name.strip() for name in given.split(",")}
    if not names.issubset(_EXPORTERS):
        raise SettingsError(f"OTEL_TRACES_EXPORTER must be {', '.join(_EXPORTERS)} or several of them, not {given!r}")
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or names == {"none"}:
        return None
    if "otlp" in names:
        for name, address in endpoints.items():
            if not address.startswith(("http://", "https://")):
                raise SettingsError(f"{name} must start with http:// or https://")
        for name in _HEADERS:
            if not all(_HEADER.fullmatch(header.strip()) for header in environ.get(name, "").split(",")):
                raise SettingsError(f"{name} must be NAME=VALUE, and several of them separated by commas")
        protocol = next((name for name in _PROTOCOLS if environ.get(name)), None)
        if protocol is not None and environ[protocol] != _PROTOCOL:
            raise SettingsError(f"{protocol} must be {_PROTOCOL}, which is also the default, not {environ[protocol]!r}")
    try:
        from retrieval.api.tracing import Tracing

        return Tracing(to_collector="otlp" in names, to_console="console" in names)
    except ModuleNotFoundError as exc:
        raise SettingsError("OTEL_*: OpenTelemetry's packages are missing: pip install 'trivet[otel]'") from exc
    except ValueError as exc:
        raise SettingsError(f"OTEL_*: {exc}") from exc
