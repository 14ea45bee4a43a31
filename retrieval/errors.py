"""Trivet's exceptions. A class's docstring is its default message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

NO_SUCH_PATH: Final = "Nothing is at this path; /docs lists all paths, and a slash in an id is written %2F"
"""Message of a 404 for an unknown path, not for a namespace or its contents."""


class TrivetError(Exception):
    """Trivet failed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class SettingsError(TrivetError):
    """A setting cannot be used."""


class InvalidInput(TrivetError):
    """The request cannot be understood."""

    def __init__(
        self,
        message: str | None = None,
        *,
        loc: tuple[str | int, ...] = (),
        errors: Sequence[tuple[tuple[str | int, ...], str]] = (),
    ) -> None:
        """`loc` is the place of the first fault; if there may be several, `errors` has the place and reason of each."""
        super().__init__(message)
        self.loc = loc
        self.errors = errors

    @property
    def located(self) -> str:
        """The message prefixed with the path of its field."""
        return f"{'.'.join(map(str, self.loc))}: {self}" if self.loc else str(self)


class InvalidMemory(InvalidInput):
    """A memory of a batch cannot be read; `id` is the caller's, None if it has none or it cannot be read."""

    def __init__(self, message: str, *, loc: tuple[str | int, ...], id: str | None) -> None:
        super().__init__(message, loc=loc)
        self.id = id


class FusionError(InvalidInput):
    """The rankings or weights cannot be fused."""


class CircularSupersession(InvalidInput):
    """It would supersede itself through others."""

    def __init__(self, chains: Mapping[str, str]) -> None:
        """`chains` describes, by memory id, the cycle that each memory would close."""
        super().__init__("; ".join(chains.values()), loc=("supersedes",))
        self.chains = chains


class UnknownProfile(InvalidInput):
    """There is no such profile."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        there = "there is" if len(known) == 1 else "there are"
        super().__init__(f"there is no profile {name!r}; {there}: {', '.join(known)}", loc=("profile",))
        self.name = name


class NotFound(TrivetError):
    """There is no such thing."""


class NamespaceNotFound(NotFound):
    """There is no such namespace."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no namespace {name!r}")


class Conflict(TrivetError):
    """It conflicts with what is stored."""


class Collided(Conflict):
    """Another writer was in the way."""


class VectorsReplaced(Collided):
    """The namespace was given new vectors, or other settings for them, meanwhile."""


class LegFailed(TrivetError):
    """The leg failed."""


class AllLegsFailed(TrivetError):
    """No leg could answer."""


class ModelFileError(TrivetError):
    """A model file of this installation is missing or damaged."""


class EmbedderMissing(ModelFileError):
    """This server does not have the embedder of a namespace."""


class EmbeddingFailed(TrivetError):
    """The embedding provider failed."""


class StoreError(TrivetError):
    """The database failed."""


class StoreUnavailable(StoreError):
    """The database cannot be reached."""


class DatabaseUnreachable(StoreUnavailable):
    """The database cannot be reached; the message names its host, port and database."""


class MigrationError(StoreError):
    """The database schema is not the one that this version needs."""


class EmbeddedPostgresError(StoreError):
    """The embedded PostgreSQL cannot be started."""
