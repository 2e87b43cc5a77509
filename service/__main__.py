"""`python -m service`: read the environment, open the models, listen. `python -m service hash-key NAME`: an API key."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from getpass import getpass

from service import logs
from service.cpus import counts
from service.errors import SettingsError
from service.exits import EXIT_SETTINGS
from service.guard import hash_key
from service.rate_limit import counts_in_redis
from service.settings import CLIENTS_KEY, PREFIX, Settings

log = logging.getLogger("service")


def main(arguments: Sequence[str] = ()) -> int:
    """Serve, or hash a key; the exit code says why it could not (`service/exits.py`)."""
    parser = argparse.ArgumentParser(prog="python -m service", description="Serve the models; settings: README.md.")
    parser.add_argument("--workers", metavar="N", help=f"processes, or auto; sets {PREFIX}WORKERS")
    command = parser.add_subparsers(metavar="COMMAND").add_parser(
        "hash-key", help=f"read an API key from standard input and write its entry for {PREFIX}API_KEYS"
    )
    command.add_argument("name", metavar="NAME", help="whose key it is")
    chosen = parser.parse_args(arguments)
    if chosen.workers is not None:
        os.environ[f"{PREFIX}WORKERS"] = chosen.workers
    name: str | None = getattr(chosen, "name", None)
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
    try:
        settings = Settings.from_environment()
        if os.environ.get(CLIENTS_KEY) and not settings.api_keys:  # as an open service nobody meant it
            raise SettingsError(
                f"{CLIENTS_KEY} is what a client sends, and {PREFIX}API_KEYS, which is not set, whose keys the service "
                "lets in: set that (`python -m service hash-key NAME` makes an entry), or unset this to serve everybody"
            )
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    workers = counts(settings).workers
    logs.configure(settings.log_level, settings.log_format, **({"pid": os.getpid()} if workers > 1 else {}))
    for name in Settings.unknown(os.environ):
        log.warning("%s is not a setting; see service/settings.py", name)
    if workers > 1 and settings.rate_limit is not None and not counts_in_redis(settings):
        log.warning(
            "each worker counts a caller's requests for itself, so a caller of all may ask more often than "
            "SEMBLANCE_RATE_LIMIT; with SEMBLANCE_REDIS_URL they have one count",
            extra=logs.fields(rate_limit=settings.rate_limit, workers=workers),
        )
    # Imported when it is known which is needed: a supervisor does without what opens models.
    if workers > 1:
        from service.fleet import Fleet

        return Fleet(settings, workers).run()
    from service.worker import serve_alone

    return serve_alone(settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
