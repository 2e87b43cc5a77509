"""`python -m service`: read the environment, open the models, listen. `python -m service hash-key NAME`: an API key."""

import argparse
import logging
import os
import socket
import sys
from collections.abc import Sequence
from getpass import getpass

from service.errors import SettingsError
from service.machine import counts
from service.observe import METRICS_FOLDER, logs
from service.process import EXIT_SETTINGS
from service.settings import CLIENTS_KEY, HASH_KEY, PREFIX, Settings, hash_key

log = logging.getLogger("service")


def main(arguments: Sequence[str] = ()) -> int:
    """Serve, or hash a key; the exit code says why it could not (`service/process/__init__.py`)."""
    reserve_standard_streams()
    parser = argparse.ArgumentParser(
        prog="python -m service", description="Serve the models; settings: SEMBLANCE_ variables (--help-settings)."
    )
    parser.add_argument("--help-settings", action="store_true", help="print every setting and end")
    parser.add_argument("--workers", metavar="N", help=f"processes, or auto; sets {PREFIX}WORKERS")
    command = parser.add_subparsers(metavar="COMMAND").add_parser(
        "hash-key", help=f"read an API key from standard input and write its entry for {PREFIX}API_KEYS"
    )
    command.add_argument("name", metavar="NAME", help="whose key it is")
    chosen = parser.parse_args(arguments)
    if chosen.help_settings:
        from service.settings_help import text

        sys.stdout.write(text())
        return 0
    if chosen.workers is not None:
        os.environ[f"{PREFIX}WORKERS"] = chosen.workers
    name: str | None = getattr(chosen, "name", None)
    return serve() if name is None else write_entry(name)


def write_entry(name: str) -> int:
    """Read a key, without echo at a terminal, and write its entry for the setting."""
    try:
        if sys.stdin is None:  # closed by who started it
            raise ValueError("there is no standard input to read a key from")
        key = getpass(f"key of {name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
        sys.stdout.write(f"{hash_key(name, key)}\n")
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    return 0


def reserve_standard_streams() -> None:
    """Open what was closed of standard input, output and error: a log would go to whatever gets its number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one


def serve() -> int:
    """Serve until SIGTERM or SIGINT."""
    try:
        settings = Settings.from_environment()
        if os.environ.get(CLIENTS_KEY) and not settings.api_keys:  # the setting was probably mistaken for API_KEYS
            raise SettingsError(
                f"{CLIENTS_KEY} is what a client sends, and {PREFIX}API_KEYS, which is not set, whose keys the service "
                f"lets in: set that (`{HASH_KEY} NAME` makes an entry), or unset this to serve everybody"
            )
        _check_host(settings)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    for name in (METRICS_FOLDER, METRICS_FOLDER.lower()):  # another service's, of whom this was started
        os.environ.pop(name, None)
    workers = counts(settings).workers
    logs.configure(settings.log_level, **({"pid": os.getpid()} if workers > 1 else {}))
    for name in Settings.unknown(os.environ):
        log.warning("%s is not a setting; see --help-settings", name)
    if workers > 1 and settings.rate_limit is not None and settings.redis_url is None:
        log.warning(
            "each worker counts a caller's requests for itself, so a caller of all may ask more often than "
            "SEMBLANCE_RATE_LIMIT; with SEMBLANCE_REDIS_URL they have one count",
            extra=logs.fields(rate_limit=settings.rate_limit, workers=workers),
        )
    # Imported here, so that the parent of several workers does not import what opens models.
    if workers > 1:
        from service.process.workers import serve_by_workers

        return serve_by_workers(settings, workers)
    from service.process.serving import serve_alone

    return serve_alone(settings)


def _check_host(settings: Settings) -> None:
    try:
        socket.getaddrinfo(settings.host, settings.port)
    except (OSError, UnicodeError) as error:  # the latter of labels that are empty or too long
        reason = error.strerror if isinstance(error, OSError) else "no name of a host"
        raise SettingsError(f"{PREFIX}HOST: {settings.host!r} has no address: {reason}") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
