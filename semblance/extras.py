"""What is installed: the version, and optional packages; the error for a missing one says how to install it."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path

from semblance.errors import MissingExtra

DISTRIBUTION = "semblance-similarity"  # on the package index `semblance` is another project
_PIP = f"{shlex.quote(sys.executable)} -m pip"
TRAINING = "semblance-training"  # the distribution of workbench/ and training/ (training/pyproject.toml)


@cache
def version() -> str:
    """The version of the installed distribution; 0 in a checkout that is not installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "0"


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Wraps imports that need an extra; `what` is the feature, as the subject of a sentence.

    Raises:
        MissingExtra: one of the packages is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "a package").partition(".")[0]
        raise MissingExtra(what, package, extra, install_command(extra)) from None


def needs_distribution(what: str, distribution: str) -> MissingExtra:
    """The error for a feature, as the subject of a sentence, that another distribution brings."""
    return MissingExtra(what, distribution, "", f"{_PIP} install {distribution}")


def install_command(extra: str) -> str:
    """The command that installs an extra into the Python that runs this.

    An installed distribution is named: pip reads its extras from its metadata, without an index. A checkout that is not
    installed is given by its folder.
    """
    try:
        metadata.version(DISTRIBUTION)
        target = DISTRIBUTION
    except metadata.PackageNotFoundError:
        root = Path(__file__).resolve().parents[1]
        target = "." if root == Path.cwd() else str(root)
    return f"{_PIP} install {shlex.quote(f'{target}[{extra}]')}"
