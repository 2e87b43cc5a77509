"""Several worker processes behind one listening socket, and the supervisor that keeps them.

The supervisor opens no models and answers nothing. It binds the socket, starts one worker and, when that one serves,
the others; so what is wrong at start-up is said once, and the exit code is the worker's. All workers accept from the
one socket: what has connected is not lost with the worker that would have accepted it, as with a socket for each of
them (SO_REUSEPORT). Worker and supervisor are joined by a pair of sockets, over which single bytes go: the worker says
each second that it serves, or that it leaves, or that the others should look at the models folder as it does; the
supervisor, how to leave, or to look. A worker without a supervisor leaves too.

- A worker that leaves because somebody sent it SIGTERM is replaced at once, while it finishes what is under way.
- One that dies is replaced at once; those that die young, again and again, after ever longer pauses.
- One that says nothing for `HUNG_SECONDS` is killed and replaced.
- SIGHUP has all of them look at the models folder (`service/reload.py`).
- SIGUSR2 replaces all, one after another, each when its successor serves.
- SIGTERM and SIGINT end it all, as `service/server.py` describes.

Why this is not uvicorn's own supervisor: docs/decisions/0004-worker-processes.md.
"""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from time import monotonic

from service.exits import EXIT_KILLED, EXIT_MODELS
from service.hangup import Terminal
from service.logs import fields
from service.settings import Settings
from service.snapshots import Ended
from service.telemetry import Ending

log = logging.getLogger(__name__)

HUNG_SECONDS = 30.0  # of silence; no request keeps the event loop busy for so long
YOUNG_SECONDS = 60.0  # who dies before has not shown that it can live
LONGEST_PAUSE = 30.0
CLOSING_SECONDS = 5.0  # beyond the grace, for what a worker closes at its end

SERVES, LEAVES = b"s", b"l"  # what a worker says
DRAIN, HURRY = b"d", b"h"  # what it is told, before SIGTERM
RELOAD = b"r"  # to look at the models folder; a worker that was asked to says it of the others

_LOOK_SECONDS = 0.2
_SHARED_MEMORY = "/dev/shm"
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2)
_spawn = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Post:
    """What a worker is given to serve with."""

    settings: Settings
    number: int
    listening: socket.socket
    line: socket.socket  # to the supervisor
    folder: Path  # of the snapshots


@dataclass(eq=False)
class _Worker:
    """A worker process, as the supervisor knows it."""

    number: int
    process: SpawnProcess
    line: socket.socket
    started: float
    heard: float  # from it, at this time
    predecessor: "_Worker | None"  # who is told to leave when this one serves
    serves: bool = False  # or has served
    leaves: bool = False
    hung: bool = False
    mute: bool = False  # its end of the line is closed

    def log_fields(self, **more: object) -> dict[str, dict[str, object]]:
        return fields(worker=self.number, worker_pid=self.process.pid, **more)


