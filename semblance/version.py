"""The installed version of this project."""

from functools import cache
from importlib import metadata

DISTRIBUTION = "semblance-similarity"  # on the package index `semblance` is another project
TRAINING = "semblance-training"  # the distribution of workbench/ and training/ (training/pyproject.toml)


@cache
def version() -> str:
    """The version of the installed distribution; 0 in a checkout that is not installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "0"
