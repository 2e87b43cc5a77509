"""One serving process: alone, or as a worker of `service/process/workers.py`."""

import ctypes
import gc
import logging
import os
import shutil
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import enumerate as enumerate_threads
from time import monotonic, perf_counter

import uvicorn

from service.app import Application, create_app
from service.engine.queue import THREADS
from service.errors import SettingsError, StartupError
from service.machine import bound_arenas, usable_cpus
from service.models import checks, opener
from service.observe import METRICS_FOLDER, logs
from service.observe.tracing import open_tracing
from service.process import EXIT_MODELS, EXIT_SETTINGS, WORKER_EXIT
from service.process.config import address_of, config_of, listening_sockets
from service.process.signals import HangupHandler, StopHandler, Terminal
from service.service import Service
from service.settings import Settings
from service.version import version

log = logging.getLogger(__name__)

_THREAD_SECONDS = 2.0  # for batches whose callers have left, and for a model that is being opened
_PR_SET_PDEATHSIG = 1  # of Linux's prctl
_STOPS = (signal.SIGTERM, signal.SIGINT)


class Server(uvicorn.Server):
    """uvicorn's server, which says when it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, and listen."""
        await super().startup(sockets)
        address = address_of(self.config.host, self.servers[0].sockets[0].getsockname()[1])
        log.info("serving", extra=logs.fields(address=address, docs=f"{address}/docs"))


def serve_alone(settings: Settings) -> int:
    """Serve in this process until SIGTERM or SIGINT; the exit code."""
    hangup = HangupHandler(Terminal())
    signal.signal(signal.SIGUSR2, _no_successor)  # its default action would end the process
    app = _opened(settings)
    if isinstance(app, int):
        return app
    app.service.started = partial(_begin, app.service, hangup)
    for sig in _STOPS:
        signal.signal(sig, lambda *_: None)  # uvicorn raises the signal again when it has stopped
    config = config_of(settings, app)
    Server(config).run(listening_sockets(config))
    _end_threads()
    return 0


def worker() -> Application:
    """The application of one of several workers, which uvicorn calls in its process."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)  # none outlives the parent, however that ends
    settings, hangup = Settings.from_environment(), HangupHandler()
    logs.configure(settings.log_level, pid=os.getpid())
    app = _opened(settings)
    if isinstance(app, int):
        logs.write_out()
        sys.exit(app + WORKER_EXIT)

    def closed() -> None:
        if os.getppid() != parent:
            log.error("the parent process is gone; this worker leaves too")
            shutil.rmtree(os.environ[METRICS_FOLDER], ignore_errors=True)
        _end_threads()
        logs.write_out()  # uvicorn ends the process by the signal

    def started() -> None:
        _begin(app.service, hangup)
        log.info("worker serves")

    app.service.started = started
    app.service.closed = closed
    app.service.reload_others = lambda: os.kill(parent, signal.SIGUSR1)
    return app


def _begin(service: Service, hangup: HangupHandler) -> None:
    hangup.then(service.reloader.soon)
    StopHandler(service)


def _opened(settings: Settings) -> Application | int:
    """The application with its models; or the exit code, where they cannot be opened."""
    started = perf_counter()
    bound_arenas()
    before = {sig: signal.signal(sig, _end_at_once) for sig in _STOPS}  # process 1 has no default action
    try:
        tracing = open_tracing(os.environ, version())
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    try:
        # In a thread: the main one runs handlers of signals only between its own steps, and a graph may take any time.
        with ThreadPoolExecutor(1, thread_name_prefix=opener.THREAD) as opening:
            app = opening.submit(create_app, settings, tracing).result()
    except StartupError as error:
        log.critical("cannot start: %s", error)
        return EXIT_MODELS
    # Vocabularies are millions of objects that live as long as the process: garbage collection skips them.
    gc.collect()
    gc.freeze()
    # Most objects of a request are freed without it; at 700 new ones, its usual rhythm, it takes 5 % of the CPU time.
    gc.set_threshold(20_000, 20)
    counts = app.service.counts
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
            cpus=usable_cpus(),
            workers=counts.workers,
            worker_threads=counts.worker_threads,
            ort_threads=counts.ort_threads,
            seconds=round(perf_counter() - started, 3),
        ),
    )
    for sig, handler in before.items():
        signal.signal(sig, handler)
    return app


def _end_at_once(*_: object) -> None:
    """End the process while its models are opened, whatever their graphs do."""
    logs.write_out()
    os._exit(0)


def _no_successor(*_: object) -> None:
    log.warning("SIGUSR2 is ignored: only several workers are replaced while they serve (SEMBLANCE_WORKERS > 1)")


def _end_threads() -> None:
    """Wait for the threads that run graphs; where one hangs, end the process, which Python would wait for.

    One that comes back to Python after its end would abort the process instead: "terminate called without an active
    exception".
    """
    until = monotonic() + _THREAD_SECONDS
    for thread in enumerate_threads():
        if thread.name.startswith((THREADS, checks.THREAD, opener.THREAD)):
            thread.join(max(0.0, until - monotonic()))
            if thread.is_alive():
                log.error("a graph does not end; the process ends without it")
                logs.write_out()
                os._exit(0)
