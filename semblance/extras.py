"""Optional packages: a missing one is said in one line that names what to install."""

from collections.abc import Iterator
from contextlib import contextmanager

from semblance.errors import MissingExtra


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Around imports that the extra `extra` makes possible.

    Args:
        what: what is being asked for, as the subject of a sentence.
        extra: of this project.

    Raises:
        MissingExtra: one of the packages is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "a package").partition(".")[0]
        raise MissingExtra(what, package, extra) from None
