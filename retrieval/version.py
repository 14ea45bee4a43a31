"""Which Trivet this is."""

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """The version of the installed package `trivet`; "unknown" when run from a folder that is not installed."""
    try:
        return version("trivet")
    except PackageNotFoundError:
        return "unknown"
