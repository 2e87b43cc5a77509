"""Which version of the project is installed."""

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """Of the installed distribution; 0 in a checkout that was not installed."""
    try:
        return metadata.version("semblance")
    except metadata.PackageNotFoundError:
        return "0"
