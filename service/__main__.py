"""`python -m service`: read the environment, open the models, listen."""

import gc
import logging
import os
import sys
from time import perf_counter

import uvicorn

from service import logs
from service.app import create_app
from service.errors import SettingsError, StartupError
from service.settings import Settings

log = logging.getLogger("service")

EXIT_SETTINGS = 2
EXIT_MODELS = 3


def main() -> int:
    """Serve until SIGTERM or SIGINT; the exit code says why it could not."""
    started = perf_counter()
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    logs.configure(settings.log_level, settings.log_format)
    for name in Settings.unknown(os.environ):
        log.warning("%s is not a setting; see service/settings.py", name)
    try:
        app = create_app(settings)
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
            api_key="required" if settings.api_key else "none",
            seconds=round(perf_counter() - started, 3),
        ),
    )
    uvicorn.run(
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
