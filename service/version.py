"""Which version this is."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

DISTRIBUTION = "semblance-similarity"  # as pip knows it; `semblance` there is another project


def version() -> str:
    """Of the installed package; "0" in a checkout that was not installed."""
    try:
        return installed(DISTRIBUTION)
    except PackageNotFoundError:
        return "0"
