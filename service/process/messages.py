"""Messages between the supervisor and a worker: single bytes over a pair of sockets."""

import socket
from dataclasses import dataclass
from pathlib import Path

from service.settings import Settings

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
    folder: Path  # of the metric snapshots
