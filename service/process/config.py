"""What uvicorn is told of a service."""

import logging
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import uvicorn

from service.http.connection import Connection
from service.process import EXIT_MODELS
from service.settings import Settings

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = (
    75  # longer than load balancers keep an idle connection (nginx, AWS and GCE: 60), so we never close first
)
# Descriptors of a listening socket: uvloop accepts one connection for each in an iteration of the loop, so that behind
# hundreds of one caller who come again and again everybody else would wait for as many iterations.
LISTENING = 8
HUNG_SECONDS = 30  # in which a worker answers uvicorn, and a successor opens its models


def config_of(settings: Settings, app: Callable[..., Any] | str, workers: int = 1) -> uvicorn.Config:
    """uvicorn's configuration, of an application, or of the path of what makes one in each worker."""
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        host=settings.host,
        port=settings.port,
        workers=workers,
        loop="uvloop",
        http=partial(Connection, settings=settings),  # type: ignore[arg-type]  # it is only called
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.shutdown_grace_seconds,
        timeout_worker_healthcheck=HUNG_SECONDS,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )


def listening_sockets(config: uvicorn.Config) -> list[socket.socket]:
    """Bind the address, of IPv4 where a name has both, and give descriptors of the socket that is to listen there.

    uvicorn's own function says at once that it runs there, before anybody listens.

    Raises:
        SystemExit: the address cannot be used.
    """
    found = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)
    family, *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        log.critical("cannot start: cannot listen at %s: %s", address_of(config.host, config.port), error.strerror)
        sys.exit(EXIT_MODELS)
    return [listening, *(listening.dup() for _ in range(LISTENING - 1))]


def address_of(host: str, port: int) -> str:
    """The URL to open in a browser on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
