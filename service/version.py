"""Which version this is."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


def version() -> str:
    """Of the installed package; "0" in a checkout that was not installed."""
    try:
        return installed("semblance")
    except PackageNotFoundError:
        return "0"
