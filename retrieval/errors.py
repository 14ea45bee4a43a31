"""Everything Trivet raises on purpose. A docstring is the default message.

TrivetError
├── SettingsError            a setting that cannot be used
├── InvalidInput             a request that cannot be understood (names the field)
│   └── FusionError          rankings or weights that cannot be fused
├── NotFound                 no such namespace or memory
├── Conflict                 it stands against what is stored
│   └── Collided             ... by another writer at this moment; trying again may do
├── LegFailed                one leg did not answer
│   └── LegTimedOut          ... before its deadline
├── AllLegsFailed            no leg answered
└── StoreError               the database
    ├── StoreUnavailable     cannot be reached, or is not ready
    ├── MigrationError       the schema is not the one this version needs
    └── EmbeddedPostgresError  the embedded server cannot be started
"""

from __future__ import annotations


class TrivetError(Exception):
    """Trivet failed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class SettingsError(TrivetError):
    """A setting cannot be used."""


class InvalidInput(TrivetError):
    """The request cannot be understood."""

    def __init__(self, message: str | None = None, *, loc: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.loc = loc


class FusionError(InvalidInput):
    """The rankings or weights cannot be fused."""


class NotFound(TrivetError):
    """There is no such thing."""


class Conflict(TrivetError):
    """It conflicts with what is stored."""


class Collided(Conflict):
    """Another writer was in the way."""


class LegFailed(TrivetError):
    """The leg failed."""


class LegTimedOut(LegFailed):
    """The leg passed its deadline."""


class AllLegsFailed(TrivetError):
    """No leg could answer."""


class StoreError(TrivetError):
    """The database failed."""


class StoreUnavailable(StoreError):
    """The database cannot be reached."""


class MigrationError(StoreError):
    """The database schema is not the one that this version needs."""


class EmbeddedPostgresError(StoreError):
    """The embedded PostgreSQL cannot be started."""
