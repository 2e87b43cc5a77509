"""Messages between the supervisor and a worker, as bytes over a pair of sockets; and exit codes: 0 is a normal end."""

import socket
from dataclasses import dataclass

from service.settings import Settings

EXIT_KILLED = 1  # no worker is left, and none gave a reason
EXIT_SETTINGS = 2  # a variable is invalid
EXIT_MODELS = 3  # a model, a default, a provider, the port or a folder is not as the settings say

# worker -> supervisor
SERVES = b"s"  # each second
LEAVES = b"l"
# supervisor -> worker
DRAIN = b"d"
HURRY = b"h"  # leave, and close idle connections
# either way
RELOAD = b"r"  # reload the models folder; a worker that was asked to reload passes it on to the others


@dataclass(frozen=True)
class Assignment:
    """What a worker process is started with."""

    settings: Settings
    number: int  # of this worker, never used again
    listening: socket.socket  # shared by all workers
    line: socket.socket  # to the supervisor
