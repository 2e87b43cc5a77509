"""The supervisor's resources: the listening socket, and a folder for the workers' metrics."""

import os
import socket

_SHARED_MEMORY = "/dev/shm"


def bind(host: str, port: int) -> socket.socket:
    """The socket that all workers accept from; the first worker that serves makes it listen.

    Raises:
        OSError: the address is not available.
    """
    [(family, kind, _, _, address), *_] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listening = socket.socket(family, kind)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    return listening


def memory_folder() -> str | None:
    """A folder in memory, for files that are rewritten every second; None if TMPDIR is set or there is none."""
    usable = "TMPDIR" not in os.environ and os.access(_SHARED_MEMORY, os.W_OK)
    return _SHARED_MEMORY if usable else None
