"""The exit codes of the command line."""

from semblance.errors import BatchError, CannotStart, MissingExtra, NoAnswer, SemblanceError

REFUSED = 1  # the service said no, or failed
USAGE = 2  # the call cannot be: options, files, a package that is not installed
NO_SERVICE = 3  # it does not answer, or does not start here
SKIPPED = 4  # a batch is done, but rows of it were skipped


def exit_code(error: SemblanceError) -> int:
    """The code for a kind of error."""
    if isinstance(error, BatchError | MissingExtra):
        return USAGE
    return NO_SERVICE if isinstance(error, NoAnswer | CannotStart) else REFUSED
