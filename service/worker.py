"""One process that serves: alone, or as one of the workers that `service/fleet.py` keeps."""

import gc
import logging
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from types import FrameType

from service import logs
from service.app import create_app
from service.cpus import usable_cpus
from service.edge import Edge
from service.errors import SettingsError, StartupError
from service.exits import EXIT_MODELS, EXIT_SETTINGS
from service.fleet import DRAIN, HURRY, LEAVES, RELOAD, SERVES, Post
from service.hangup import Hangup
from service.server import Server
from service.settings import Settings
from service.snapshots import Snapshots
from service.tracing import open_tracing
from service.version import version

log = logging.getLogger(__name__)


def serve_alone(settings: Settings) -> int:
    """Serve in this process, until SIGTERM or SIGINT; the exit code."""
    hangup = Hangup()

    def server_of(app: Edge) -> Server:
        hangup.then(app.service.reloader.soon)
        return Server(app, settings)

    return _serve(settings, server_of)


def serve_as_worker(post: Post) -> int:
    """Serve as one of several; the exit code."""
    logs.configure(post.settings.log_level, post.settings.log_format, pid=os.getpid())
    return _serve(post.settings, lambda app: WorkerServer(app, post), [post.listening])


def _serve(settings: Settings, server_of: Callable[[Edge], Server], sockets: list[socket.socket] | None = None) -> int:
    started = perf_counter()
    try:
        tracing = open_tracing(os.environ, version())
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_SETTINGS
    try:
        app = create_app(settings, tracing)
    except StartupError as error:
        log.critical("cannot start: %s", error)
        return EXIT_MODELS
    # Vocabularies are millions of objects that live as long as the process: no collection needs to walk them.
    gc.collect()
    gc.freeze()
    counts, cpus = app.service.counts, usable_cpus()
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
            cpus=cpus.count,
            cpus_by=cpus.source,
            workers=counts.workers,
            worker_threads=counts.worker_threads,
            ort_threads=counts.ort_threads,
            seconds=round(perf_counter() - started, 3),
        ),
    )
    with suppress(KeyboardInterrupt):  # what Ctrl-C is again, once all that was under way is finished
        server_of(app).run(sockets)
    return 0


class WorkerServer(Server):
    """The server of a worker: only the supervisor knows whether the whole service stops."""

    def __init__(self, app: Edge, post: Post) -> None:
        """Prepare to serve.

        Args:
            app: what answers; from now on its metrics are those of all workers.
            post: what the supervisor gave.
        """
        super().__init__(app, post.settings)
        telemetry = app.service.telemetry
        self._snapshots = Snapshots(post.folder, post.number, telemetry.registry)
        telemetry.scrape = self._snapshots.collect
        self._folder = post.folder
        self._orphaned = False
        self._line = post.line
        self._line.setblocking(False)
        app.service.reload_others = self._reload_others

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM: leave. Ctrl-C reaches all processes of a terminal, of which only the supervisor heeds it."""
        if sig != signal.SIGINT:
            self.leave()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: is there news? And each second: say that all is well."""
        self._listen()
        stop = await super().on_tick(counter)
        if stop or counter % 10 == 0:
            with suppress(OSError):  # a supervisor that does not listen is missed by `_listen`
                self._line.send(LEAVES if stop else SERVES)
            if not self._orphaned:
                self._snapshots.write()
        return stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As every server; then leave the last figures to the others."""
        await super().shutdown(sockets)
        if self._orphaned:  # nobody else will take the folder away
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            self._snapshots.write()

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
