"""The errors that a command line tells in one line."""


class UserError(Exception):
    """Base class: the text is for the person at the command line, without a traceback.

    Attributes:
        exit_code: of the command line, for an error of this kind.
    """

    exit_code = 1