class Fleet:
    """The supervisor."""

    def __init__(self, settings: Settings, size: int) -> None:
        """Prepare; nothing is started yet.

        Args:
            settings: of the service.
            size: how many workers.
        """
        self._settings = settings
        self._size = size
        self._numbers = count(1)
        self._workers: list[_Worker] = []
        self._outdated: list[_Worker] = []  # to be replaced, one after another
        self._signals: list[int] = []
        self._proved = False  # a worker has served: settings and models are right
        self._died_young = 0  # in a row
        self._hire_at = 0.0
        self._drained_at: float | None = None
        self._killed_at: float | None = None  # set when all are told to leave
        self._exit_code = 0
        self._terminal = Terminal()

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT, or until no worker can; the exit code."""
        try:
            self._listening = _bind(self._settings)
        except OSError as error:
            where = f"{self._settings.host}:{self._settings.port}"
            log.critical("cannot start: %s: %s", where, (error.strerror or str(error)).lower())
            return EXIT_MODELS
        try:
            shared = tempfile.TemporaryDirectory(prefix="semblance-", dir=_memory(), ignore_cleanup_errors=True)
        except OSError as error:
            log.critical("cannot start: no folder for the workers' metrics: %s", error)
            return EXIT_MODELS
        # NumPy would give each worker a thread for each CPU of the host; nothing here is large enough to gain by that.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        with shared as folder, self._bell() as bell:
            self._folder = Path(folder)
            self._ended = Ended(self._folder)
            log.info(
                "supervising", extra=fields(workers=self._size, host=self._settings.host, port=self._settings.port)
            )
            self._hire()
            while self._workers or not self._leaving:  # what is told to leave is waited for
                lines = [worker.line for worker in self._workers if not worker.mute]
                connection.wait([*lines, *(worker.process.sentinel for worker in self._workers), bell], _LOOK_SECONDS)
                self._heed_signals(bell)
                for worker in list(self._workers):
                    self._hear(worker)
                    self._look_after(worker)
                self._keep_time()
                self._fill_up()
            log.info("stopped", extra=fields(exit_code=self._exit_code))
        return self._exit_code

    @property
    def _leaving(self) -> bool:
        return self._killed_at is not None

    @property
    def _stopping(self) -> bool:
        return self._leaving or self._drained_at is not None

    @contextmanager
    def _bell(self) -> Iterator[socket.socket]:
        """Note signals, and ring when there is one; `connection.wait` alone would sleep on."""
        bell, clapper = socket.socketpair()
        bell.setblocking(False)
        clapper.setblocking(False)
        before = {sig: signal.signal(sig, lambda sig, _: self._signals.append(sig)) for sig in _SIGNALS}
        old = signal.set_wakeup_fd(clapper.fileno(), warn_on_full_buffer=False)
        try:
            with bell, clapper:
                yield bell
        finally:
            signal.set_wakeup_fd(old)
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def _hire(self, predecessor: _Worker | None = None) -> None:
        """Start a worker."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        number = next(self._numbers)
        post = Post(self._settings, number, self._listening, theirs, self._folder)
        process = _spawn.Process(target=_work, args=(post,), name=f"worker {number}", daemon=True)
        # The child inherits that: Ctrl-C and a closed terminal are the supervisor's.
        before = {sig: signal.signal(sig, signal.SIG_IGN) for sig in (signal.SIGINT, signal.SIGHUP)}
        try:
            process.start()
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)
        theirs.close()
        now = monotonic()
        self._workers.append(_Worker(number, process, ours, now, now, predecessor))

    def _hear(self, worker: _Worker) -> None:
        """What the worker has said since it was last heard."""
        try:
            news = worker.line.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            news = b""
        if not news:
            worker.mute = True  # it ends
            return
        worker.heard = monotonic()
        if not worker.serves:
            worker.serves = self._proved = True
            log.info("worker serves", extra=worker.log_fields(seconds=round(worker.heard - worker.started, 3)))
            if worker.predecessor is not None:
                worker.predecessor.process.terminate()
        if RELOAD in news:
            self._tell(RELOAD, but=worker)
        if LEAVES in news and not worker.leaves:
            worker.leaves = True
            if not self._stopping:
                log.info("worker leaves", extra=worker.log_fields())

    def _look_after(self, worker: _Worker) -> None:
        """Bury it if it is dead, kill it if it is as good as that."""
        code = worker.process.exitcode
        if code is not None:
            self._bury(worker, code)
            return
        silent = monotonic() - worker.heard
        patience = self._settings.shutdown_grace_seconds + CLOSING_SECONDS if worker.leaves else HUNG_SECONDS
        if worker.serves and silent > patience and not worker.hung:
            worker.hung = True
            log.error("worker hangs; it is killed", extra=worker.log_fields(silent_seconds=round(silent, 1)))
            worker.process.kill()

    def _bury(self, worker: _Worker, code: int) -> None:
        self._workers.remove(worker)
        worker.process.join()
        worker.line.close()
        reason: Ending = (
            "hung"
            if worker.hung
            else "asked"
            if worker.leaves or code in (0, -signal.SIGTERM)
            else "killed"
            if code < 0
            else "failed"
        )
        replaced = not self._stopping and (worker.serves or worker.predecessor is None)
        try:
            self._ended.bury(worker.number, reason if replaced else None)
        except OSError as error:
            log.error("what a worker had counted is lost", extra=worker.log_fields(reason=error.strerror))
        how = {"signal": signal.Signals(-code).name} if code < 0 else {"exit_code": code}
        if self._stopping or reason == "asked":
            log.info("worker ended", extra=worker.log_fields(**how))
            return
        log.error("worker died" if worker.serves else "worker could not start", extra=worker.log_fields(**how))
        if not any(other.serves for other in self._workers) and not worker.serves:
            self._exit_code = code if code > 0 else EXIT_KILLED
            self._leave(hurried=True)
            return
        if worker.predecessor is not None and not worker.serves:
            log.error("the workers that serve are kept", extra=fields(workers=len(self._workers)))
            self._outdated.clear()
        lived = monotonic() - worker.started
        self._died_young = self._died_young + 1 if lived < YOUNG_SECONDS else 1
        pause = min(2.0 ** (self._died_young - 1) - 1, LONGEST_PAUSE)
        self._hire_at = monotonic() + pause
        if pause:
            log.warning("the next worker starts after a pause", extra=fields(seconds=pause))

    def _fill_up(self) -> None:
        """Start what is missing."""
        if self._stopping or not self._proved:
            return
        missing = self._size - sum(not worker.leaves for worker in self._workers)
        if missing > 0 and monotonic() >= self._hire_at:
            for _ in range(missing):
                self._hire()
        elif missing == 0 and self._outdated and all(worker.serves for worker in self._workers):
            outdated = self._outdated.pop(0)
            if outdated in self._workers and not outdated.leaves:
                self._hire(predecessor=outdated)

    def _heed_signals(self, bell: socket.socket) -> None:
        with suppress(BlockingIOError):
            bell.recv(4096)
        while self._signals:
            sig = self._signals.pop(0)
            log.info("signal", extra=fields(signal=signal.Signals(sig).name))
            if sig == signal.SIGHUP and self._terminal.is_gone:
                sig = signal.SIGTERM
            if sig == signal.SIGHUP:
                self._tell(RELOAD)
            elif sig == signal.SIGUSR2:
                if not self._stopping:
                    self._outdated = list(self._workers)
            elif self._leaving:
                if sig == signal.SIGINT:
                    self._kill()
            elif sig == signal.SIGTERM and not self._stopping and self._settings.drain_seconds:
                self._drained_at = monotonic() + self._settings.drain_seconds
                self._tell(DRAIN)
            else:
                self._leave(hurried=sig == signal.SIGINT)

    def _keep_time(self) -> None:
        now = monotonic()
        if self._killed_at is not None:
            if now >= self._killed_at and self._workers:
                log.error("workers that did not end in time are killed", extra=fields(workers=len(self._workers)))
                self._kill()
        elif self._drained_at is not None and now >= self._drained_at:
            self._leave()

    def _leave(self, *, hurried: bool = False) -> None:
        """Tell all workers to end; what has not served yet ends at once."""
        self._killed_at = monotonic() + self._settings.shutdown_grace_seconds + CLOSING_SECONDS
        self._listening.close()
        self._tell(DRAIN + HURRY if hurried else DRAIN)
        for worker in self._workers:
            worker.process.terminate()

    def _kill(self) -> None:
        self._killed_at = monotonic() + CLOSING_SECONDS
        for worker in self._workers:
            worker.process.kill()

    def _tell(self, what: bytes, but: _Worker | None = None) -> None:
        for worker in self._workers:
            if worker is but:
                continue
            with suppress(OSError):  # it ends already
                worker.line.send(what)


def _bind(settings: Settings) -> socket.socket:
    """The socket that all workers accept from; the first one that serves makes it listen.

    Raises:
        OSError: the address is not to be had.
    """
    [(family, kind, _, _, address), *_] = socket.getaddrinfo(
        settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    listening = socket.socket(family, kind)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    return listening


def _memory() -> str | None:
    """Where files need no disk, unless TMPDIR says where files are to be."""
    usable = "TMPDIR" not in os.environ and os.access(_SHARED_MEMORY, os.W_OK)
    return _SHARED_MEMORY if usable else None


def _work(post: Post) -> None:
    from service.worker import serve_as_worker  # not before: the supervisor does without what opens models

    sys.exit(serve_as_worker(post))
