"""One serving process: alone, or as a worker of `service/process/supervisor.py`."""

import gc
import logging
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import enumerate as enumerate_threads
from time import monotonic, perf_counter
from types import FrameType

from service.app import create_app
from service.engine.queue import THREADS
from service.errors import SettingsError, StartupError
from service.http.application import Application
from service.http.server import Server
from service.machine import bound_arenas, usable_cpus
from service.models import checks, opener
from service.observe import METRICS_FOLDER, logs
from service.observe.tracing import open_tracing
from service.process.messages import DRAIN, EXIT_MODELS, EXIT_SETTINGS, HURRY, LEAVES, RELOAD, SERVES, Assignment
from service.process.signals import HangupHandler
from service.settings import Settings
from service.version import version

log = logging.getLogger(__name__)

_THREAD_SECONDS = 2.0  # for batches whose callers have left, and for a model that is being opened


def serve_alone(settings: Settings) -> int:
    """Serve in this process until SIGTERM or SIGINT; the exit code."""
    hangup = HangupHandler()

    def server_of(app: Application) -> Server:
        hangup.then(app.service.reloader.soon)
        return Server(app, settings)

    return _serve(settings, server_of)


def serve_as_worker(assignment: Assignment) -> int:
    """Serve as one of several; the exit code."""
    logs.configure(assignment.settings.log_level, assignment.settings.log_format, pid=os.getpid())
    return _serve(assignment.settings, lambda app: WorkerServer(app, assignment), [assignment.listening])


def _serve(
    settings: Settings, server_of: Callable[[Application], Server], sockets: list[socket.socket] | None = None
) -> int:
    started = perf_counter()
    bound_arenas()
    for sig in (signal.SIGTERM, signal.SIGINT):  # until the server handles them; process 1 has no default action
        if signal.getsignal(sig) != signal.SIG_IGN:  # ignored in a worker: the supervisor handles Ctrl-C
            signal.signal(sig, _end_at_once)
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
    server_of(app).run(sockets)
    _end_threads()
    return 0


def _end_at_once(*_: object) -> None:
    """End the process while its models are opened, whatever their graphs do."""
    logs.write_out()
    os._exit(0)


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


class WorkerServer(Server):
    """The server of a worker."""

    def __init__(self, app: Application, assignment: Assignment) -> None:
        super().__init__(app, assignment.settings)
        self._orphaned = False
        self._line = assignment.line
        self._line.setblocking(False)
        app.service.reload_others = self._reload_others

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Leave at SIGTERM; the supervisor handles Ctrl-C, which reaches all processes of a terminal."""
        if sig != signal.SIGINT:
            self.leave()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second read the supervisor's messages; each second send one and set the gauges."""
        self._listen()
        stop = await super().on_tick(counter)
        if stop or counter % 10 == 0:
            with suppress(OSError):  # `_listen` notices that the supervisor is gone
                self._line.send(LEAVES if stop else SERVES)
            self._app.service.telemetry.refresh()
        return stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down; without the supervisor nobody else removes the folder of the metrics."""
        await super().shutdown(sockets)
        if self._orphaned:
            shutil.rmtree(os.environ[METRICS_FOLDER], ignore_errors=True)

    def _reload_others(self) -> None:
        with suppress(OSError):
            self._line.send(RELOAD)

    def _listen(self) -> None:
        try:
            news = self._line.recv(16)
        except BlockingIOError:
            return
        except OSError:
            news = b""
        if not news and not self.should_exit:
            log.error("the supervisor is gone; this worker leaves too")
            self._orphaned = True
            self.leave()
        if RELOAD in news:
            self._app.service.reloader.soon()
        if DRAIN in news:
            self.drain()
        if HURRY in news:
            self.leave(hurried=True)
