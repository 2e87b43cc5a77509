"""`python -m service`: read the environment, open the models, listen. `python -m service hash-key NAME`: an API key."""

import argparse
import gc
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from getpass import getpass
from time import perf_counter

import uvicorn

from service import logs
from service.app import create_app
from service.errors import SettingsError, StartupError
from service.guard import hash_key
from service.settings import CLIENTS_KEY, PREFIX, Settings
from service.tracing import open_tracing
from service.version import version

log = logging.getLogger("service")

EXIT_SETTINGS = 2
EXIT_MODELS = 3


def main(arguments: Sequence[str] = ()) -> int:
    """Serve, or hash a key; the exit code says why it could not."""
    parser = argparse.ArgumentParser(prog="python -m service", description="Serve the models; settings: README.md.")
    command = parser.add_subparsers(metavar="COMMAND").add_parser(
        "hash-key", help=f"read an API key from standard input and write its entry for {PREFIX}API_KEYS"
    )
    command.add_argument("name", metavar="NAME", help="whose key it is")
    name: str | None = getattr(parser.parse_args(arguments), "name", None)
    return serve() if name is None else write_entry(name)


def write_entry(name: str) -> int:
    """Read a key, unseen where somebody types it, and write the entry that lets it in."""
    try:
        key = getpass(f"key of {name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
        sys.stdout.write(f"{hash_key(name, key)}\n")
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    return 0


def serve() -> int:
    """Serve until SIGTERM or SIGINT."""
    started = perf_counter()
    try:
        settings = Settings.from_environment()
        if os.environ.get(CLIENTS_KEY) and not settings.api_keys:  # as an open service nobody meant it
            raise SettingsError(
                f"{CLIENTS_KEY} is what a client sends, and {PREFIX}API_KEYS, which is not set, whose keys the service "
                "lets in: set that (`python -m service hash-key NAME` makes an entry), or unset this to serve everybody"
            )
        tracing = open_tracing(os.environ, version())
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    logs.configure(settings.log_level, settings.log_format)
    for name in Settings.unknown(os.environ):
        log.warning("%s is not a setting; see service/settings.py", name)
    try:
        app = create_app(settings, tracing)
    except StartupError as error:
        log.critical("cannot start: %s", error)
        return EXIT_MODELS
    # Vocabularies are millions of objects that live as long as the process: no collection needs to walk them.
    gc.collect()
    gc.freeze()
    log.info(
        "starting",
        extra=logs.fields(
            host=settings.host,
            port=settings.port,
            models=list(app.service.registry),
            redis=settings.redis_address,
            api_keys=list(settings.api_keys),
            rate_limit=settings.rate_limit,
            traces="sent" if tracing is not None else "off",
            seconds=round(perf_counter() - started, 3),
        ),
    )
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=settings.shutdown_grace_seconds,
    )
    server = uvicorn.Server(config)
    app.pending = lambda: len(server.server_state.tasks)
    with suppress(KeyboardInterrupt):  # what Ctrl-C is again, once all that was under way is finished
        server.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
