"""`semblance`, or `python -m semblance`: the command line. Every error is one line."""

import sys
from errno import ENOSPC
from io import StringIO, TextIOWrapper

from semblance.errors import INTERRUPTED, USAGE, SemblanceError
from semblance.extras import needs


def main() -> int:
    """Run the command line; returns or exits with a code of `semblance/errors.py`."""
    if sys.stdin is None:  # the shell closed it
        sys.stdin = StringIO()
    if sys.stdout is None:  # what is printed would be lost, or land in the next file that is opened
        return _say("standard output is closed: for no output, send it to /dev/null", USAGE)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for terminals that cannot show a bar
    try:
        with needs("the command line", extra="cli"):
            from semblance.cli.app import app
        app()
    except KeyboardInterrupt:  # while it is imported; a command itself says more
        return INTERRUPTED
    except SemblanceError as error:
        return _say(str(error), error.exit_code)
    except OSError as error:
        where = error.filename or ("standard output" if error.errno == ENOSPC else None)  # files have names
        return _say(f"{where}: {error.strerror}" if where else str(error), USAGE)
    return 0


def _say(message: str, code: int) -> int:
    if sys.stderr is not None:
        sys.stderr.write(f"semblance: {' '.join(message.split())}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
