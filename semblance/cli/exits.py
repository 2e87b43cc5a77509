"""Exit codes of the command line."""

from semblance.errors import BatchError, CannotStart, InvalidArgument, MissingExtra, NoAnswer, SemblanceError

REFUSED = 1  # the service refused or failed
USAGE = 2  # wrong options or files, or a package that is not installed
NO_SERVICE = 3  # it does not answer, or does not start in this process
SKIPPED = 4  # a batch finished, but skipped rows


def exit_code(error: SemblanceError) -> int:
    """The code for a kind of error."""
    if isinstance(error, BatchError | InvalidArgument | MissingExtra):
        return USAGE
    return NO_SERVICE if isinstance(error, NoAnswer | CannotStart) else REFUSED
